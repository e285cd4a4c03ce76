#include "models/layers/quantize/int4_network.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/int4_weights.h"
#include "kernels/tensor/arena.h"
#include "models/checkpoint/training_state.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kFormat[] = "pipelab int4 network 1";
constexpr char kCodes[] = "/codes", kScales[] = "/scales", kBook[] = "/book";  // of tensors
constexpr char kShape[] = "/shape", kGroup[] = "/group";                       // of metadata
constexpr char kValue[] = "/value", kStatistics[] = "/statistics";
constexpr int64_t kMostRows = int64_t{1} << 40;  // so that no size leaves 64 bits

template <class Number>
StoredTensor Stored(const Tensor& tensor) {
  std::vector<Number> values(tensor.size());
  std::memcpy(values.data(), tensor.data(), tensor.bytes());
  return {{tensor.dim(0), tensor.dim(1), tensor.dim(2)}, std::move(values)};
}

void Store(const std::string& name, const QuantizedMatrix& q, Safetensors* file) {
  Arena arena;
  const Int4Weights packed = PackInt4(q.shape, q.book, q.codes_KN, q.scales_GN, &arena);
  file->tensors[name + kCodes] = Stored<int32_t>(packed.codes);
  file->tensors[name + kScales] = Stored<uint16_t>(packed.scales);
  file->tensors[name + kBook] = {{16}, std::vector<float>(q.book.begin(), q.book.end())};
  file->metadata[name + kShape] = absl::StrCat(q.shape.k, ",", q.shape.n);
  file->metadata[name + kGroup] = absl::StrCat(q.shape.group);
}

// One matrix of a file.
class MatrixReader {
 public:
  MatrixReader(const Safetensors& file, absl::string_view path, std::string name)
      : file_(file), path_(path), name_(std::move(name)) {}

  absl::StatusOr<QuantizedMatrix> Read() const {
    QuantizedMatrix q;
    PIPELAB_ASSIGN_OR_RETURN(q.shape, Shape());
    const Int4Shape& s = q.shape;
    PIPELAB_ASSIGN_OR_RETURN(const auto* codes,
                             (Values<int32_t>(kCodes, "I32", {s.panels(), s.units(), 32})));
    PIPELAB_ASSIGN_OR_RETURN(const auto* scales,
                             (Values<uint16_t>(kScales, "BF16", {s.panels(), s.groups(), 32})));
    PIPELAB_ASSIGN_OR_RETURN(const auto* book, (Values<float>(kBook, "F32", {16})));
    std::copy(book->begin(), book->end(), q.book.begin());
    Arena arena;
    const auto tensor = [&](DataType type, int64_t rows, const auto& values) {
      const Tensor t =
          arena.Allocate(type, {s.panels(), rows, kInt4Columns}, MemoryKind::kParameter);
      std::memcpy(t.data(), values.data(), t.bytes());
      return t;
    };
    Int4Codes all = UnpackInt4({s, q.book, tensor(DataType::kInt32, s.units(), *codes),
                                tensor(DataType::kBFloat16, s.groups(), *scales)});
    q.codes_KN = std::move(all.codes_KN);
    q.scales_GN = std::move(all.scales_GN);
    return q;
  }

 private:
  template <class... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::DataLossError(absl::StrCat(path_, ": matrix \"", name_, "\": ", parts...));
  }

  absl::StatusOr<std::string> Metadata(const char* key) const {
    const auto it = file_.metadata.find(name_ + key);
    if (it == file_.metadata.end()) return Error("no metadata \"", name_, key, "\"");
    return it->second;
  }

  absl::StatusOr<Int4Shape> Shape() const {
    PIPELAB_ASSIGN_OR_RETURN(const std::string shape, Metadata(kShape));
    PIPELAB_ASSIGN_OR_RETURN(const std::string group, Metadata(kGroup));
    const std::vector<absl::string_view> sizes = absl::StrSplit(shape, ',');
    Int4Shape s;
    if (sizes.size() != 2 || !absl::SimpleAtoi(sizes[0], &s.k) ||
        !absl::SimpleAtoi(sizes[1], &s.n) || std::min(s.k, s.n) < 1 ||
        std::max(s.k, s.n) > kMostRows) {
      return Error("shape \"", shape, "\"; must be rows and columns, such as 512,128");
    }
    if (!absl::SimpleAtoi(group, &s.group) ||
        (s.group != 32 && s.group != 64 && s.group != 128 && s.group != s.k)) {
      return Error("groups of ", group, " rows; 32, 64, 128 or all ", s.k);
    }
    return s;
  }

  template <class Number>
  absl::StatusOr<const std::vector<Number>*> Values(const char* part, const char* type,
                                                    const std::vector<int64_t>& shape) const {
    const auto it = file_.tensors.find(name_ + part);
    if (it == file_.tensors.end()) return Error("no tensor \"", name_, part, "\"");
    const auto* values = std::get_if<std::vector<Number>>(&it->second.values);
    if (values == nullptr) return Error("\"", name_, part, "\" is not of ", type);
    if (it->second.shape == shape) return values;
    return Error("\"", name_, part, "\" is [", absl::StrJoin(it->second.shape, ","),
                 "]; its shape and groups make [", absl::StrJoin(shape, ","), "]");
  }

  const Safetensors& file_;
  const absl::string_view path_;
  const std::string name_;
};

}  // namespace

Int4Network NetworkOf(const SerialTrainer& trained, QuantizedMatrices matrices) {
  TrainingState state = trained.State();
  Int4Network network{state.model, std::move(matrices), {}};
  for (auto& [key, tensor] : state.tensors) {
    absl::string_view name = key;
    const bool is_value = absl::ConsumeSuffix(&name, kValue);
    if (!is_value && !absl::EndsWith(key, kStatistics)) continue;  // the optimizer's
    if (is_value && network.matrices.count(std::string(name)) > 0) continue;
    network.rest[key] = std::move(tensor);
  }
  return network;
}

absl::Status TakeInt4Network(const Int4Network& network, SerialTrainer* trained) {
  TrainingState state = trained->State();
  state.source = network.source;
  state.model = network.model;
  for (auto it = state.tensors.begin(); it != state.tensors.end();) {
    const bool is_given =
        absl::EndsWith(it->first, kValue) || absl::EndsWith(it->first, kStatistics);
    it = is_given ? state.tensors.erase(it) : std::next(it);
  }
  state.tensors.insert(network.rest.begin(), network.rest.end());
  for (const auto& [name, q] : network.matrices) {
    state.tensors[name + kValue] = {{q.shape.k, q.shape.n}, q.Values()};
  }
  return trained->SetState(state);
}

std::string SerializeInt4Network(const Int4Network& network) {
  Safetensors file;
  file.tensors = network.rest;
  for (const auto& [name, q] : network.matrices) Store(name, q, &file);
  file.metadata["format"] = kFormat;
  file.metadata["model"] = network.model;
  file.metadata["checksum"] = ChecksumOf(file.tensors);
  return SerializeSafetensors(file);
}

absl::StatusOr<Int4Network> ParseInt4Network(absl::string_view contents, absl::string_view path) {
  PIPELAB_ASSIGN_OR_RETURN(Safetensors file, ParseSafetensors(contents, path));
  if (file.metadata["format"] != kFormat) {
    return absl::DataLossError(
        absl::StrCat(path, ": no network in 4 bits: its metadata do not say \"", kFormat, "\""));
  }
  Int4Network network;
  network.source = std::string(path);
  network.model = file.metadata["model"];
  for (const auto& [key, tensor] : file.tensors) {
    absl::string_view name = key;
    if (absl::ConsumeSuffix(&name, kCodes) || absl::ConsumeSuffix(&name, kScales) ||
        absl::ConsumeSuffix(&name, kBook)) {
      const std::string of(name);
      if (network.matrices.count(of) > 0) continue;
      PIPELAB_ASSIGN_OR_RETURN(network.matrices[of], MatrixReader(file, path, of).Read());
    } else {
      network.rest[key] = tensor;
    }
  }
  if (file.metadata["checksum"] != ChecksumOf(file.tensors)) {
    return absl::DataLossError(
        absl::StrCat(path, ": damaged: its numbers are not those that were written"));
  }
  return network;
}

absl::Status WriteInt4Network(absl::string_view path, const Int4Network& network) {
  return WriteFileAtomically(path, SerializeInt4Network(network));
}

absl::StatusOr<Int4Network> ReadInt4Network(absl::string_view path) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseInt4Network(contents, path);
}

}  // namespace pipelab
