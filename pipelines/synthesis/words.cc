// What is a word, and its room; words as schedules, and back.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

DeviceRoom::DeviceRoom(const SynthesisProblem& p, int device)
    : p_(p),
      limited_(!p.limits.free.empty()),
      free_(limited_ ? p.limits.free[device] : Bytes(0)),
      done_(p.symbols(), 0),
      sent_(p.stages()) {}

int DeviceRoom::NextUnit(Symbol symbol) {
  const int n = done_[CountedAs(symbol)]++;
  std::vector<int>& sent = sent_[StageOf(symbol)];
  if (KindOf(symbol) == kSentF) sent.push_back(n);
  if (!IsCopy(symbol) || n >= static_cast<int>(sent.size())) return n;
  if (KindOf(symbol) == kCopyO) return sent[n];
  return p_.MateOf(sent[PlaceOfBack(sent.data(), sent.size(), n, p_.slices)]);
}

bool DeviceRoom::Take(Symbol symbol) {
  if (IsCopy(symbol)) {
    level_ = level_ - leaving_;
    leaving_ = Bytes(0);
  }
  const int slice = p_.SliceOf(symbol, NextUnit(symbol));
  const OrderLimits::Use use = p_.Use(symbol, slice);
  if (limited_ && level_ + std::max(use.peak, use.change) > free_) return false;
  level_ += use.change;
  if (KindOf(symbol) == kCopyO) leaving_ = p_.Moved(StageOf(symbol), slice);
  return true;
}

bool FitsMemory(const SynthesisProblem& p, int device, const std::vector<Symbol>& word) {
  DeviceRoom room(p, device);
  return std::all_of(word.begin(), word.end(),
                     [&room](Symbol symbol) { return room.Take(symbol); });
}

bool IsWordOf(const SynthesisProblem& p, int device, const std::vector<Symbol>& word) {
  std::vector<int> done(p.symbols(), 0);
  std::vector<std::vector<int>> sent(p.stages());  // forwards
  for (const Symbol symbol : word) {
    const int s = StageOf(symbol);
    if (s >= p.stages() || p.device_of_stage[s] != device || !p.Has(symbol)) return false;
    const int n = done[CountedAs(symbol)]++;
    if (n == p.units()) return false;
    if (KindOf(symbol) == kSentF) sent[s].push_back(n);
    const auto sents = static_cast<int>(sent[s].size()), backs = done[SymbolOf(s, kCopyL)];
    const int forwards = done[SymbolOf(s, kPassF)];
    const auto back = [&](int nth) { return PlaceOfBack(sent[s].data(), sents, nth, p.slices); };
    bool ready = true;
    if (KindOf(symbol) == kPassI) {
      ready = p.MateOf(n) < forwards && (backs == sents || p.MateOf(sent[s][back(backs)]) > n);
    } else if (KindOf(symbol) == kCopyL) {
      ready = n < sents && back(n) < done[symbol - 1] &&
              (sent[s][n] / p.slices + 1) * p.slices <= forwards;
    } else if (!IsForward(symbol)) {
      ready = n < (KindOf(symbol) == kCopyO ? sents : done[symbol - 1]);
    }
    if (!ready) return false;
  }
  for (int s = 0; s < p.stages(); ++s) {
    if (p.device_of_stage[s] != device) continue;
    for (int kind = 0; kind < p.kinds(); ++kind) {
      if (done[SymbolOf(s, kind)] != p.units()) return false;
    }
  }
  return FitsMemory(p, device, word);
}

SentSet EvenlySent(const SynthesisProblem& p, double share) {
  SentSet sent(p.stages(), std::vector<bool>(p.units(), false));
  for (int s = 0; s < p.stages(); ++s) {
    for (int n = 0; n < p.units() && p.MayOffload(s); ++n) {
      sent[s][n] = std::floor((n + 1) * share) > std::floor(n * share);
    }
  }
  return sent;
}

SentSet SentIn(const SynthesisProblem& p, const OrderWords& words) {
  SentSet sent(p.stages());
  for (const auto& word : words) {
    for (const Symbol symbol : word) {
      if (IsForward(symbol)) sent[StageOf(symbol)].push_back(KindOf(symbol) == kSentF);
    }
  }
  return sent;
}

namespace {

Action ActionOf(const SynthesisProblem& p, Symbol symbol, int n) {
  constexpr ActionKind kKinds[] = {ActionKind::kForward,        ActionKind::kBackwardInput,
                                   ActionKind::kBackwardWeight, ActionKind::kOffload,
                                   ActionKind::kReload,         ActionKind::kForward};
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
  std::vector<std::vector<int>> sent(p.stages());
  for (int d = 0; d < p.devices; ++d) {
    for (const Symbol symbol : words[d]) {
      int n = next[CountedAs(symbol)]++;
      std::vector<int>& of_stage = sent[StageOf(symbol)];
      if (KindOf(symbol) == kSentF) of_stage.push_back(n);
      if (KindOf(symbol) == kCopyO) n = of_stage[n];
      if (KindOf(symbol) == kCopyL) {
        n = p.MateOf(of_stage[PlaceOfBack(of_stage.data(), of_stage.size(), n, p.slices)]);
      }
      schedule.order[d].push_back(ActionOf(p, symbol, n));
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
      !schedule.stages.AllGradientsAreOwn() || placement.num_replicas() != 1 ||
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
  std::vector<std::set<int>> goes(p.stages());     // forwards, to the host
  std::vector<std::vector<int>> sent(p.stages());  // in order
  const auto forward_of = [&p](const Action& a) { return a.micro_batch * p.slices + a.slice; };
  for (const auto& list : schedule.order) {
    for (const Action& a : list) {
      if (a.kind == ActionKind::kOffload) goes[a.stage].insert(forward_of(a));
    }
  }
  for (int d = 0; d < p.devices; ++d) {
    const auto add = [&](int kind, const Action& a) {
      const Symbol symbol = SymbolOf(a.stage, kind);
      words[d].push_back(symbol);
      const int n = next[CountedAs(symbol)]++;
      std::vector<int>& of_stage = sent[a.stage];
      if (kind == kSentF) of_stage.push_back(n);
      if (IsCopy(symbol)) {
        const auto size = static_cast<int>(of_stage.size());
        if (n >= size) return false;
        return of_stage[kind == kCopyO ? n : PlaceOfBack(of_stage.data(), size, n, p.slices)] ==
               forward_of(a);
      }
      return n / p.slices == a.micro_batch && p.SliceOf(symbol, n) == a.slice;
    };
    for (const Action& a : schedule.order[d]) {
      if (a.kind == ActionKind::kRecompute && p.Recomputes(a.stage)) continue;
      bool in_order = false;
      if (IsHostTransfer(a.kind)) {
        in_order =
            p.MayOffload(a.stage) && add(a.kind == ActionKind::kOffload ? kCopyO : kCopyL, a);
      } else if (a.kind == ActionKind::kForward) {
        in_order = add(goes[a.stage].count(forward_of(a)) > 0 ? kSentF : kPassF, a);
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
