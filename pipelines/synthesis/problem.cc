#include "pipelines/synthesis/problem.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kMostStages = 4096;
constexpr int64_t kMostPasses = 1 << 20;
constexpr double kMostTime = 1e18;  // ns

absl::Status CheckTimes(const SynthesisProblem& p) {
  double all = 0;
  for (const auto& [name, list] : {std::make_pair("forward", &p.lengths.forward),
                                   std::make_pair("recompute", &p.lengths.recompute),
                                   std::make_pair("backward_input", &p.lengths.backward_input),
                                   std::make_pair("backward_weight", &p.lengths.backward_weight),
                                   std::make_pair("hop", &p.lengths.hop)}) {
    if (list->size() != p.device_of_stage.size()) {
      return absl::InvalidArgumentError(absl::StrCat("synthesis: times of ", list->size(),
                                                     " stages (", name, "); the problem has ",
                                                     p.stages()));
    }
    for (const int64_t time : *list) {
      if (time < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("synthesis: ", name, " of ", time, " ns; must be at least 0"));
      }
      all += 2.0 * static_cast<double>(time) * p.micro_batches;
    }
  }
  if (all < kMostTime) return absl::OkStatus();
  return absl::InvalidArgumentError("synthesis: times are too long to be counted in nanoseconds");
}

// Messages of two devices take one time, as on a link.
absl::Status CheckHops(const SynthesisProblem& p) {
  std::map<std::pair<int, int>, int64_t> hops;
  for (int s = 0; s + 1 < p.stages(); ++s) {
    const auto pair = std::minmax(p.device_of_stage[s], p.device_of_stage[s + 1]);
    if (pair.first == pair.second) continue;
    const auto [found, is_new] = hops.insert({pair, p.lengths.hop[s]});
    if (is_new || found->second == p.lengths.hop[s]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "synthesis: messages between devices ", pair.first, " and ", pair.second, " take ",
        found->second, " ns and ", p.lengths.hop[s], " ns; must be one time"));
  }
  return absl::OkStatus();
}

// One micro-batch of each stage, with nothing of the others there.
absl::Status CheckRoom(const SynthesisProblem& p) {
  if (p.limits.free.empty()) return absl::OkStatus();
  for (int s = 0; s < p.stages(); ++s) {
    Bytes held, most;
    for (int kind = 0; kind < p.kinds(); ++kind) {
      const OrderLimits::Use use = p.Use(SymbolOf(s, kind));
      most = std::max(most, held + std::max(use.peak, use.change));
      held += use.change;
    }
    const Bytes free = p.limits.free[p.device_of_stage[s]];
    if (most <= free) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "memory of device ", p.device_of_stage[s], ": ", free.value(),
        " bytes are free for activations; one micro-batch of stage ", s, " needs ", most.value()));
  }
  return absl::OkStatus();
}

}  // namespace

bool SynthesisProblem::RecomputesAll() const {
  return !recomputed.empty() &&
         std::find(recomputed.begin(), recomputed.end(), false) == recomputed.end();
}

SynthesisProblem Offloaded(SynthesisProblem p, std::vector<bool> stages) {
  std::vector<Bytes> largest(p.devices);
  for (int s = 0; s < p.stages(); ++s) {
    if (!stages[s]) continue;
    const Bytes kept = p.limits.forward[s].change;
    p.limits.forward[s].change = Bytes(0);
    p.limits.backward_input[s].peak += kept;
    p.limits.backward_input[s].change += kept;
    Bytes& most = largest[p.device_of_stage[s]];
    most = std::max(most, kept);
  }
  for (int d = 0; d < p.devices && !p.limits.free.empty(); ++d) {
    p.limits.free[d] = p.limits.free[d] - largest[d] - largest[d];
  }
  p.offloaded = std::move(stages);
  return p;
}

int64_t SynthesisProblem::Length(Symbol symbol) const {
  const int s = StageOf(symbol);
  if (KindOf(symbol) == kPassF) return lengths.forward[s];
  if (KindOf(symbol) == kPassW) return lengths.backward_weight[s];
  return Rebuild(s) + lengths.backward_input[s] + (split_backward ? 0 : lengths.backward_weight[s]);
}

OrderLimits::Use SynthesisProblem::Use(Symbol symbol) const {
  if (limits.forward.empty()) return {};
  const int s = StageOf(symbol);
  if (KindOf(symbol) == kPassF) return limits.forward[s];
  return (KindOf(symbol) == kPassI ? limits.backward_input : limits.backward_weight)[s];
}

int64_t SynthesisProblem::Work(int device) const {
  int64_t work = 0;
  for (int s = 0; s < stages(); ++s) {
    if (device_of_stage[s] != device) continue;
    for (int kind = 0; kind < kinds(); ++kind) work += micro_batches * Length(SymbolOf(s, kind));
  }
  return work;
}

SynthesisProblem UnitProblem(int devices, int micro_batches, std::vector<int> device_of_stage) {
  SynthesisProblem p;
  p.devices = devices;
  p.micro_batches = micro_batches;
  p.device_of_stage = std::move(device_of_stage);
  p.lengths = PassLengths::Unit(p.stages());
  p.limits.forward.assign(p.stages(), {Bytes(1), Bytes(1)});
  p.limits.backward_input.assign(p.stages(), {});
  p.limits.backward_weight.assign(p.stages(), {Bytes(0), Bytes(-1)});
  return p;
}

std::vector<int> LoopedDevices(int devices, int virtual_stages) {
  std::vector<int> of_stage(static_cast<size_t>(devices) * virtual_stages);
  for (size_t s = 0; s < of_stage.size(); ++s) of_stage[s] = static_cast<int>(s) % devices;
  return of_stage;
}

std::vector<int> ZigZagDevices(int devices, int virtual_stages) {
  std::vector<int> of_stage = LoopedDevices(devices, virtual_stages);
  for (size_t s = 0; s < of_stage.size(); ++s) {
    if (s / devices % 2 == 1) of_stage[s] = devices - 1 - of_stage[s];
  }
  return of_stage;
}

absl::Status CheckProblem(const SynthesisProblem& p) {
  const size_t stages = p.device_of_stage.size();
  if (p.devices < 1 || p.micro_batches < 1 || stages == 0 || stages > kMostStages ||
      int64_t{3} * p.stages() * p.micro_batches > kMostPasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        "synthesis: ", p.devices, " devices, ", p.micro_batches, " micro-batches, ", stages,
        " stages; at least one of each, and at most ", kMostPasses, " passes"));
  }
  for (const int device : p.device_of_stage) {
    if (device >= 0 && device < p.devices) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("synthesis: a stage on device ", device, "; there are ", p.devices));
  }
  for (const auto& [name, list] : {std::make_pair("recomputation", &p.recomputed),
                                   std::make_pair("offloading", &p.offloaded)}) {
    if (list->empty() || list->size() == stages) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("synthesis: ", name, " of ", list->size(), " stages; there are ", stages));
  }
  if (!p.offloaded.empty() && p.host_copy.size() != stages) {
    return absl::InvalidArgumentError("synthesis: offloading without times of copies");
  }
  PIPELAB_RETURN_IF_ERROR(CheckTimes(p));
  PIPELAB_RETURN_IF_ERROR(CheckHops(p));
  const OrderLimits& limits = p.limits;
  const bool has_uses = limits.forward.size() == stages && limits.backward_input.size() == stages &&
                        limits.backward_weight.size() == stages;
  if (!limits.free.empty() && (!has_uses || limits.free.size() != static_cast<size_t>(p.devices))) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthesis: memory limits of ", limits.free.size(), " devices and uses of ",
                     limits.forward.size(), " stages; there are ", p.devices, " and ", stages));
  }
  return CheckRoom(p);
}

bool FitsMemory(const SynthesisProblem& p, int device, const std::vector<Symbol>& word) {
  if (p.limits.free.empty()) return true;
  Bytes held;
  for (const Symbol symbol : word) {
    const OrderLimits::Use use = p.Use(symbol);
    if (held + std::max(use.peak, use.change) > p.limits.free[device]) return false;
    held += use.change;
  }
  return true;
}

bool IsWordOf(const SynthesisProblem& p, int device, const std::vector<Symbol>& word) {
  std::vector<int> done(size_t{3} * p.stages(), 0);
  for (const Symbol symbol : word) {
    if (StageOf(symbol) >= p.stages() || p.device_of_stage[StageOf(symbol)] != device) return false;
    if (KindOf(symbol) >= p.kinds()) return false;
    if (++done[symbol] > p.micro_batches) return false;
    if (KindOf(symbol) != kPassF && done[symbol] > done[symbol - 1]) return false;
  }
  for (int s = 0; s < p.stages(); ++s) {
    if (p.device_of_stage[s] != device) continue;
    for (int kind = 0; kind < p.kinds(); ++kind) {
      if (done[SymbolOf(s, kind)] != p.micro_batches) return false;
    }
  }
  return FitsMemory(p, device, word);
}

namespace {

// Copies of a device's word: which actions stand in front of a pass, and which behind it.
void InsertCopies(const SynthesisProblem& p, const std::vector<Symbol>& word,
                  std::vector<Action>* list) {
  std::vector<int64_t> begin(word.size() + 1, 0);  // of passes that never wait
  for (size_t i = 0; i < word.size(); ++i) begin[i + 1] = begin[i] + p.Length(word[i]);
  std::vector<std::vector<Action>> before(word.size()), behind(word.size());
  std::vector<std::vector<size_t>> forwards(p.stages());
  std::vector<int> inputs(p.stages(), 0);
  size_t last = 0;  // copies come back in the order of backwards
  for (size_t i = 0; i < word.size(); ++i) {
    const int s = StageOf(word[i]);
    if (KindOf(word[i]) == kPassF) forwards[s].push_back(i);
    if (KindOf(word[i]) != kPassI) continue;
    const int m = inputs[s]++;
    const size_t forward = forwards[s][m];
    if (!p.offloaded[s] || begin[i] - begin[forward + 1] < 2 * p.host_copy[s]) continue;
    size_t load = i;
    while (load > forward + 1 && begin[i] - begin[load] < p.host_copy[s]) --load;
    load = std::max(load, last);
    last = load;
    before[load].push_back({ActionKind::kReload, static_cast<int16_t>(s), m, 0, 0});
    behind[forward].push_back({ActionKind::kOffload, static_cast<int16_t>(s), m, 0, 0});
  }
  std::vector<Action> with;
  for (size_t i = 0; i < word.size(); ++i) {
    with.insert(with.end(), before[i].begin(), before[i].end());
    with.push_back((*list)[i]);
    with.insert(with.end(), behind[i].begin(), behind[i].end());
  }
  *list = std::move(with);
}

}  // namespace

Schedule ScheduleOf(const SynthesisProblem& p, const OrderWords& words) {
  Schedule schedule;
  schedule.name = "synthesized";
  schedule.stages = StageGraph::Chain(p.stages());
  schedule.placement = Placement::Single(p.device_of_stage, p.devices, p.micro_batches);
  schedule.num_micro_batches = p.micro_batches;
  schedule.order.resize(p.devices);
  std::vector<int> next(size_t{3} * p.stages(), 0);
  for (int d = 0; d < p.devices; ++d) {
    for (const Symbol symbol : words[d]) {
      const int s = StageOf(symbol), m = next[symbol]++;
      schedule.order[d].push_back(KindOf(symbol) == kPassF   ? Forward(s, m)
                                  : KindOf(symbol) == kPassW ? BackwardWeight(s, m)
                                  : p.split_backward         ? BackwardInput(s, m)
                                                             : Backward(s, m));
    }
  }
  for (int d = 0; d < p.devices && !p.offloaded.empty(); ++d) {
    InsertCopies(p, words[d], &schedule.order[d]);
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
      schedule.stages.HasLags() || placement.num_replicas() != 1 || schedule.num_slices != 1 ||
      schedule.forward_only || !schedule.micro_batches_of_stage.empty()) {
    return error("is no plain chain of the problem's sizes");
  }
  for (int s = 0; s < p.stages(); ++s) {
    if (placement.groups[0][s] != std::vector<int>{p.device_of_stage[s]}) {
      return error("has its stages on other devices");
    }
  }
  OrderWords words(p.devices);
  std::vector<int> next(size_t{3} * p.stages(), 0);
  for (int d = 0; d < p.devices; ++d) {
    const auto add = [&](int stage, int kind, int micro_batch) {
      words[d].push_back(SymbolOf(stage, kind));
      return next[words[d].back()]++ == micro_batch;
    };
    for (const Action& a : schedule.order[d]) {
      if (a.kind == ActionKind::kRecompute && p.Recomputes(a.stage)) continue;
      if (IsHostTransfer(a.kind) && !p.offloaded.empty()) continue;
      bool in_order = false;
      if (a.kind == ActionKind::kForward) {
        in_order = add(a.stage, kPassF, a.micro_batch);
      } else if (a.kind == ActionKind::kBackward) {
        in_order = add(a.stage, kPassI, a.micro_batch) &&
                   (!p.split_backward || add(a.stage, kPassW, a.micro_batch));
      } else if (p.split_backward && a.kind == ActionKind::kBackwardInput) {
        in_order = add(a.stage, kPassI, a.micro_batch);
      } else if (p.split_backward && a.kind == ActionKind::kBackwardWeight) {
        in_order = add(a.stage, kPassW, a.micro_batch);
      }
      if (!in_order) return error("has micro-batches out of order, or passes of other kinds");
    }
  }
  return words;
}

}  // namespace pipelab
