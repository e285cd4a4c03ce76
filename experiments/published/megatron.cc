#include "experiments/published/megatron.h"

#include <utility>

#include "experiments/published/megatron_file.h"
#include "experiments/published/read_all.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostMegatronSize = 1 << 24;

absl::StatusOr<PublishedMegatronRow> ReadMegatronRow(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"parameters", "heads", "hidden", "layers", "tensor", "pipeline", "gpus",
                        "batch", "micro_batch", "virtual_stages", "tflops", "tag"}));
  PublishedMegatronRow row;
  for (const auto& [key, field] :
       {std::make_pair("heads", &row.heads), std::make_pair("hidden", &row.hidden),
        std::make_pair("layers", &row.layers), std::make_pair("tensor", &row.tensor),
        std::make_pair("pipeline", &row.pipeline), std::make_pair("gpus", &row.gpus),
        std::make_pair("batch", &row.batch), std::make_pair("micro_batch", &row.micro_batch),
        std::make_pair("virtual_stages", &row.virtual_stages)}) {
    PIPELAB_ASSIGN_OR_RETURN(*field, object.Integer(key, 1, kMostMegatronSize));
  }
  PIPELAB_ASSIGN_OR_RETURN(row.parameters, object.Number("parameters"));
  PIPELAB_ASSIGN_OR_RETURN(row.tflops, object.Number("tflops"));
  PIPELAB_ASSIGN_OR_RETURN(row.tag, object.String("tag"));
  if (row.gpus % (row.tensor * row.pipeline) != 0) {
    return object.Error("gpus", "must be a multiple of tensor x pipeline");
  }
  if (row.batch % (row.data() * row.micro_batch) != 0) {
    return object.Error("batch", "must be a multiple of the data-parallel size x micro_batch");
  }
  if (row.layers % (row.pipeline * row.virtual_stages) != 0) {
    return object.Error("layers", "must be a multiple of pipeline x virtual_stages");
  }
  return row;
}

}  // namespace

Flops MegatronPaper::FlopsOf(const PublishedMegatronRow& row) const {
  const double b = static_cast<double>(row.batch), s = static_cast<double>(tokens);
  const double l = static_cast<double>(row.layers), h = static_cast<double>(row.hidden);
  const double v = static_cast<double>(vocabulary);
  return Flops(96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)));
}

absl::StatusOr<MegatronPaper> ParseMegatronPaper(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "cluster", "tokens", "vocabulary", "rows"}));
  MegatronPaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(paper.cluster, file.String("cluster"));
  PIPELAB_ASSIGN_OR_RETURN(paper.tokens, file.Integer("tokens", 1, kMostMegatronSize));
  PIPELAB_ASSIGN_OR_RETURN(paper.vocabulary, file.Integer("vocabulary", 1, kMostMegatronSize));
  PIPELAB_ASSIGN_OR_RETURN(paper.rows, ReadAll(file, "rows", ReadMegatronRow));
  return paper;
}

absl::StatusOr<MegatronPaper> PublishedMegatron() {
  return ParseMegatronPaper(MegatronFile()[0].text, "experiments/published/megatron.json");
}

}  // namespace pipelab
