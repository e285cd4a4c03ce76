#include "models/files/network_layer_keys.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostSize = int64_t{1} << 20;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

std::string NetworkLayerKeys::FirstGives() const {
  return absl::StrCat("layer \"", s_.inputs[0].name, "\" gives ",
                      ShapeText(s_.inputs[0].value.shape));
}

absl::Status NetworkLayerKeys::InputError(const NetworkLayerInput& input,
                                          absl::string_view what) const {
  return object_.Error("inputs", "layer \"", input.name, "\" gives ", ShapeText(input.value.shape),
                       "; ", what);
}

absl::Status NetworkLayerKeys::Allow(std::vector<absl::string_view> keys, size_t least,
                                     size_t most) const {
  keys.insert(keys.begin(), {"name", "kind", "inputs"});
  for (const std::string& key : object_.Keys()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    return object_.Error(key, "unknown; a ", s_.kind, " knows ", absl::StrJoin(keys, ", "));
  }
  const size_t n = s_.inputs.size();
  if (n >= least && n <= most) return absl::OkStatus();
  return object_.Error("inputs", n, " layers; a ", s_.kind, " takes ",
                       least == most ? absl::StrCat(least) : absl::StrCat(least, " to ", most));
}

absl::Status NetworkLayerKeys::CheckRows(const NetworkLayerInput& input) const {
  if (input.value.shape.size() == 2) return absl::OkStatus();
  return InputError(input, absl::StrCat("a ", s_.kind, " takes rows of numbers"));
}

absl::Status NetworkLayerKeys::TakeRows(int64_t* rows, int64_t* numbers) const {
  PIPELAB_RETURN_IF_ERROR(CheckRows(s_.inputs[0]));
  *rows = s_.inputs[0].value.shape[0];
  *numbers = s_.inputs[0].value.shape[1];
  return absl::OkStatus();
}

absl::Status NetworkLayerKeys::TakeImage(int64_t* height, int64_t* width, int64_t* channels) const {
  const NetworkValue& value = s_.inputs[0].value;
  if (value.height == 0) {
    return InputError(s_.inputs[0], absl::StrCat("a ", s_.kind, " takes the pixels of an image"));
  }
  *height = value.height;
  *width = value.width;
  *channels = value.shape[1];
  return absl::OkStatus();
}

absl::Status NetworkLayerKeys::TakeDataImage(int64_t* height, int64_t* width,
                                             int64_t* channels) const {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, Shape("shape"));
  if (shape.size() != 3) return object_.Error("shape", "must be [height, width, channels]");
  *height = shape[0];
  *width = shape[1];
  *channels = shape[2];
  return absl::OkStatus();
}

absl::StatusOr<int64_t> NetworkLayerKeys::Size(absl::string_view key, int64_t if_absent) const {
  if (if_absent > 0 && !object_.Has(key)) return if_absent;
  return object_.Integer(key, 1, kMostSize);
}

absl::StatusOr<bool> NetworkLayerKeys::Flag(absl::string_view key, bool if_absent) const {
  if (!object_.Has(key)) return if_absent;
  return object_.Bool(key);
}

absl::StatusOr<double> NetworkLayerKeys::Dropout() const {
  if (!object_.Has("dropout")) return 0.0;
  PIPELAB_ASSIGN_OR_RETURN(const double dropout, object_.Number("dropout"));
  if (dropout >= 0 && static_cast<float>(dropout) < 1) return dropout;
  return object_.Error("dropout", dropout, ": must be at least 0 and below 1");
}

absl::StatusOr<int> NetworkLayerKeys::Choice(absl::string_view key,
                                             const std::vector<std::string>& words,
                                             const char* if_absent) const {
  std::string word = if_absent == nullptr ? "" : if_absent;
  if (if_absent == nullptr || object_.Has(key)) {
    PIPELAB_ASSIGN_OR_RETURN(word, object_.String(key));
  }
  const auto it = std::find(words.begin(), words.end(), word);
  if (it != words.end()) return static_cast<int>(it - words.begin());
  return object_.Error(key, "\"", word, "\" is unknown; there are ", absl::StrJoin(words, ", "));
}

absl::StatusOr<std::vector<int64_t>> NetworkLayerKeys::Shape(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, object_.List(key));
  std::vector<int64_t> shape;
  int64_t product = 1;
  for (const nlohmann::json& n : *list) {
    const double size = n.is_number_integer() ? n.get<double>() : 0;
    if (!(size >= 1 && size <= kMostSize) || shape.size() == 3 ||
        (product *= static_cast<int64_t>(size)) > int64_t{1} << 30) {
      shape.clear();
      break;
    }
    shape.push_back(static_cast<int64_t>(size));
  }
  if (!shape.empty()) return shape;
  return object_.Error(key, "must be one to three whole numbers from 1, such as [28, 28, 1]");
}

}  // namespace pipelab
