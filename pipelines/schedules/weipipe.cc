// WeiPipe (Lin et al., "WeiPipe: weight pipeline parallelism for communication-effective
// long-context large model training", PPoPP 2025): activations stay where they are, and weights and
// their gradients travel round a ring of the P devices. Device d has all P stages of the
// micro-batches d, P + d, 2P + d and so on, a round of P at a time. Where weights are when is in
// ir/weight_ring.h.
//
// A turn is one stage on every device. Device d + 1 runs what device d did in the turn before.
//  * weipipe_naive: all forwards of a round, then all its backwards.
//  * weipipe: the forwards of a round beside the backwards of the one before, one of each in a turn
//    ("interleave"). So each turn has the same work. In it the weights of two stages move on, and
//    the gradients of one.
// Both hold P stage activations, those of one micro-batch.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

// All stages on each device; no actions.
Schedule RingOfDevices(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  schedule.weights_travel = true;
  auto& groups = schedule.placement.groups;
  groups.clear();
  for (int d = 0; d < params.devices; ++d) {
    groups.emplace_back(params.devices, std::vector<int>{d});
  }
  for (int m = 0; m < params.micro_batches; ++m) {
    schedule.placement.replica_of_micro_batch[m] = m % params.devices;
  }
  return schedule;
}

}  // namespace

absl::Status CheckWeiPipe(const SchemeParams& params) {
  if (params.micro_batches % params.devices != 0) {
    const int below = params.micro_batches / params.devices * params.devices;
    return absl::InvalidArgumentError(absl::StrCat(
        "--micro_batches=", params.micro_batches, ": each device runs as many; use a multiple of ",
        "--devices=", params.devices, "; nearest: ", below > 0 ? absl::StrCat(below, " or ") : "",
        below + params.devices));
  }
  if (params.data_parallel == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--data_parallel=", params.data_parallel,
      ": the devices of the ring are its data-parallel copies already; use --data_parallel=1"));
}

absl::StatusOr<Schedule> MakeWeiPipeNaive(const SchemeParams& params) {
  Schedule schedule = RingOfDevices(params);
  const int P = params.devices;
  for (int m = 0; m < params.micro_batches; ++m) {
    std::vector<Action>& order = schedule.order[m % P];
    for (int stage = 0; stage < P; ++stage) order.push_back(Forward(stage, m));
    for (int stage = P - 1; stage >= 0; --stage) order.push_back(Backward(stage, m));
  }
  return schedule;
}

absl::StatusOr<Schedule> MakeWeiPipe(const SchemeParams& params) {
  Schedule schedule = RingOfDevices(params);
  const int P = params.devices;
  for (int d = 0; d < P; ++d) {
    for (int m = d; m < params.micro_batches + P; m += P) {
      for (int stage = 0; stage < P; ++stage) {
        if (m >= P) schedule.order[d].push_back(Backward(P - 1 - stage, m - P));
        if (m < params.micro_batches) schedule.order[d].push_back(Forward(stage, m));
      }
    }
  }
  return schedule;
}

}  // namespace pipelab
