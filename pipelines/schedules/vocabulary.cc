// Where the passes go. Let E(m) be when the forward of micro-batch m ends at the last stage of the
// chain, with F = 1 and B = 2 (I = W = 1) in the base's order. Then, on every device, S of m comes
// before what begins at E(m), and T of m before what begins at E(m + 1); the loss before the last
// stage's forward of m + 1, so that there is a pass of slack before and behind each barrier. With
// two barriers the last backward of m begins at E(m + 2) or later, with one at E(m + 1): the base's
// backward of m + barriers does. A part of the embedding runs a forward of the chain's first stage
// ahead, and backward behind that stage's.
//
// No deadlock: all that a pass waits for comes before it by these times.
//
// Interlaced, all devices stop for a micro-batch's vocabulary at the same time, so they go in step:
// a period has the vocabulary, then a forward and a backward. Neighbours have these two in turn,
// the last device its backward first. So a forward comes two devices further in a period, and a
// backward one: P / 2 + P periods pass between a micro-batch's forward on the first device and its
// backward.
#include "pipelines/schedules/vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/dependency.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

int64_t LengthOf(ActionKind kind) { return kind == ActionKind::kBackward ? 2 : 1; }

// [device][place in its order] When each action begins, if it begins as soon as it can.
std::vector<std::vector<int64_t>> Begins(const Schedule& s) {
  const EventIndex index(s);
  constexpr int64_t kNever = -1;
  std::vector<int64_t> there(index.size(), kNever);
  std::vector<std::vector<int64_t>> begins(s.num_devices());
  std::vector<int64_t> free(s.num_devices(), 0);
  for (bool any = true; any;) {
    any = false;
    for (int d = 0; d < s.num_devices(); ++d) {
      while (begins[d].size() < s.order[d].size()) {
        const Action& a = s.order[d][begins[d].size()];
        int64_t begin = free[d];
        bool ready = true;
        ForEachDependency(s, /*recomputed=*/false, a, [&](const Event& e) {
          ready &= there[index(e)] != kNever;
          begin = std::max(begin, there[index(e)]);
        });
        if (!ready) break;
        any = true;
        begins[d].push_back(begin);
        free[d] = begin + LengthOf(a.kind);
        ForEachResult(a, [&](const Event& e) { there[index(e)] = free[d]; });
      }
    }
  }
  return begins;
}

// A pass of the result, and when it comes; of equal times the lower rank first.
struct Placed {
  int64_t time;
  int rank;
  Action action;
};
enum Rank { kEmbed, kStatistics, kGradients, kLoss, kChain };

// Without its order; [stage of the chain] its device.
Schedule WithParts(int devices, const std::vector<int>& chain, int barriers, int micro_batches) {
  const int stages = static_cast<int>(chain.size());
  Schedule s;
  s.num_micro_batches = micro_batches;
  s.stages = VocabularyStages(devices, stages, barriers);
  std::vector<int> device_of_stage(s.num_stages());
  for (int d = 0; d < devices; ++d) device_of_stage[d] = device_of_stage[devices + stages + d] = d;
  std::copy(chain.begin(), chain.end(), device_of_stage.begin() + devices);
  device_of_stage.back() = chain.back();
  s.placement = Placement::Single(device_of_stage, devices, micro_batches);
  return s;
}

std::vector<Action> InOrderOfTime(std::vector<Placed> passes) {
  std::stable_sort(passes.begin(), passes.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.time, a.rank) < std::tie(b.time, b.rank);
  });
  std::vector<Action> order;
  for (const Placed& p : passes) order.push_back(p.action);
  return order;
}

class Insertion {
 public:
  Insertion(const Schedule& base, int barriers)
      : base_(base), barriers_(barriers), chain_(base.num_stages()), begins_(Begins(base)) {
    forward_.assign(chain_, std::vector<int64_t>(base.num_micro_batches));
    backward_ = forward_;
    for (int d = 0; d < base.num_devices(); ++d) {
      for (size_t i = 0; i < begins_[d].size(); ++i) {
        const Action& a = base.order[d][i];
        if (a.kind == ActionKind::kForward) forward_[a.stage][a.micro_batch] = begins_[d][i];
        if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput) {
          backward_[a.stage][a.micro_batch] = begins_[d][i] + LengthOf(a.kind);
        }
      }
    }
  }

  Schedule Make() const {
    std::vector<int> chain;
    for (int stage = 0; stage < chain_; ++stage) {
      chain.push_back(base_.placement.groups[0][stage][0]);
    }
    const int micro_batches = base_.num_micro_batches - barriers_;
    Schedule s = WithParts(base_.num_devices(), chain, barriers_, micro_batches);
    for (int d = 0; d < base_.num_devices(); ++d) {
      std::vector<Placed> passes = ChainOf(d, micro_batches);
      AddParts(d, d == chain.back(), micro_batches, &passes);
      s.order.push_back(InOrderOfTime(std::move(passes)));
    }
    return s;
  }

 private:
  int Part(int device) const { return base_.num_devices() + chain_ + device; }

  std::vector<Placed> ChainOf(int device, int micro_batches) const {
    std::vector<Placed> passes;
    for (size_t i = 0; i < begins_[device].size(); ++i) {
      Action a = base_.order[device][i];
      if (a.kind != ActionKind::kForward) a.micro_batch -= barriers_;
      if (a.micro_batch < 0 || a.micro_batch >= micro_batches) continue;
      a.stage = static_cast<int16_t>(a.stage + base_.num_devices());
      passes.push_back({begins_[device][i], kChain, a});
    }
    return passes;
  }

  void AddParts(int device, bool has_loss, int micro_batches, std::vector<Placed>* passes) const {
    const std::vector<int64_t>& last = forward_[chain_ - 1];
    for (int m = 0; m < micro_batches; ++m) {
      passes->push_back({forward_[0][std::max(0, m - 1)], kEmbed, Forward(device, m)});
      passes->push_back({last[m] + 1, kStatistics, Forward(Part(device), m)});
      if (has_loss) {
        const int loss = Part(base_.num_devices());
        passes->push_back({last[m + 1], kLoss, Forward(loss, m)});
        passes->push_back({last[m + 1], kLoss, Backward(loss, m)});
      }
      passes->push_back({last[m + 1] + 1, kGradients, Backward(Part(device), m)});
      passes->push_back({backward_[0][m + barriers_], kGradients, Backward(device, m)});
    }
  }

  const Schedule& base_;
  int barriers_, chain_;
  std::vector<std::vector<int64_t>> begins_;
  // [stage of the chain][micro-batch] When its forward begins, and its backward (I, where it is
  // split) ends.
  std::vector<std::vector<int64_t>> forward_, backward_;
};

// A device's passes in the interlaced order, by period and place in it: embedding, S, loss, T and
// the embedding's gradients, first pass of the chain, second pass.
std::vector<Placed> InterlacedPasses(int devices, int device, int micro_batches) {
  const int behind = devices - 1 - device;  // devices
  const bool forward_first = behind % 2 == 1;
  const int first = (devices - 1) / 2, chain = devices + device, part = 2 * devices + device;
  std::vector<Placed> passes;
  const auto add = [&](int period, int rank, const Action& a) {
    passes.push_back({period, rank, a});
  };
  for (int m = 0; m < micro_batches; ++m) {
    const int end = first + m;  // the period of the last device's forward
    add(m, 0, Forward(device, m));
    add(end - behind / 2, forward_first ? 4 : 5, Forward(chain, m));
    add(end + 1, 1, Forward(part, m));
    if (behind == 0) {
      add(end + 1, 2, Forward(part + 1, m));
      add(end + 1, 2, Backward(part + 1, m));
    }
    add(end + 1, 3, Backward(part, m));
    add(end + 1 + behind, forward_first ? 5 : 4, Backward(chain, m));
    add(end + 1 + devices, 3, Backward(device, m));
  }
  return passes;
}

// The barriers of the caller's stages: 0 where they are a chain of `chain` stages, which has no
// parts.
absl::StatusOr<int> BarriersOf(const SchemeParams& params, int chain) {
  const StageGraph& stages = params.stages;
  if (stages.num_stages() == 0) return 0;
  if (stages.num_stages() == chain && stages.IsChain()) return 0;
  const auto edges = [](const StageGraph& graph) {
    std::set<std::tuple<int, int, Reads::Kind, int>> all;
    for (const StageGraph::Edge& e : graph.edges) {
      all.emplace(e.from, e.to, e.gradient.kind, e.gradient.number);
    };
    return all;
  };
  for (int barriers : {1, 2}) {
    const StageGraph own = VocabularyStages(params.devices, chain, barriers);
    if (own.num_stages() == stages.num_stages() && edges(own) == edges(stages)) return barriers;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--edges: neither a chain of ", chain,
                   " stages nor one with parts of the vocabulary on --devices=", params.devices,
                   " (models/zoo/vocabulary_shards.h)"));
}

absl::StatusOr<Schedule> MakeWithVocabulary(const SchemeParams& params,
                                            absl::StatusOr<Schedule> (*make)(const SchemeParams&)) {
  PIPELAB_ASSIGN_OR_RETURN(const int barriers,
                           BarriersOf(params, params.devices * params.virtual_stages));
  SchemeParams base = params;
  base.stages = {};
  base.micro_batches += barriers;
  if (barriers > 0) base.times = {};
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, make(base));
  if (barriers == 0) return schedule;
  return WithVocabularyPasses(schedule, barriers);
}

}  // namespace

StageGraph VocabularyStages(int devices, int chain, int barriers) {
  std::vector<StageGraph::Edge> edges;
  const int first = devices, last = devices + chain - 1, parts = last + 1, loss = parts + devices;
  for (int d = 0; d < devices; ++d) edges.push_back({d, first});
  for (int stage = first; stage < last; ++stage) edges.push_back({stage, stage + 1});
  for (int d = 0; d < devices; ++d) {
    edges.push_back({last, parts + d, barriers == 1 ? Reads::None() : Reads()});
  }
  if (barriers == 1) edges.push_back({last, loss});
  for (int d = 0; d < devices; ++d) edges.push_back({parts + d, loss});
  return StageGraph::FromEdges(loss + 1, std::move(edges));
}

Schedule WithVocabularyPasses(const Schedule& base, int barriers) {
  return Insertion(base, barriers).Make();
}

bool TakesVocabularyParts(const Scheme& scheme) { return scheme.check == &CheckVocabulary; }

absl::Status CheckVocabulary(const SchemeParams& params) {
  if (!params.devices_of_stage.empty()) {
    return absl::InvalidArgumentError("--stage_devices: this scheme says where its stages are");
  }
  return BarriersOf(params, params.devices * params.virtual_stages).status();
}

absl::StatusOr<Schedule> MakeVocab1F1B(const SchemeParams& params) {
  return MakeWithVocabulary(params, &Make1F1B);
}

absl::StatusOr<Schedule> MakeVocabInterlaced(const SchemeParams& params) {
  PIPELAB_ASSIGN_OR_RETURN(const int barriers, BarriersOf(params, params.devices));
  if (barriers == 0) return Make1F1B(params);
  std::vector<int> chain(params.devices);
  std::iota(chain.begin(), chain.end(), 0);
  Schedule s = WithParts(params.devices, chain, barriers, params.micro_batches);
  for (int d = 0; d < params.devices; ++d) {
    s.order.push_back(InOrderOfTime(InterlacedPasses(params.devices, d, params.micro_batches)));
  }
  return s;
}

absl::StatusOr<Schedule> MakeVocabVHalf(const SchemeParams& params) {
  return MakeWithVocabulary(params, &MakeVHalf);
}

}  // namespace pipelab
