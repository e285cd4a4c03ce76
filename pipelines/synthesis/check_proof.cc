#include "pipelines/synthesis/check_proof.h"

#include <algorithm>
#include <cstdint>
#include <map>
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
      if (p.MayOffload(s)) stage.memory.kept = Bytes(p.host_copy[s]);  // a byte a nanosecond
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

// What the device holds at each place of its word. A copy out holds its room until the next copy.
absl::Status CheckRoom(const SynthesisProblem& p, int d, const std::vector<Symbol>& word) {
  int64_t level = 0, leaving = 0;
  std::vector<int> done(p.symbols(), 0);
  for (const Symbol symbol : word) {
    if (StageOf(symbol) >= p.stages()) return Refused("a pass of a stage that is not there");
    const int place = done[symbol]++ % p.slices;
    const OrderLimits::Use forward = p.Use(SymbolOf(StageOf(symbol), kPassF));
    OrderLimits::Use use;
    const int kind = KindOf(symbol);
    if (kind == kCopyO || kind == kCopyL) {
      level -= leaving;
      leaving = kind == kCopyO ? forward.change.value() : 0;
      if (kind == kCopyL) use.change = forward.change;
    } else {
      use = p.Use(symbol, IsForward(symbol) ? place : p.slices - 1 - place);
    }
    const int64_t most = level + std::max(use.peak, use.change).value();
    if (!p.limits.free.empty() && most > p.limits.free[d].value()) {
      return Refused(absl::StrCat("device ", d, " needs ", most, " bytes"));
    }
    level += use.change.value();
  }
  return absl::OkStatus();
}

// Each micro-batch that a stage sends goes out behind its F, and is asked back before its I.
absl::Status CheckCopies(const SynthesisProblem& p, int d, const std::vector<Symbol>& word) {
  struct Stage {
    std::vector<bool> sent;  // [micro-batch] whose forward is over
    int inputs = 0, needed = 0, out = 0, back = 0;
  };
  std::vector<Stage> stages(p.stages());
  for (const Symbol symbol : word) {
    Stage& s = stages[StageOf(symbol)];
    const int kind = KindOf(symbol);
    if (IsForward(symbol)) s.sent.push_back(kind == kSentF);
    if (kind == kPassI) {
      const auto n = static_cast<size_t>(s.inputs++);
      s.needed += n < s.sent.size() && s.sent[n] ? 1 : 0;
    }
    s.out += kind == kCopyO ? 1 : 0;
    s.back += kind == kCopyL ? 1 : 0;
    const int64_t sent = std::count(s.sent.begin(), s.sent.end(), true);
    if ((sent == 0 || p.MayOffload(StageOf(symbol))) && s.out <= sent && s.back <= s.out &&
        s.needed <= s.back) {
      continue;
    }
    return Refused(absl::StrCat("device ", d, ", stage ", StageOf(symbol), ": ", s.out,
                                " copies out and ", s.back, " back, behind ", sent,
                                " forwards to the host and ", s.needed, " of their backwards"));
  }
  return absl::OkStatus();
}

// The words are an order that fits, and takes what is claimed.
absl::Status CheckOrder(const SynthesisProblem& p, const Proof& proof) {
  if (static_cast<int>(proof.words.size()) != p.devices) return Refused("words of other devices");
  for (int d = 0; d < p.devices; ++d) {
    PIPELAB_RETURN_IF_ERROR(CheckRoom(p, d, proof.words[d]));
    PIPELAB_RETURN_IF_ERROR(CheckCopies(p, d, proof.words[d]));
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
  const CheckGraph graph(p, b.reason != BoundReason::kLoad && b.reason != BoundReason::kPath);
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
