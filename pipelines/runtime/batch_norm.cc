#include "pipelines/runtime/batch_norm.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

// Calls fn(group) for the group of each copy of a stage that has a batch normalisation and is on
// several devices.
template <typename Fn>
void ForEachGroup(const ModelGraph& graph, const ModelPartition& partition,
                  const Schedule& schedule, Fn&& fn) {
  for (const auto& replica : schedule.placement.groups) {
    for (int stage = 0; stage < partition.num_stages(); ++stage) {
      if (replica[stage].size() > 1 && StageHasBatchNorm(graph, partition, stage)) {
        fn(stage, replica[stage]);
      }
    }
  }
}

}  // namespace

bool StageHasBatchNorm(const ModelGraph& graph, const ModelPartition& partition, int stage) {
  const std::vector<int>& layers = partition.layers[stage];
  return std::any_of(layers.begin(), layers.end(),
                     [&](int layer) { return HasBatchNorm(graph.layers[layer]); });
}

absl::Status CheckBatchNorm(const ModelGraph& graph, const ModelPartition& partition,
                            const Schedule& schedule, BatchNormCopies batch_norm) {
  if (batch_norm == BatchNormCopies::kOwn) return absl::OkStatus();
  absl::Status status;
  ForEachGroup(graph, partition, schedule, [&](int stage, const std::vector<int>& group) {
    for (int d : group) {
      if (!status.ok() || schedule.order[d] == schedule.order[group[0]]) continue;
      status = absl::InvalidArgumentError(absl::StrCat(
          "--batch_norm=synchronised: devices ", group[0], " and ", d, " share stage ", stage,
          " and must run the same actions in the same order; --batch_norm=own does without"));
    }
  });
  return status;
}

std::vector<int> NormParts(const ModelGraph& graph, const ModelPartition& partition,
                           const Schedule& schedule, BatchNormCopies batch_norm) {
  std::vector<int> parts;
  if (batch_norm == BatchNormCopies::kSynchronised) return parts;
  ForEachGroup(graph, partition, schedule, [&](int stage, const std::vector<int>& group) {
    parts.resize(graph.layers.size(), 1);
    for (int layer : partition.layers[stage]) parts[layer] = static_cast<int>(group.size());
  });
  return parts;
}

bool SumByCopy(const Schedule& schedule, SerialOptions* serial) {
  const int copies = schedule.GroupSize(0);
  if (schedule.placement.num_replicas() > 1 || !schedule.micro_batches_of_stage.empty() ||
      serial->micro_batch_size % copies != 0) {
    return false;
  }
  for (int stage = 1; stage < schedule.num_stages(); ++stage) {
    if (schedule.GroupSize(stage) != copies) return false;
  }
  serial->copies = copies;
  serial->norm_parts.clear();
  return true;
}

std::string BatchNormNote(const ModelGraph& graph, const ModelPartition& partition,
                          const Schedule& schedule, BatchNormCopies batch_norm) {
  bool any = false;
  ForEachGroup(graph, partition, schedule, [&](int, const std::vector<int>&) { any = true; });
  if (!any) return "";
  return batch_norm == BatchNormCopies::kSynchronised
             ? "batch normalisation: synchronised, over the rows of all copies of a stage"
             : "batch normalisation: each copy by its own rows, as does the serial loop; running "
               "statistics, in checkpoints too, are the first copy's";
}

}  // namespace pipelab
