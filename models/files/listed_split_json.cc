#include "models/files/listed_split_json.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostDivisibleSize = int64_t{1} << 50;

std::string InBytes(Bytes b) { return absl::StrCat(b.value(), " B"); }

// What of a layer every device of a group has or does: "all", or parts by name.
absl::Status ReadWhole(const JsonObject& object, const ListedLayer& layer, ListedSplit* split) {
  if (object.HasString("whole")) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string all, object.String("whole"));
    if (all != "all") {
      return object.Error("whole", "\"", all, "\": must be \"all\", or an object with \"work\", ",
                          "\"kept\" or \"parameters\"");
    }
    *split = layer.Whole();
    return absl::OkStatus();
  }
  if (!object.Has("whole")) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject whole, object.Object("whole"));
  PIPELAB_RETURN_IF_ERROR(whole.AllowKeys({"work", "kept", "parameters"}));
  if (whole.Has("work")) {
    PIPELAB_ASSIGN_OR_RETURN(split->whole_work, whole.Number("work"));
    if (!(split->whole_work >= 0 && split->whole_work <= 1)) {
      return whole.Error("work", split->whole_work, ": must be a share from 0 to 1");
    }
  }
  if (whole.Has("kept")) {
    PIPELAB_ASSIGN_OR_RETURN(split->whole_kept, whole.Quantity<Bytes>("kept"));
    if (split->whole_kept > layer.kept) {
      return whole.Error("kept", "more than the layer's ", layer.kept.value(), " B");
    }
  }
  if (whole.Has("parameters")) {
    PIPELAB_ASSIGN_OR_RETURN(split->whole_parameters,
                             whole.Integer("parameters", 0, layer.parameters));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ListedSplit> ReadListedSplit(const JsonObject& layer_object,
                                            const ListedLayer& layer) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, layer_object.Object("tensor_parallel"));
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"divides", "forward_sum", "backward_sum", "whole", "tokens"}));
  ListedSplit split;
  PIPELAB_RETURN_IF_ERROR(ReadWhole(object, layer, &split));
  // A layer that divides its work says of what it has T parts, and what makes its output whole
  // again: leaving that out would make a group free.
  if (split.whole_work < 1 || object.Has("divides")) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject divides, object.Object("divides"));
    for (const std::string& name : divides.Keys()) {
      TensorDimension dimension;
      dimension.name = name;
      PIPELAB_ASSIGN_OR_RETURN(dimension.size, divides.Integer(name, 1, kMostDivisibleSize));
      split.divides.push_back(std::move(dimension));
    }
    if (split.divides.empty()) {
      return object.Error("divides", "needs a size that the group divides, such as \"heads\": 32");
    }
  }
  for (const auto& [key, sum] : {std::make_pair("forward_sum", &split.forward_sum),
                                 std::make_pair("backward_sum", &split.backward_sum)}) {
    if (split.whole_work == 1 && !object.Has(key)) continue;
    if (!object.Has(key)) {
      return object.Error(key, "missing: what the group sums, of a sample; \"0 B\" for nothing");
    }
    PIPELAB_ASSIGN_OR_RETURN(*sum, object.Quantity<Bytes>(key));
  }
  if (object.Has("tokens")) {
    PIPELAB_ASSIGN_OR_RETURN(split.tokens, object.Integer("tokens", 1, kMostDivisibleSize));
  }
  return split;
}

json WrittenListedSplit(const ListedSplit& split) {
  json object = {{"whole",
                  {{"work", split.whole_work},
                   {"kept", InBytes(split.whole_kept)},
                   {"parameters", split.whole_parameters}}},
                 {"forward_sum", InBytes(split.forward_sum)},
                 {"backward_sum", InBytes(split.backward_sum)}};
  for (const TensorDimension& d : split.divides) object["divides"][d.name] = d.size;
  if (split.tokens > 0) object["tokens"] = split.tokens;
  return object;
}

}  // namespace pipelab
