#include "models/checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie in files");

namespace pipelab {
namespace {

using nlohmann::json;

constexpr uint64_t kMostHeaderBytes = 100'000'000;  // as in the format's own reader

// Bytes of a number of each type of the format; 0: no such type.
int64_t BytesOfType(absl::string_view type) {
  static const auto& bytes = *new std::map<absl::string_view, int64_t>{
      {"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"F16", 2},  {"BF16", 2}, {"I16", 2}, {"U16", 2},     {"F32", 4},
      {"I32", 4},  {"U32", 4},  {"F64", 8}, {"I64", 8},     {"U64", 8}};
  const auto it = bytes.find(type);
  return it == bytes.end() ? 0 : it->second;
}

class Parser {
 public:
  Parser(int64_t data_bytes, absl::string_view file) : data_bytes_(data_bytes), file_(file) {}

  absl::StatusOr<SafetensorsHeader> Parse(absl::string_view text) const {
    const absl::StatusOr<json> root = ParseJson(text, absl::StrCat(file_, ": header"));
    if (!root.ok()) return absl::DataLossError(root.status().message());
    if (!root->is_object()) return Error("the header is not a JSON object");
    SafetensorsHeader header;
    for (const auto& [name, entry] : root->items()) {
      if (name == kSafetensorsMetadata) {
        PIPELAB_ASSIGN_OR_RETURN(header.metadata, Metadata(entry));
      } else {
        PIPELAB_ASSIGN_OR_RETURN(header.tensors[name], Tensor(name, entry));
      }
    }
    PIPELAB_RETURN_IF_ERROR(CheckPlaces(header));
    return header;
  }

 private:
  absl::Status Error(absl::string_view fault) const {
    return absl::DataLossError(absl::StrCat(file_, ": ", fault));
  }
  absl::Status Error(absl::string_view tensor, absl::string_view fault) const {
    return Error(absl::StrCat("tensor \"", tensor, "\": ", fault));
  }

  absl::StatusOr<std::map<std::string, std::string>> Metadata(const json& entry) const {
    std::map<std::string, std::string> metadata;
    if (!entry.is_object()) return Error("__metadata__ is not a JSON object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) return Error(absl::StrCat("metadata \"", key, "\" is no string"));
      metadata[key] = value.get<std::string>();
    }
    return metadata;
  }

  // Whole numbers, not negative.
  absl::StatusOr<std::vector<int64_t>> Numbers(const std::string& name, const json& entry,
                                               const char* field) const {
    const auto it = entry.find(field);
    if (it == entry.end() || !it->is_array()) {
      return Error(name, absl::StrCat("no array \"", field, "\""));
    }
    std::vector<int64_t> numbers;
    for (const json& number : *it) {
      if (!number.is_number_unsigned() ||
          number.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Error(name, absl::StrCat("\"", field, "\" holds what is not a size"));
      }
      numbers.push_back(number.get<int64_t>());
    }
    return numbers;
  }

  absl::StatusOr<SafetensorsEntry> Tensor(const std::string& name, const json& entry) const {
    if (!entry.is_object()) return Error(name, "its entry is not a JSON object");
    const auto type = entry.find("dtype");
    if (type == entry.end() || !type->is_string()) return Error(name, "no string \"dtype\"");
    SafetensorsEntry tensor;
    tensor.type = type->get<std::string>();
    const int64_t width = BytesOfType(tensor.type);
    if (width == 0) return Error(name, absl::StrCat("dtype \"", tensor.type, "\" is unknown"));
    PIPELAB_ASSIGN_OR_RETURN(tensor.shape, Numbers(name, entry, "shape"));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                             Numbers(name, entry, "data_offsets"));
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes_) {
      return Error(name, absl::StrCat("data_offsets [", absl::StrJoin(offsets, ","),
                                      "]; the file has ", data_bytes_, " bytes of data"));
    }
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    // Stops before the product can leave 64 bits: it is bounded by the bytes that there are.
    const int64_t bytes = tensor.end - tensor.begin;
    int64_t elements = std::count(tensor.shape.begin(), tensor.shape.end(), 0) > 0 ? 0 : 1;
    for (const int64_t dimension : tensor.shape) {
      if (elements == 0) break;
      elements = dimension > bytes / elements ? bytes + 1 : elements * dimension;
    }
    if (elements > bytes / width || elements * width != bytes) {
      return Error(name, absl::StrCat(bytes, " bytes of data; its shape is [",
                                      absl::StrJoin(tensor.shape, ","), "] of ", tensor.type));
    }
    return tensor;
  }

  // Neither overlaps nor gaps: bytes that two tensors share, or none has, are a damaged header's.
  absl::Status CheckPlaces(const SafetensorsHeader& header) const {
    using Place = std::pair<const std::string*, const SafetensorsEntry*>;
    std::vector<Place> places;
    for (const auto& [name, entry] : header.tensors) places.emplace_back(&name, &entry);
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
    });
    int64_t end = 0;
    for (const auto& [name, entry] : places) {
      if (entry->begin != end) {
        return Error(*name, absl::StrCat("data at byte ", entry->begin, "; ",
                                         entry->begin < end ? "overlaps the data before it"
                                                            : "leaves a gap behind the data",
                                         ", which ends at byte ", end));
      }
      end = entry->end;
    }
    if (end == data_bytes_) return absl::OkStatus();
    return Error(absl::StrCat(data_bytes_, " bytes of data; the header's tensors have ", end));
  }

  const int64_t data_bytes_;
  const std::string file_;
};

}  // namespace

absl::StatusOr<int64_t> SafetensorsHeaderLength(absl::string_view first, int64_t behind,
                                                absl::string_view file) {
  if (first.size() < kSafetensorsLengthBytes) {
    return absl::DataLossError(absl::StrCat(file, ": ", first.size(),
                                            " bytes; a safetensors file begins with ",
                                            kSafetensorsLengthBytes, " bytes of header length"));
  }
  uint64_t length = 0;
  std::memcpy(&length, first.data(), sizeof(length));
  if (length <= static_cast<uint64_t>(behind) && length <= kMostHeaderBytes) {
    return static_cast<int64_t>(length);
  }
  return absl::DataLossError(absl::StrCat(file, ": a header of ", length, " bytes; ", behind,
                                          " follow in the file, and at most ", kMostHeaderBytes,
                                          " are read"));
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view text, int64_t data_bytes,
                                                         absl::string_view file) {
  return Parser(data_bytes, file).Parse(text);
}

}  // namespace pipelab
