#include "experiments/published/gsplit.h"

#include <cmath>
#include <utility>

#include "experiments/published/gsplit_file.h"
#include "experiments/published/read_all.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

absl::StatusOr<PublishedGraphEpoch> ReadGraphEpoch(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"graph", "model", "system", "sample", "load", "train", "total", "tag"}));
  PublishedGraphEpoch epoch;
  for (const auto& [key, field] :
       {std::make_pair("graph", &epoch.graph), std::make_pair("model", &epoch.model),
        std::make_pair("system", &epoch.system), std::make_pair("tag", &epoch.tag)}) {
    PIPELAB_ASSIGN_OR_RETURN(*field, object.String(key));
  }
  for (const auto& [key, field] :
       {std::make_pair("sample", &epoch.sample), std::make_pair("load", &epoch.load),
        std::make_pair("train", &epoch.train), std::make_pair("total", &epoch.total)}) {
    PIPELAB_ASSIGN_OR_RETURN(*field, object.Number(key));
  }
  // Three figures and their sum, each rounded to 0.01 s.
  if (std::abs(epoch.sample + epoch.load + epoch.train - epoch.total) > 0.0201) {
    return object.Error("total", "must be sample + load + train");
  }
  return epoch;
}

absl::StatusOr<PublishedGraphParts> ReadParts(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"graph", "method", "largest", "crossing", "tag"}));
  PublishedGraphParts parts;
  PIPELAB_ASSIGN_OR_RETURN(parts.graph, object.String("graph"));
  PIPELAB_ASSIGN_OR_RETURN(parts.method, object.String("method"));
  PIPELAB_ASSIGN_OR_RETURN(parts.largest, object.Number("largest"));
  PIPELAB_ASSIGN_OR_RETURN(parts.crossing, object.Number("crossing"));
  PIPELAB_ASSIGN_OR_RETURN(parts.tag, object.String("tag"));
  return parts;
}

}  // namespace

const PublishedGraphEpoch* GSplitPaper::Epoch(absl::string_view graph, absl::string_view model,
                                              absl::string_view system) const {
  for (const PublishedGraphEpoch& e : epochs) {
    if (e.graph == graph && e.model == model && e.system == system) return &e;
  }
  return nullptr;
}

absl::StatusOr<GSplitPaper> ParseGSplitPaper(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "cluster", "epochs", "partitions"}));
  GSplitPaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(paper.cluster, file.String("cluster"));
  PIPELAB_ASSIGN_OR_RETURN(paper.epochs, ReadAll(file, "epochs", ReadGraphEpoch));
  PIPELAB_ASSIGN_OR_RETURN(paper.partitions, ReadAll(file, "partitions", ReadParts));
  return paper;
}

absl::StatusOr<GSplitPaper> PublishedGSplit() {
  return ParseGSplitPaper(GSplitFile()[0].text, "experiments/published/gsplit.json");
}

}  // namespace pipelab
