// Seq1F1B (Sun et al., "Seq1F1B: Efficient Sequence-Level Pipeline Parallelism for Large Language
// Model Training", 2024, arXiv 2406.03488): 1F1B whose items are slices of a micro-batch's tokens.
// Causal attention looks back, so forwards take a micro-batch's slices from the first to the last,
// and backwards from the last to the first: first in, first out between micro-batches, last in,
// first out within one. The first backward is of a last slice, so a device warms up with S - 1
// items more than 1F1B does.
//
// Device r holds P - r + S - 1 slices at the peak, each an S-th of a micro-batch, and the bubble is
// (P - 1) / (S M + P - 1). How long slices are is no part of a schedule: the paper cuts them so
// that their flops are equal, SlimPipe (arXiv 2504.14519), whose order this is too, into equal
// lengths.
//
// The interleaved form is Megatron-LM's interleaving of these items; V stages a device, groups of
// so many micro-batches as have P slices together. The zero-bubble form is ZB-H1's.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

int SlicesOf(const SchemeParams& params) {
  return params.slices > 0 ? params.slices : kDefaultSlices;
}

// Micro-batches of a group have at least as many slices together as there are devices.
SchemeParams GroupSizes(SchemeParams params) {
  const int slices = SlicesOf(params);
  params.devices = (params.devices + slices - 1) / slices;
  return params;
}

// Each of a device's passes, slice by slice.
std::vector<Action> InSlices(const std::vector<Action>& passes, int slices) {
  std::vector<Action> items;
  items.reserve(passes.size() * slices);
  for (const Action& pass : passes) {
    for (int k = 0; k < slices; ++k) {
      items.push_back(pass);
      const bool forward = pass.kind == ActionKind::kForward;
      items.back().slice = static_cast<int16_t>(forward ? k : slices - 1 - k);
    }
  }
  return items;
}

}  // namespace

absl::Status CheckSlicedGroups(const SchemeParams& params) {
  const int least = GroupSizes(params).devices;
  if (params.group_size == 0 || params.group_size >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--group_size=", params.group_size,
                   ": a group's slices are back at a device for its next "
                   "stage only after all ",
                   params.devices, " devices; use at least ", least, " micro-batches of ",
                   SlicesOf(params), " slices"));
}

absl::StatusOr<std::vector<int>> SlicedGroups(const SchemeParams& params) {
  return MicroBatchGroups(GroupSizes(params));
}

absl::StatusOr<Schedule> MakeSeq1F1B(const SchemeParams& params) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> groups, SlicedGroups(params));
  const int devices = params.devices, slices = SlicesOf(params), chunks = params.virtual_stages;
  const int largest = *std::max_element(groups.begin(), groups.end());
  Schedule schedule = LoopedPipeline(params);
  schedule.num_slices = slices;
  for (int d = 0; d < devices; ++d) {
    const int way_back = (chunks > 1 ? 2 : 1) * (devices - 1 - d);
    schedule.order[d] = OneForwardOneBackward(
        InSlices(DepthFirst(params, groups, ActionKind::kForward, d), slices),
        InSlices(DepthFirst(params, groups, ActionKind::kBackward, d), slices),
        (chunks - 1) * largest * slices + slices - 1 + way_back);
  }
  return schedule;
}

absl::StatusOr<Schedule> MakeZbSeq1F1B(const SchemeParams& params) {
  const int slices = SlicesOf(params);
  Schedule schedule = LoopedPipeline(params);
  schedule.num_slices = slices;
  const std::vector<int> all = {params.micro_batches};
  for (int d = 0; d < params.devices; ++d) {
    schedule.order[d] = SplitOneForwardOneBackward(
        InSlices(DepthFirst(params, all, ActionKind::kForward, d), slices),
        InSlices(DepthFirst(params, all, ActionKind::kBackwardInput, d), slices),
        slices - 1 + params.devices - 1 - d, /*lag=*/d);
  }
  return schedule;
}

}  // namespace pipelab
