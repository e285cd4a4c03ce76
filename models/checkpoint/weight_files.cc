#include "models/checkpoint/weight_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kOneFile[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr int64_t kReadBytes = 1 << 20;  // at a time

absl::Status NotReadable(absl::string_view file) {
  return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
}

absl::Status ReadBytes(const std::string& file, std::ifstream* in, int64_t count, char* to) {
  if (in->read(to, count)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file, ": ends before its last tensor"));
}

}  // namespace

float FloatOfBFloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float number = 0;
  std::memcpy(&number, &wide, sizeof(number));
  return number;
}

float FloatOfHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = 0;
  if (exponent == 31) {
    size = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {  // subnormal
    size = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    size = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return (bits & 0x8000) == 0 ? size : -size;
}

float FloatOfE4M3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  float size = 0;
  if (exponent == 15 && fraction == 7) {
    size = NAN;
  } else if (exponent == 0) {  // subnormal
    size = std::ldexp(static_cast<float>(fraction), -9);
  } else {
    size = std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
  }
  return (bits & 0x80) == 0 ? size : -size;
}

namespace {

// Numbers of narrower types, a part of the file at a time.
template <typename Bits>
absl::StatusOr<std::vector<float>> ReadNarrow(const std::string& file, std::ifstream* in,
                                              int64_t bytes, float (*convert)(Bits)) {
  std::vector<float> values;
  values.reserve(bytes / sizeof(Bits));
  std::vector<Bits> part;
  for (int64_t done = 0; done < bytes;) {
    const int64_t count = std::min(kReadBytes, bytes - done);
    part.resize(count / sizeof(Bits));
    PIPELAB_RETURN_IF_ERROR(ReadBytes(file, in, count, reinterpret_cast<char*>(part.data())));
    for (const Bits bits : part) values.push_back(convert(bits));
    done += count;
  }
  return values;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view text,
                                                                   absl::string_view file) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, file));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject index, JsonObject::Root(root, file));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject map, index.Object("weight_map"));
  std::map<std::string, std::string> files;
  for (const auto& [name, unused] : root["weight_map"].items()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string shard, map.String(name));
    if (!absl::EndsWith(shard, ".safetensors") || absl::StrContains(shard, "/")) {
      return map.Error(name, "\"", shard, "\": must be a safetensors file of the same folder");
    }
    files[name] = shard;
  }
  return files;
}

absl::Status WeightFiles::Add(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return NotReadable(file);
  const auto size = static_cast<int64_t>(in.tellg());
  in.seekg(0);
  std::string first(std::min(std::max<int64_t>(size, 0), kSafetensorsLengthBytes), '\0');
  const auto behind = size - static_cast<int64_t>(first.size());
  PIPELAB_RETURN_IF_ERROR(ReadBytes(file, &in, static_cast<int64_t>(first.size()), first.data()));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t length, SafetensorsHeaderLength(first, behind, file));
  std::string text(length, '\0');
  PIPELAB_RETURN_IF_ERROR(ReadBytes(file, &in, length, text.data()));
  PIPELAB_ASSIGN_OR_RETURN(SafetensorsHeader header,
                           ParseSafetensorsHeader(text, behind - length, file));
  const int64_t data = kSafetensorsLengthBytes + length;
  for (auto& [name, entry] : header.tensors) {
    Tensor tensor = {file, std::move(entry.type), std::move(entry.shape), data + entry.begin,
                     data + entry.end};
    if (tensors_.emplace(name, std::move(tensor)).second) continue;
    return absl::DataLossError(
        absl::StrCat(file, ": tensor \"", name, "\" is in ", tensors_.at(name).file, " already"));
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightFiles> WeightFiles::Open(absl::string_view path) {
  WeightFiles files;
  files.path_ = std::string(path);
  const std::string index_file = JoinPath(path, kIndex);
  if (!IsDirectory(path) || !PathExists(index_file)) {
    const std::string file = IsDirectory(path) ? JoinPath(path, kOneFile) : std::string(path);
    if (!PathExists(file)) {
      return absl::NotFoundError(
          IsDirectory(path) ? absl::StrCat(path, ": has neither ", kOneFile, " nor ", kIndex)
                            : absl::StrCat(path, ": there is no such file or folder"));
    }
    PIPELAB_RETURN_IF_ERROR(files.Add(file));
    return files;
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(index_file));
  using Index = std::map<std::string, std::string>;
  const absl::StatusOr<Index> read = ParseShardIndex(text, index_file);
  if (!read.ok()) return absl::DataLossError(read.status().message());
  const Index& index = *read;
  std::set<std::string> shards;
  for (const auto& [name, shard] : index) shards.insert(shard);
  for (const std::string& shard : shards) {
    PIPELAB_RETURN_IF_ERROR(files.Add(JoinPath(path, shard)));
  }
  for (const auto& [name, shard] : index) {
    const auto it = files.tensors_.find(name);
    if (it != files.tensors_.end() && it->second.file == JoinPath(path, shard)) continue;
    std::vector<absl::string_view> known;
    for (const auto& [other, tensor] : files.tensors_) known.push_back(other);
    return absl::DataLossError(absl::StrCat(index_file, ": weight_map.", name, ": ", shard,
                                            " has no such tensor", DidYouMean(name, known)));
  }
  return files;
}

absl::StatusOr<std::vector<float>> WeightFiles::Read(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    return absl::NotFoundError(absl::StrCat(path_, ": has no tensor \"", name, "\""));
  }
  const Tensor& tensor = it->second;
  if (tensor.type != "F16" && tensor.type != "BF16" && tensor.type != "F32" &&
      tensor.type != "F8_E4M3") {
    return absl::InvalidArgumentError(absl::StrCat(tensor.file, ": tensor \"", name,
                                                   "\": numbers of type ", tensor.type,
                                                   "; F32, F16, BF16 and F8_E4M3 can be read"));
  }
  std::ifstream in(tensor.file, std::ios::binary);
  if (!in.seekg(tensor.begin)) return NotReadable(tensor.file);
  const int64_t bytes = tensor.end - tensor.begin;
  if (tensor.type == "F32") {
    std::vector<float> values(bytes / sizeof(float));
    PIPELAB_RETURN_IF_ERROR(
        ReadBytes(tensor.file, &in, bytes, reinterpret_cast<char*>(values.data())));
    return values;
  }
  if (tensor.type == "F8_E4M3") return ReadNarrow<uint8_t>(tensor.file, &in, bytes, FloatOfE4M3);
  return ReadNarrow<uint16_t>(tensor.file, &in, bytes,
                              tensor.type == "F16" ? FloatOfHalf : FloatOfBFloat16);
}

}  // namespace pipelab
