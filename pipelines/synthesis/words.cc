// Words as schedules, and back.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

std::vector<Symbol> WithCopies(const SynthesisProblem& p, const std::vector<Symbol>& word,
                               double lead) {
  std::vector<int64_t> begin(word.size() + 1, 0);  // of passes that never wait
  for (size_t i = 0; i < word.size(); ++i) begin[i + 1] = begin[i] + p.Length(word[i]);
  std::vector<std::vector<Symbol>> before(word.size());
  std::vector<std::vector<size_t>> forwards(p.stages());
  std::vector<int> inputs(p.stages(), 0);
  size_t last = 0;  // copies come back in the order of backwards
  for (size_t i = 0; i < word.size(); ++i) {
    const int s = StageOf(word[i]);
    if (!p.Offloads(s)) continue;
    if (KindOf(word[i]) == kPassF) forwards[s].push_back(i);
    if (KindOf(word[i]) != kPassI) continue;
    const size_t forward = forwards[s][inputs[s]++];
    const double early = (1 + lead) * static_cast<double>(p.host_copy[s]);
    size_t load = i;
    while (load > forward + 1 && static_cast<double>(begin[i] - begin[load]) < early) --load;
    last = std::max(load, last);
    before[last].push_back(SymbolOf(s, kCopyL));
  }
  std::vector<Symbol> with;
  for (size_t i = 0; i < word.size(); ++i) {
    with.insert(with.end(), before[i].begin(), before[i].end());
    with.push_back(word[i]);
    const int s = StageOf(word[i]);
    if (KindOf(word[i]) == kPassF && p.Offloads(s)) with.push_back(SymbolOf(s, kCopyO));
  }
  return with;
}

namespace {

Action ActionOf(const SynthesisProblem& p, Symbol symbol, int n) {
  constexpr ActionKind kKinds[] = {ActionKind::kForward, ActionKind::kBackwardInput,
                                   ActionKind::kBackwardWeight, ActionKind::kOffload,
                                   ActionKind::kReload};
  Action action;
  action.kind = kKinds[KindOf(symbol)];
  if (KindOf(symbol) == kPassI && !p.split_backward) action.kind = ActionKind::kBackward;
  action.stage = static_cast<int16_t>(StageOf(symbol));
  action.micro_batch = n / p.slices;
  action.slice = static_cast<int16_t>(p.SliceOf(symbol, n));
  return action;
}

}  // namespace

Schedule ScheduleOf(const SynthesisProblem& p, const OrderWords& words) {
  Schedule schedule;
  schedule.name = "synthesized";
  schedule.stages = StageGraph::Chain(p.stages());
  schedule.placement = Placement::Single(p.device_of_stage, p.devices, p.micro_batches);
  schedule.num_micro_batches = p.micro_batches;
  schedule.num_slices = p.slices;
  schedule.order.resize(p.devices);
  std::vector<int> next(p.symbols(), 0);
  for (int d = 0; d < p.devices; ++d) {
    for (const Symbol symbol : words[d]) {
      schedule.order[d].push_back(ActionOf(p, symbol, next[symbol]++));
    }
  }
  if (!p.recomputed.empty()) InsertRecompute(&schedule, p.recomputed);
  return schedule;
}

absl::StatusOr<OrderWords> WordsOf(const SynthesisProblem& p, const Schedule& schedule) {
  const auto error = [](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("synthesis: the schedule ", why));
  };
  const Placement& placement = schedule.placement;
  if (schedule.num_stages() != p.stages() || schedule.num_devices() != p.devices ||
      schedule.num_micro_batches != p.micro_batches || !schedule.stages.IsChain() ||
      schedule.stages.HasLags() || placement.num_replicas() != 1 ||
      schedule.num_slices != p.slices || schedule.forward_only ||
      !schedule.micro_batches_of_stage.empty()) {
    return error("is no plain chain of the problem's sizes");
  }
  for (int s = 0; s < p.stages(); ++s) {
    if (placement.groups[0][s] != std::vector<int>{p.device_of_stage[s]}) {
      return error("has its stages on other devices");
    }
  }
  OrderWords words(p.devices);
  std::vector<int> next(p.symbols(), 0);
  for (int d = 0; d < p.devices; ++d) {
    const auto add = [&](int kind, const Action& a) {
      const Symbol symbol = SymbolOf(a.stage, kind);
      words[d].push_back(symbol);
      const int n = next[symbol]++;
      return n / p.slices == a.micro_batch && p.SliceOf(symbol, n) == a.slice;
    };
    for (const Action& a : schedule.order[d]) {
      if (a.kind == ActionKind::kRecompute && p.Recomputes(a.stage)) continue;
      bool in_order = false;
      if (IsHostTransfer(a.kind)) {
        in_order = p.Offloads(a.stage) && add(a.kind == ActionKind::kOffload ? kCopyO : kCopyL, a);
      } else if (a.kind == ActionKind::kForward) {
        in_order = add(kPassF, a);
      } else if (a.kind == ActionKind::kBackward) {
        in_order = add(kPassI, a) && (!p.split_backward || add(kPassW, a));
      } else if (p.split_backward && a.kind == ActionKind::kBackwardInput) {
        in_order = add(kPassI, a);
      } else if (p.split_backward && a.kind == ActionKind::kBackwardWeight) {
        in_order = add(kPassW, a);
      }
      if (!in_order) return error("has micro-batches out of order, or passes of other kinds");
    }
  }
  return words;
}

}  // namespace pipelab
