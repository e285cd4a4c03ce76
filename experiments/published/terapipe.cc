#include "experiments/published/terapipe.h"

#include <utility>

#include "experiments/published/read_all.h"
#include "experiments/published/terapipe_file.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostTeraPipeSize = 1 << 20;

absl::StatusOr<PublishedTeraPipeRow> ReadTeraPipeRow(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"row", "model", "gpus", "batch", "data", "pipeline",
                                            "tensor", "without", "with", "gain", "tag"}));
  PublishedTeraPipeRow row;
  for (const auto& [key, field] :
       {std::make_pair("row", &row.row), std::make_pair("gpus", &row.gpus),
        std::make_pair("batch", &row.batch), std::make_pair("data", &row.data),
        std::make_pair("pipeline", &row.pipeline), std::make_pair("tensor", &row.tensor)}) {
    PIPELAB_ASSIGN_OR_RETURN(*field, object.Integer(key, 1, kMostTeraPipeSize));
  }
  PIPELAB_ASSIGN_OR_RETURN(row.model, object.String("model"));
  PIPELAB_ASSIGN_OR_RETURN(row.tag, object.String("tag"));
  if (object.Has("gain")) {
    PIPELAB_ASSIGN_OR_RETURN(row.gain, object.Number("gain"));
  } else {
    PIPELAB_ASSIGN_OR_RETURN(row.without_slices, object.Number("without"));
    PIPELAB_ASSIGN_OR_RETURN(row.with_slices, object.Number("with"));
    row.gain = row.without_slices / row.with_slices;
  }
  if (row.data * row.pipeline * row.tensor != row.gpus) {
    return object.Error("gpus", "must be data x pipeline x tensor");
  }
  if (row.batch % row.data != 0) return object.Error("batch", "must be a multiple of data");
  return row;
}

}  // namespace

absl::StatusOr<TeraPipePaper> ParseTeraPipePaper(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "cluster", "rows"}));
  TeraPipePaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(paper.cluster, file.String("cluster"));
  PIPELAB_ASSIGN_OR_RETURN(paper.rows, ReadAll(file, "rows", ReadTeraPipeRow));
  return paper;
}

absl::StatusOr<TeraPipePaper> PublishedTeraPipe() {
  return ParseTeraPipePaper(TeraPipeFile()[0].text, "experiments/published/terapipe.json");
}

}  // namespace pipelab
