#include "pipelines/schedules/zero_bubble.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/schedules/zero_bubble_run.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The first one is optimal for equal times at one and at two times 1F1B's memory; the others are
// the ones that were best somewhere over a grid of uneven times, hops and limits.
constexpr Heuristic kHeuristics[] = {
    {Heuristic::kForwardFirst, 4, 0},
    {Heuristic::kInTurn, 2, 0},
    {Heuristic::kInTurn, 4, 0},
    {Heuristic::kForwardFirst, 2, 0},
    {Heuristic::kForwardFirst, 2, 4},
    {Heuristic::kForwardFirst, 3, 2},
    {Heuristic::kForwardFirst, 3, 4},
    {Heuristic::kForwardFirst, 4, 2},
    {Heuristic::kForwardFirst, 4, 4},
    {Heuristic::kInputFirst, Heuristic::kNoCap, 0},
    {Heuristic::kInputFirst, Heuristic::kNoCap, 2},
    {Heuristic::kInputFirst, Heuristic::kNoCap, 4},
};

// What no order can do better.
struct Bounds {
  Bounds(const ZeroBubbleCosts& costs, int64_t m) {
    int64_t down = 0;        // until the first micro-batch reaches the stage
    int64_t up = 0;          // from the end of its I to the end of stage 0's
    int64_t round_trip = 0;  // from the begin of its first F to the begin of its first I
    for (const ZeroBubbleStage& s : costs.stages) {
      round_trip += s.forward.value() + s.backward_input.value() + 2 * s.hop.value();
    }
    round_trip -= 2 * costs.stages.back().hop.value();
    for (const ZeroBubbleStage& s : costs.stages) {
      const int64_t f = s.forward.value(), i = s.backward_input.value(),
                    w = s.backward_weight.value(), hop = s.hop.value();
      round_trip -= i;
      // It does all its work; and after its first I all the work that could not come before; and as
      // many micro-batches as it can hold go round together.
      const int64_t held = std::min(m, 1 + WaitingWeights(s, m, 1));
      const int64_t rounds = (m - 1) / held;  // before the last one
      const int64_t span_here =
          std::max({m * (f + i + w), round_trip + m * (i + w) + (m - ForwardsBeforeInput(s, m)) * f,
                    rounds * (round_trip + i + w) + round_trip + (m - rounds * held) * (i + w)});
      // Its last I follows the W that make room for its last F, and goes back to stage 0, which
      // then has a W to do.
      const int64_t last_back =
          m * (f + i) + (m - held) * w + up + costs.stages[0].backward_weight.value();
      span = std::max(span, span_here);
      makespan = std::max(makespan, down + std::max(span_here, last_back));
      down += f + hop;
      up += i + hop;
      round_trip -= f + 2 * hop;
    }
  }
  int64_t makespan = 0, span = 0;
};

absl::Status CheckCosts(const ZeroBubbleCosts& costs, int micro_batches) {
  constexpr size_t kMaxStages = std::numeric_limits<int16_t>::max();
  if (costs.stages.empty() || costs.stages.size() > kMaxStages) {
    return absl::InvalidArgumentError(
        absl::StrCat(costs.stages.size(), " stages: 1 to ", kMaxStages, " are possible"));
  }
  if (micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", micro_batches, ": a step needs at least 1 micro-batch"));
  }
  for (size_t d = 0; d < costs.stages.size(); ++d) {
    const ZeroBubbleStage& s = costs.stages[d];
    for (int64_t value : {s.forward.value(), s.backward_input.value(), s.backward_weight.value(),
                          s.kept.value(), s.kept_for_weight.value(), s.hop.value()}) {
      if (value < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("stage ", d, ": a time or size is negative (", value, ")"));
      }
    }
    if (s.memory_limit.value() < Reserved(s)) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", d, ": a memory limit of ",
                                                     s.memory_limit.value(), " is less than the ",
                                                     Reserved(s), " that one micro-batch takes"));
    }
  }
  return absl::OkStatus();
}

// With times the scheduler's order, or the one made by hand, or what that becomes as a guide.
absl::StatusOr<Schedule> MakeAutomatic(
    const SchemeParams& params, int activations,
    absl::StatusOr<Schedule> (*make_by_hand)(const SchemeParams&)) {
  ZeroBubbleCosts costs = ZeroBubbleCosts::Unit(params.devices, activations);
  if (params.times.forward.empty()) return MakeZeroBubble(costs, params.micro_batches);
  const PassLengths lengths = PassLengths::Of(params);
  for (int d = 0; d < params.devices; ++d) {
    ZeroBubbleStage& stage = costs.stages[d];
    stage.forward = Nanoseconds(lengths.forward[d]);
    stage.backward_input = Nanoseconds(lengths.recompute[d] + lengths.backward_input[d]);
    stage.backward_weight = Nanoseconds(lengths.backward_weight[d]);
    stage.hop = Nanoseconds(lengths.hop[d]);
  }
  PIPELAB_ASSIGN_OR_RETURN(const Schedule automatic, MakeZeroBubble(costs, params.micro_batches));
  PIPELAB_ASSIGN_OR_RETURN(const Schedule by_hand, make_by_hand(params));
  return BestOrder(lengths, activations, {by_hand, *params.for_equal_times, automatic},
                   {WithoutWeights(by_hand)}, params.limits);
}

}  // namespace

ZeroBubbleCosts ZeroBubbleCosts::Unit(int devices, int activations) {
  ZeroBubbleStage stage;
  stage.forward = stage.backward_input = stage.backward_weight = Nanoseconds(1);
  stage.kept = stage.kept_for_weight = Bytes(1);
  stage.memory_limit = Bytes(activations);
  ZeroBubbleCosts costs;
  costs.stages.assign(devices, stage);
  return costs;
}

Nanoseconds ZeroBubbleBound(const ZeroBubbleCosts& costs, int micro_batches) {
  return Nanoseconds(Bounds(costs, micro_batches).makespan);
}

absl::StatusOr<Schedule> MakeZeroBubble(const ZeroBubbleCosts& costs, int micro_batches) {
  PIPELAB_RETURN_IF_ERROR(CheckCosts(costs, micro_batches));
  SchemeParams params;
  params.devices = static_cast<int>(costs.stages.size());
  params.micro_batches = micro_batches;
  params.virtual_stages = 1;
  Schedule schedule = LoopedPipeline(params);
  const Bounds bounds(costs, micro_batches);
  Outcome best;
  for (const Heuristic& heuristic : kHeuristics) {
    Outcome outcome = RunHeuristic(costs, micro_batches, heuristic);
    if (best.order.empty() || outcome < best) best = std::move(outcome);
    if (best.makespan <= bounds.makespan && best.longest_span <= bounds.span) break;
  }
  schedule.order = std::move(best.order);
  schedule.name = "zero_bubble";
  return schedule;
}

int HeldInZb1p(const SchemeParams& params) { return params.devices; }

absl::StatusOr<Schedule> MakeZb1p(const SchemeParams& params) {
  return MakeAutomatic(params, HeldInZb1p(params), &MakeZbH1);
}

int HeldInZb2p(const SchemeParams& params) { return 2 * params.devices; }

absl::StatusOr<Schedule> MakeZb2p(const SchemeParams& params) {
  return MakeAutomatic(params, HeldInZb2p(params), &MakeZbH2);
}

}  // namespace pipelab
