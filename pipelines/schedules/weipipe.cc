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
//
// The paper has two zero-bubble variants, whose backwards are split into I and W. We know no more
// of them; these two orders are ours. A W must be where the sum of its stage's gradients comes by,
// once in P turns. So it can wait P turns, with what its forward kept. Where all devices begin a
// turn together (closed_forms.h, RingForm), some turns of weipipe are longer than a device's work
// in them:
//  * weipipe_zb1: the turns of weipipe. While the last devices have their first forwards alone, the
//    others leave out the W: device d those of stages s > d, in each round. They come a round
//    later, and in the end beside backwards that have no forward. 2/3 of the bubble, and up to 2 P
//    - 1 activations.
//  * weipipe_zb2: the turns of weipipe_naive. W's of stages s >= d wait for the forwards of the
//    next round, the others are beside their I. So devices are equally long in each turn but for
//    the first and the last P: 1/3 of weipipe's bubble, in P activations. As in the naive order a
//    sum of gradients makes two hops where it is added to once.
//
// tawpipe (Wu et al., "TawPipe: topology-aware weight pipeline parallelism for accelerating
// long-context large models training", AAAI 2026) has weipipe's order in groups of devices, the
// nodes. Each device keeps the weights that it owns. A group's devices run the same turn: a stage's
// weights come to each other group once, ahead of their turn, and go on to all its devices. The
// gradients of a group leave it as one sum (ir/weight_ring.h). The way of sums, and that the
// broadcast in a group is a message to each device, is ours.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

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

int WeightGroup(const SchemeParams& params) {
  if (params.group_size != 0) return params.group_size;
  int size = std::max(1, params.devices / 2);
  while (params.devices % size != 0) --size;
  return size;
}

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

absl::Status CheckTawPipe(const SchemeParams& params) {
  const int P = params.devices, g = params.group_size;
  if (g < 0 || (g > 0 && P % g != 0) || (g > 1 && g == P)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--group_size=", g, ": the devices of a node must divide --devices=", P,
                     " into two nodes or more; 0 is the most that do"));
  }
  return CheckWeiPipe(params);
}

absl::StatusOr<Schedule> MakeTawPipe(const SchemeParams& params) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeWeiPipe(params));
  schedule.weight_group = WeightGroup(params);
  return schedule;
}

absl::StatusOr<Schedule> MakeWeiPipeZb1(const SchemeParams& params) {
  Schedule schedule = RingOfDevices(params);
  const int P = params.devices, M = params.micro_batches;
  for (int d = 0; d < P; ++d) {
    std::vector<Action>& order = schedule.order[d];
    for (int m = d; m < M + P; m += P) {
      for (int j = 0; j < P; ++j) {
        const int stage = P - 1 - j;
        if (m >= P) {
          order.push_back(BackwardInput(stage, m - P));
          if (stage > d && m >= 2 * P) order.push_back(BackwardWeight(stage, m - 2 * P));
          if (stage <= d || m >= M) order.push_back(BackwardWeight(stage, m - P));
        }
        if (m < M) order.push_back(Forward(j, m));
      }
    }
  }
  return schedule;
}

absl::StatusOr<Schedule> MakeWeiPipeZb2(const SchemeParams& params) {
  Schedule schedule = RingOfDevices(params);
  const int P = params.devices, M = params.micro_batches;
  for (int d = 0; d < P; ++d) {
    std::vector<Action>& order = schedule.order[d];
    for (int m = d; m < M + P; m += P) {
      for (int j = 0; j < P; ++j) {
        if (m >= P && P - 1 - j >= d) order.push_back(BackwardWeight(P - 1 - j, m - P));
        if (m < M) order.push_back(Forward(j, m));
      }
      for (int stage = P - 1; stage >= 0 && m < M; --stage) {
        order.push_back(BackwardInput(stage, m));
        if (stage < d) order.push_back(BackwardWeight(stage, m));
      }
    }
  }
  return schedule;
}

}  // namespace pipelab
