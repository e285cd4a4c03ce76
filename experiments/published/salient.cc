#include "experiments/published/salient.h"

#include <utility>

#include "experiments/published/read_all.h"
#include "experiments/published/salient_file.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostSalientSize = 1 << 30;

absl::StatusOr<PublishedSalientEpoch> ReadSalientEpoch(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"data", "targets", "total_ms", "train_ms", "prepare_ms",
                                            "transfer_ms", "salient_ms", "tag"}));
  PublishedSalientEpoch e;
  PIPELAB_ASSIGN_OR_RETURN(e.data, object.String("data"));
  PIPELAB_ASSIGN_OR_RETURN(e.targets, object.Integer("targets", 1, kMostSalientSize));
  for (const auto& [key, field] :
       {std::make_pair("total_ms", &e.total_ms), std::make_pair("train_ms", &e.train_ms),
        std::make_pair("prepare_ms", &e.prepare_ms), std::make_pair("transfer_ms", &e.transfer_ms),
        std::make_pair("salient_ms", &e.salient_ms)}) {
    PIPELAB_ASSIGN_OR_RETURN(*field, object.Number(key));
  }
  PIPELAB_ASSIGN_OR_RETURN(e.tag, object.String("tag"));
  return e;
}

absl::StatusOr<PublishedSalientCluster> ReadCluster(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"data", "targets", "seconds", "parameters", "tag"}));
  PublishedSalientCluster c;
  PIPELAB_ASSIGN_OR_RETURN(c.data, object.String("data"));
  PIPELAB_ASSIGN_OR_RETURN(c.targets, object.Integer("targets", 1, kMostSalientSize));
  PIPELAB_ASSIGN_OR_RETURN(c.parameters, object.Integer("parameters", 1, kMostSalientSize));
  PIPELAB_ASSIGN_OR_RETURN(c.seconds, object.Number("seconds"));
  PIPELAB_ASSIGN_OR_RETURN(c.tag, object.String("tag"));
  return c;
}

}  // namespace

absl::StatusOr<SalientPaper> ParseSalientPaper(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "epochs", "batch", "workers", "gpus16"}));
  SalientPaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(paper.batch, file.Integer("batch", 1, kMostSalientSize));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t workers, file.Integer("workers", 1, 1 << 10));
  paper.workers = static_cast<int>(workers);
  PIPELAB_ASSIGN_OR_RETURN(paper.epochs, ReadAll(file, "epochs", ReadSalientEpoch));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject cluster, file.Object("gpus16"));
  PIPELAB_ASSIGN_OR_RETURN(paper.gpus16, ReadCluster(cluster));
  return paper;
}

absl::StatusOr<SalientPaper> PublishedSalient() {
  return ParseSalientPaper(SalientFile()[0].text, "experiments/published/salient.json");
}

}  // namespace pipelab
