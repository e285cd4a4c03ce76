#include "pipelines/planners/plan_export.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/text.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status ExportError(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("PyTorch's schedule CSV: ", parts...));
}

}  // namespace

absl::StatusOr<std::string> PyTorchCsv(const PlanPipeline& pipeline) {
  const int64_t copies = pipeline.Copies(0);
  for (int s = 0; s < pipeline.partition.num_stages(); ++s) {
    if (pipeline.Copies(s) != copies) {
      return ExportError("stage ", s, " has ", pipeline.Copies(s), " copies, and stage 0 ", copies);
    }
  }
  Schedule ranks = pipeline.schedule;
  ranks.order.clear();
  ranks.placement.num_devices = ranks.num_stages();
  for (int s = 0; s < ranks.num_stages(); ++s) {
    std::vector<int>& group = ranks.placement.groups[0][s];
    ranks.order.push_back(pipeline.schedule.order[group[0]]);
    group = {s};
  }
  const absl::StatusOr<std::string> csv = ToCsv(ranks);
  if (!csv.ok()) return ExportError(csv.status().message());
  return csv;
}

}  // namespace pipelab
