// Chimera (Li and Hoefler, SC 2021): two replicas of the model, one pipeline down the devices and
// one up; or 2f replicas, f pipelines each way.
//
// In a unit of P micro-batches half go each way. With forwards and backwards of equal length, the
// i-th micro-batch of a direction is in stage s at slot s + 2i forward and 2P - 1 - s + 2i backward
// (FillUnits). On device d the stages of the two directions are d and P - 1 - d, whose slots have
// different parity (P is even), and a unit's forwards of one direction end before the other's
// backwards begin, so no two actions of a device share a slot: the slots are the order. Units
// follow one another every 2P slots (direct concatenation), where the same argument holds between
// the backwards of one unit and the forwards of the next.
//
// Numbers of micro-batches that the replicas do not divide: the last unit is short, and the first
// replicas take one more of it than the others (of halves, two: both go one way). Its slots are
// some of a whole unit's.
//
// 2f replicas: the j-th pair of pipelines starts jP/f devices further on, around the end. A replica
// takes P/2f micro-batches of a unit, so that the f pipelines of a direction occupy a device one
// after the other, in slots of one parity (P/f is even).
//
// More micro-batches than P (the paper's section 3.5), --concatenation:
//  * direct: one unit after another, as above.
//  * forward_doubling: units of 2P micro-batches, whose forwards go two in a slot. A backward takes
//    as long as two forwards, so slots are equal then and units leave no gap between them: they
//    follow one another every 3P slots. It holds up to twice the activations.
//  * backward_halving: the same slots; a forward takes one micro-batch of full size, and its
//    backward is done in two halves. So the M micro-batches asked for are 2M of half the size,
//    whose forwards go two in a slot. Idle time is half of forward doubling's and memory is no more
//    than direct concatenation's P activations of full size. Smaller backwards use a device less
//    well.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/bidirectional.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

int ReplicasOf(const SchemeParams& params) { return params.replicas == 0 ? 2 : params.replicas; }

}  // namespace

absl::Status CheckChimera(const SchemeParams& params) {
  const int devices = params.devices, replicas = ReplicasOf(params);
  PIPELAB_RETURN_IF_ERROR(
      CheckEven("--devices", devices, "the two directions take turns on a device"));
  if (replicas < 2 || replicas % 2 != 0 || devices % replicas != 0) {
    std::string right;
    for (int r = 2; r <= devices; r += 2) {
      if (devices % r == 0) absl::StrAppend(&right, right.empty() ? "" : ", ", r);
    }
    return absl::InvalidArgumentError(absl::StrCat("--replicas=", replicas,
                                                   ": must be even and divide --devices=", devices,
                                                   "; use one of ", right));
  }
  if (params.concatenation != Concatenation::kDirect && replicas != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--concatenation=", ConcatenationName(params.concatenation), ": not with --replicas=",
        replicas, ", whose backwards would meet on a device; use --replicas=2"));
  }
  if (params.micro_batches < replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", params.micro_batches,
                     ": each replica takes one; use at least --replicas=", replicas));
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> MakeChimera(const SchemeParams& params) {
  const bool halves = params.concatenation == Concatenation::kBackwardHalving;
  SchemeParams sizes = params;
  if (halves) sizes.micro_batches *= 2;
  Schedule schedule = LoopedPipeline(sizes);
  const int devices = sizes.devices, pairs = ReplicasOf(sizes) / 2;
  std::vector<std::vector<std::vector<int>>>& groups = schedule.placement.groups;
  groups.clear();
  for (int j = 0; j < pairs; ++j) {
    std::vector<std::vector<int>> down, up;
    for (int stage = 0; stage < devices; ++stage) {
      const int device = (stage + j * (devices / pairs)) % devices;
      down.push_back({device});
      up.push_back({devices - 1 - device});
    }
    groups.push_back(down);
    groups.push_back(up);
  }
  FillUnits(&schedule, sizes.concatenation == Concatenation::kDirect ? 1 : 2, halves ? 2 : 1);
  schedule.eager_reductions = true;
  return schedule;
}

}  // namespace pipelab
