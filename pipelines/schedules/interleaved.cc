// Interleaved 1F1B, depth first (Narayanan et al., "Efficient Large-Scale Language Model Training
// on GPU Clusters Using Megatron-LM", SC 2021): V stages a device, micro-batches in groups of P. A
// device runs a group through its first stage, then through its second, and so on, before it takes
// the next group.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckGroups(const SchemeParams& params) {
  const int rest = params.micro_batches % params.devices;
  if (rest == 0) return absl::OkStatus();
  const int below = params.micro_batches - rest;
  return absl::InvalidArgumentError(absl::StrCat(
      "--micro_batches=", params.micro_batches,
      ": must be a multiple of --devices=", params.devices,
      "; nearest: ", below > 0 ? absl::StrCat(below, " or ") : "", below + params.devices));
}

}  // namespace

absl::StatusOr<Schedule> MakeInterleaved(const SchemeParams& params) {
  if (params.chunks == 1) return Make1F1B(params);
  PIPELAB_RETURN_IF_ERROR(CheckGroups(params));
  const int devices = params.devices, chunks = params.chunks;
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < devices; ++d) {
    std::vector<Action> forwards, backwards;
    for (int group = 0; group < params.micro_batches; group += devices) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        for (int m = group; m < group + devices; ++m) {
          forwards.push_back(Forward(chunk * devices + d, m));
          backwards.push_back(Backward((chunks - 1 - chunk) * devices + d, m));
        }
      }
    }
    const int warm_up = 2 * (devices - 1 - d) + (chunks - 1) * devices;
    schedule.order[d] = OneForwardOneBackward(forwards, backwards, warm_up);
  }
  return schedule;
}

}  // namespace pipelab
