#include "pipelines/synthesis/check_proof.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/validate.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/synthesis/check_graph.h"
#include "pipelines/synthesis/check_tree.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status Refused(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("proof: ", why));
}

CostTable CostsOf(const SynthesisProblem& p, const Schedule& schedule) {
  CostTable costs = CostTable::Unit(schedule);
  for (int slice = 0; slice < p.slices; ++slice) {
    SliceCosts of_slice = {costs.stages, costs.edge_bytes};
    for (int s = 0; s < p.stages(); ++s) {
      StageCost& stage = of_slice.stages[s];
      const int part = s * p.slices + slice;
      stage.forward = Nanoseconds(p.lengths.forward[part]);
      stage.backward_input = Nanoseconds(p.lengths.backward_input[part]);
      stage.backward_weight = Nanoseconds(p.lengths.backward_weight[part]);
      stage.recompute = Nanoseconds(p.lengths.recompute[part]);
      if (p.MayOffload(s)) stage.memory.kept = Bytes(p.host_copy[part]);  // a byte a nanosecond
    }
    costs.slices.push_back(std::move(of_slice));
  }
  if (p.slices == 1) {
    costs.stages = std::move(costs.slices[0].stages);
    costs.slices.clear();
  }
  costs.host_bandwidth = BytesPerSecond(1e9);
  costs.network = UnconnectedNetwork(p.devices);
  for (int s = 0; s + 1 < p.stages(); ++s) {
    const int a = p.device_of_stage[s], b = p.device_of_stage[s + 1];
    if (a == b) continue;
    costs.network.RouteOf(a, b).latency = Nanoseconds(p.lengths.hop[s]);
    costs.network.RouteOf(b, a).latency = Nanoseconds(p.lengths.hop[s]);
  }
  return costs;
}

// Each unit that a stage sends goes out behind its F, in order, and is asked back before its I, in
// the order of the stage's I and behind all forwards of its micro-batch.
class CheckedTrips {
 public:
  explicit CheckedTrips(const SynthesisProblem& p) : slices_(p.slices), stages_(p.stages()) {}

  // The slice that the symbol is of; -1: it is out of order.
  int SliceOf(Symbol symbol) {
    Stage& s = stages_[StageOf(symbol)];
    const auto mate = [this](int n) { return n - n % slices_ + slices_ - 1 - n % slices_; };
    switch (KindOf(symbol)) {
      case kCopyO: {
        if (s.goes.empty()) return -1;
        const int forward = s.goes.front();
        s.goes.erase(s.goes.begin());
        s.away.insert(mate(forward));
        return forward % slices_;
      }
      case kCopyL: {
        if (s.away.empty()) return -1;
        const int backward = *s.away.begin();
        s.away.erase(s.away.begin());
        const bool first = std::none_of(s.goes.begin(), s.goes.end(),
                                        [&](int forward) { return mate(forward) < backward; });
        const bool whole = (backward / slices_ + 1) * slices_ <= s.forwards;
        return first && whole ? mate(backward) % slices_ : -1;
      }
      case kPassI: {
        const int n = s.inputs++;
        const bool at_host =
            s.away.count(n) > 0 || std::count(s.goes.begin(), s.goes.end(), mate(n)) > 0;
        return at_host ? -1 : mate(n) % slices_;
      }
      case kPassW:
        return mate(s.weights++) % slices_;
      default: {
        const int n = s.forwards++;
        if (KindOf(symbol) == kSentF) s.goes.push_back(n);
        return n % slices_;
      }
    }
  }

 private:
  struct Stage {
    int forwards = 0, inputs = 0, weights = 0;
    std::vector<int> goes;  // forwards, not out yet
    std::set<int> away;     // backwards, not asked back yet
  };
  const int slices_;
  std::vector<Stage> stages_;
};

// What the device holds at each place of its word. A copy out holds its room until the next copy.
absl::Status CheckWord(const SynthesisProblem& p, int d, const std::vector<Symbol>& word) {
  int64_t level = 0, leaving = 0;
  CheckedTrips trips(p);
  for (const Symbol symbol : word) {
    const int stage = StageOf(symbol), kind = KindOf(symbol);
    if (stage >= p.stages()) return Refused("a pass of a stage that is not there");
    const int slice = trips.SliceOf(symbol);
    if (slice < 0 || ((kind == kSentF || IsCopy(symbol)) && !p.MayOffload(stage))) {
      return Refused(absl::StrCat("device ", d, ", stage ", stage, ": copies out or back are not ",
                                  "those of its forwards, or not there before a backward"));
    }
    OrderLimits::Use use;
    if (IsCopy(symbol)) {
      const int64_t moved = p.Moved(stage, slice).value();
      level -= leaving;
      leaving = kind == kCopyO ? moved : 0;
      if (kind == kCopyL) use.change = Bytes(moved);
    } else {
      use = p.Use(symbol, slice);
    }
    const int64_t most = level + std::max(use.peak, use.change).value();
    if (!p.limits.free.empty() && most > p.limits.free[d].value()) {
      return Refused(absl::StrCat("device ", d, " needs ", most, " bytes"));
    }
    level += use.change.value();
  }
  return absl::OkStatus();
}

// The words are an order that fits, and takes what is claimed.
absl::Status CheckOrder(const SynthesisProblem& p, const Proof& proof) {
  if (static_cast<int>(proof.words.size()) != p.devices) return Refused("words of other devices");
  for (int d = 0; d < p.devices; ++d) {
    PIPELAB_RETURN_IF_ERROR(CheckWord(p, d, proof.words[d]));
  }
  const Schedule schedule = ScheduleOf(p, proof.words);
  PIPELAB_RETURN_IF_ERROR(Validate(schedule));
  LoweringOptions lowering;
  lowering.step = false;
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(schedule, lowering));
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace,
                           SimulateTotals(program, CostsOf(p, program.schedule)));
  if (trace.makespan == Nanoseconds(proof.makespan)) return absl::OkStatus();
  return Refused(
      absl::StrCat("the order takes ", trace.makespan.value(), " ns, not ", proof.makespan));
}

absl::Status CheckBound(const SynthesisProblem& p, const Bound& b) {
  const auto no = [&](absl::string_view what, int64_t is) {
    return Refused(absl::StrCat("bound (", BoundReasonName(b.reason), "): ", what, " is ", is));
  };
  if (b.head < 0 || b.tail < 0 || b.work < 0 || b.head + b.work + b.tail != b.value) {
    return Refused("bound: it is not the sum of its parts");
  }
  if (b.device < 0 || b.device >= p.devices || b.symbol < 0 || b.symbol >= p.symbols() ||
      b.unit < 0 || b.unit >= p.micro_batches * p.slices) {
    return Refused("bound: of a device or pass that is not there");
  }
  const ProofGraph graph(p, b.reason != BoundReason::kLoad && b.reason != BoundReason::kPath);
  if (b.reason == BoundReason::kHolding) {
    const CheckedHolding most = graph.Holding(b.device);
    if (b.head > most.head) return no("the head", most.head);
    if (b.tail > most.tail) return no("the tail", most.tail);
    return b.work > most.work ? no("the time", most.work) : absl::OkStatus();
  }
  int64_t work = 0;
  for (int node = 0; node < graph.size(); ++node) {
    if (graph.head(node) < b.head || graph.tail(node) < b.tail) continue;
    if (graph.device(node) == b.device) work += graph.length(node);
  }
  // A path, and a bound of memory that is one, is about a single pass.
  const int node = graph.NodeOf(static_cast<Symbol>(b.symbol), b.unit);
  const bool path = node >= 0 && graph.head(node) >= b.head && graph.tail(node) >= b.tail &&
                    graph.length(node) >= b.work;
  if (b.reason == BoundReason::kPath) return path ? absl::OkStatus() : no("the pass", node);
  return work >= b.work || (path && b.reason == BoundReason::kMemory) ? absl::OkStatus()
                                                                      : no("the work", work);
}

}  // namespace

absl::Status CheckProof(const SynthesisProblem& problem, const Proof& proof) {
  PIPELAB_RETURN_IF_ERROR(CheckProblem(problem));
  PIPELAB_RETURN_IF_ERROR(CheckOrder(problem, proof));
  PIPELAB_RETURN_IF_ERROR(CheckBound(problem, proof.bound));
  return proof.log.empty() ? absl::OkStatus() : CheckTree(problem, proof);
}

}  // namespace pipelab
