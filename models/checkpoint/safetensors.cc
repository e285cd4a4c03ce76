#include "models/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they lie in memory");

namespace pipelab {
namespace {

using nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kLengthBytes = 8, kAlignment = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // as in the format's own reader

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

class Parser {
 public:
  Parser(absl::string_view contents, absl::string_view file) : contents_(contents), file_(file) {}

  absl::StatusOr<Safetensors> Parse() {
    PIPELAB_ASSIGN_OR_RETURN(const json header, Header());
    Safetensors parsed;
    for (const auto& [name, entry] : header.items()) {
      if (name == kMetadata) {
        PIPELAB_ASSIGN_OR_RETURN(parsed.metadata, Metadata(entry));
      } else {
        PIPELAB_ASSIGN_OR_RETURN(parsed.tensors[name], Tensor(name, entry));
      }
    }
    PIPELAB_RETURN_IF_ERROR(CheckPlaces());
    return parsed;
  }

 private:
  struct Place {
    int64_t begin, end;
    std::string name;
  };

  absl::Status Error(absl::string_view fault) const {
    return absl::DataLossError(absl::StrCat(file_, ": ", fault));
  }
  absl::Status Error(absl::string_view tensor, absl::string_view fault) const {
    return Error(absl::StrCat("tensor \"", tensor, "\": ", fault));
  }

  // Leaves the arrays in data_.
  absl::StatusOr<json> Header() {
    if (contents_.size() < kLengthBytes) {
      return Error(absl::StrCat(contents_.size(), " bytes; a safetensors file begins with ",
                                kLengthBytes, " bytes of header length"));
    }
    uint64_t length = 0;
    std::memcpy(&length, contents_.data(), kLengthBytes);
    const absl::string_view rest = contents_.substr(kLengthBytes);
    if (length > rest.size() || length > kMostHeaderBytes) {
      return Error(absl::StrCat("a header of ", length, " bytes; ", rest.size(),
                                " follow in the file, and at most ", kMostHeaderBytes,
                                " are read"));
    }
    const absl::string_view text = rest.substr(0, length);
    data_ = rest.substr(length);
    absl::StatusOr<json> header = ParseJson(text, absl::StrCat(file_, ": header"));
    if (!header.ok()) return absl::DataLossError(header.status().message());
    if (!header->is_object()) return Error("the header is not a JSON object");
    return header;
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

  absl::StatusOr<const Type*> TypeOf(const std::string& name, const json& entry) const {
    const auto it = entry.find("dtype");
    if (it == entry.end() || !it->is_string()) return Error(name, "no string \"dtype\"");
    const std::string& dtype = it->get_ref<const std::string&>();
    for (const Type& type : Types()) {
      if (type.name == dtype) return &type;
    }
    return Error(name, absl::StrCat("dtype \"", dtype, "\"; F32, I32 and I64 can be read"));
  }

  absl::StatusOr<StoredTensor> Tensor(const std::string& name, const json& entry) {
    if (!entry.is_object()) return Error(name, "its entry is not a JSON object");
    PIPELAB_ASSIGN_OR_RETURN(const Type* type, TypeOf(name, entry));
    StoredTensor tensor;
    PIPELAB_ASSIGN_OR_RETURN(tensor.shape, Numbers(name, entry, "shape"));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                             Numbers(name, entry, "data_offsets"));
    const auto size = static_cast<int64_t>(data_.size());
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > size) {
      return Error(name, absl::StrCat("data_offsets [", absl::StrJoin(offsets, ","),
                                      "]; the file has ", size, " bytes of data"));
    }
    // Stops before the product can leave 64 bits: it is bounded by the bytes that there are.
    const int64_t bytes = offsets[1] - offsets[0];
    int64_t elements = std::count(tensor.shape.begin(), tensor.shape.end(), 0) > 0 ? 0 : 1;
    for (const int64_t dimension : tensor.shape) {
      if (elements == 0) break;
      elements = dimension > bytes / elements ? bytes + 1 : elements * dimension;
    }
    if (elements > bytes / type->bytes || elements * type->bytes != bytes) {
      return Error(name, absl::StrCat(bytes, " bytes of data; its shape is [",
                                      absl::StrJoin(tensor.shape, ","), "] of ", type->name));
    }
    tensor.values = type->none;
    std::visit(
        [&](auto& values) {
          values.resize(elements);
          if (bytes > 0) std::memcpy(values.data(), data_.data() + offsets[0], bytes);
        },
        tensor.values);
    places_.push_back({offsets[0], offsets[1], name});
    return tensor;
  }

  // Neither overlaps nor gaps: bytes that two tensors share, or none has, are a damaged header's.
  absl::Status CheckPlaces() {
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    int64_t end = 0;
    for (const Place& place : places_) {
      if (place.begin != end) {
        return Error(place.name, absl::StrCat("data at byte ", place.begin, "; ",
                                              place.begin < end ? "overlaps the data before it"
                                                                : "leaves a gap behind the data",
                                              ", which ends at byte ", end));
      }
      end = place.end;
    }
    if (end != static_cast<int64_t>(data_.size())) {
      return Error(absl::StrCat(data_.size(), " bytes of data; the header's tensors have ", end));
    }
    return absl::OkStatus();
  }

  const absl::string_view contents_;
  const std::string file_;
  absl::string_view data_;
  std::vector<Place> places_;
};

}  // namespace

std::string SerializeSafetensors(const Safetensors& file) {
  json header = json::object();
  if (!file.metadata.empty()) header[kMetadata] = file.metadata;
  // Wide elements first, so that each array is aligned.
  std::vector<std::pair<const std::string*, const StoredTensor*>> order;
  for (const auto& [name, tensor] : file.tensors) order.emplace_back(&name, &tensor);
  const auto width = [](const StoredTensor& t) { return Types()[t.values.index()].bytes; };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return width(*a.second) > width(*b.second);
  });
  int64_t offset = 0;
  for (const auto& [name, tensor] : order) {
    CHECK_NE(*name, kMetadata);
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
  std::string contents(kLengthBytes, '\0');
  std::memcpy(contents.data(), &length, kLengthBytes);
  contents.reserve(kLengthBytes + text.size() + offset);
  contents += text;
  for (const auto& [name, tensor] : order) absl::StrAppend(&contents, BytesOf(*tensor));
  return contents;
}

absl::StatusOr<Safetensors> ParseSafetensors(absl::string_view contents, absl::string_view file) {
  return Parser(contents, file).Parse();
}

absl::Status WriteSafetensors(absl::string_view path, const Safetensors& file) {
  return WriteFileAtomically(path, SerializeSafetensors(file));
}

absl::StatusOr<Safetensors> ReadSafetensors(absl::string_view path) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseSafetensors(contents, path);
}

}  // namespace pipelab
