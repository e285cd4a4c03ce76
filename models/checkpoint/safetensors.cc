#include "models/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "models/checkpoint/safetensors_header.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr size_t kAlignment = 8;

struct Type {
  absl::string_view name;
  int64_t bytes;
  StoredTensor::Values none;
};
const std::vector<Type>& Types() {  // in the order of Values
  static const auto& types = *new std::vector<Type>{
      {"F32", 4, std::vector<float>()},
      {"I32", 4, std::vector<int32_t>()},
      {"I64", 8, std::vector<int64_t>()},
      {"BF16", 2, std::vector<uint16_t>()},
  };
  return types;
}

int64_t ElementsOf(const StoredTensor& tensor) {
  return std::visit([](const auto& values) { return static_cast<int64_t>(values.size()); },
                    tensor.values);
}

absl::string_view BytesOf(const StoredTensor& tensor) {
  return std::visit(
      [](const auto& values) {
        return absl::string_view(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(values[0]));
      },
      tensor.values);
}

// The tensor of a file's data.
absl::StatusOr<StoredTensor> TensorOf(absl::string_view name, const SafetensorsEntry& entry,
                                      absl::string_view data, absl::string_view file) {
  const auto type = std::find_if(Types().begin(), Types().end(),
                                 [&](const Type& t) { return t.name == entry.type; });
  if (type == Types().end()) {
    return absl::DataLossError(absl::StrCat(file, ": tensor \"", name, "\": dtype \"", entry.type,
                                            "\"; F32, I32, I64 and BF16 can be read"));
  }
  StoredTensor tensor = {entry.shape, type->none};
  std::visit(
      [&](auto& values) {
        const int64_t bytes = entry.end - entry.begin;
        values.resize(bytes / sizeof(values[0]));
        if (bytes > 0) std::memcpy(values.data(), data.data() + entry.begin, bytes);
      },
      tensor.values);
  return tensor;
}

}  // namespace

std::string SerializeSafetensors(const Safetensors& file) {
  json header = json::object();
  if (!file.metadata.empty()) header[kSafetensorsMetadata] = file.metadata;
  // Wide elements first, so that each array is aligned.
  std::vector<std::pair<const std::string*, const StoredTensor*>> order;
  for (const auto& [name, tensor] : file.tensors) order.emplace_back(&name, &tensor);
  const auto width = [](const StoredTensor& t) { return Types()[t.values.index()].bytes; };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return width(*a.second) > width(*b.second);
  });
  int64_t offset = 0;
  for (const auto& [name, tensor] : order) {
    CHECK_NE(*name, kSafetensorsMetadata);
    int64_t elements = 1;
    for (const int64_t dimension : tensor->shape) elements *= dimension;
    CHECK_EQ(elements, ElementsOf(*tensor)) << *name;
    const auto end = offset + static_cast<int64_t>(BytesOf(*tensor).size());
    header[*name] = {{"dtype", std::string(Types()[tensor->values.index()].name)},
                     {"shape", tensor->shape},
                     {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = DumpJson(header);
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const uint64_t length = text.size();
  std::string contents(kSafetensorsLengthBytes, '\0');
  std::memcpy(contents.data(), &length, kSafetensorsLengthBytes);
  contents.reserve(kSafetensorsLengthBytes + text.size() + offset);
  contents += text;
  for (const auto& [name, tensor] : order) absl::StrAppend(&contents, BytesOf(*tensor));
  return contents;
}

absl::StatusOr<Safetensors> ParseSafetensors(absl::string_view contents, absl::string_view file) {
  const absl::string_view rest =
      contents.substr(std::min<size_t>(contents.size(), kSafetensorsLengthBytes));
  PIPELAB_ASSIGN_OR_RETURN(
      const int64_t length,
      SafetensorsHeaderLength(contents, static_cast<int64_t>(rest.size()), file));
  const absl::string_view data = rest.substr(length);
  PIPELAB_ASSIGN_OR_RETURN(
      SafetensorsHeader header,
      ParseSafetensorsHeader(rest.substr(0, length), static_cast<int64_t>(data.size()), file));
  Safetensors parsed;
  for (const auto& [name, entry] : header.tensors) {
    PIPELAB_ASSIGN_OR_RETURN(parsed.tensors[name], TensorOf(name, entry, data, file));
  }
  parsed.metadata = std::move(header.metadata);
  return parsed;
}

std::string ChecksumOf(const std::map<std::string, StoredTensor>& tensors) {
  uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors) sum = sum * 31 + StableHash(BytesOf(tensor));
  return absl::StrFormat("%016x", sum);
}

absl::Status WriteSafetensors(absl::string_view path, const Safetensors& file) {
  return WriteFileAtomically(path, SerializeSafetensors(file));
}

absl::StatusOr<Safetensors> ReadSafetensors(absl::string_view path) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseSafetensors(contents, path);
}

}  // namespace pipelab
