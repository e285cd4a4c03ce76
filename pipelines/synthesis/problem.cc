#include "pipelines/synthesis/problem.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
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
    const int slices = list == &p.lengths.hop ? 1 : p.slices;
    if (list->size() != p.device_of_stage.size() * slices) {
      return absl::InvalidArgumentError(absl::StrCat(
          "synthesis: times of ", list->size(), slices > 1 ? " slices of" : "", " stages (", name,
          "); the problem has ", p.stages(), slices > 1 ? " stages of " : "",
          slices > 1 ? absl::StrCat(slices, " slices") : ""));
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

absl::Status CheckCopies(const SynthesisProblem& p) {
  if (p.may_offload.empty()) return absl::OkStatus();
  const size_t parts = p.device_of_stage.size() * p.slices;
  if (p.host_copy.size() != parts) {
    return absl::InvalidArgumentError("synthesis: offloading without times of copies");
  }
  if (!p.read_later.empty() && p.read_later.size() != parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthesis: read_later of ", p.read_later.size(), " slices; must be ", parts));
  }
  for (int s = 0; s < p.stages(); ++s) {
    if (!p.may_offload[s]) continue;
    for (int slice = 0; slice < p.slices; ++slice) {
      const int64_t copy = p.host_copy[s * p.slices + slice];
      if (copy >= 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("synthesis: host_copy of ", copy, " ns; must be at least 0"));
    }
    if (p.Recomputes(s)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "synthesis: stage ", s, " is recomputed and may offload; must be one of both"));
    }
  }
  return absl::OkStatus();
}

// What one micro-batch of the stage takes at the most; where it goes to the host, each slice does
// at once, and each copy out has its room until the copy behind it.
Bytes MostOfMicroBatch(const SynthesisProblem& p, int s, bool sent) {
  Bytes held, leaving, most;
  const auto take = [&](int kind, int n) {
    const Symbol symbol = SymbolOf(s, kind);
    const int slice = p.SliceOf(symbol, n);
    if (IsCopy(symbol)) {
      held = held - leaving;
      leaving = kind == kCopyO ? p.Moved(s, slice) : Bytes(0);
    }
    const OrderLimits::Use use = p.Use(symbol, slice);
    most = std::max(most, held + std::max(use.peak, use.change));
    held += use.change;
  };
  for (int n = 0; n < p.slices; ++n) {
    take(kPassF, n);
    if (sent) take(kCopyO, n);
  }
  for (int n = 0; n < p.slices; ++n) {
    if (sent) take(kCopyL, n);
    for (int kind = kPassI; kind < p.kinds(); ++kind) take(kind, n);
  }
  return most;
}

// One micro-batch of each stage, with nothing of the others there.
absl::Status CheckRoom(const SynthesisProblem& p) {
  if (p.limits.free.empty()) return absl::OkStatus();
  for (int s = 0; s < p.stages(); ++s) {
    Bytes most = MostOfMicroBatch(p, s, false);
    if (p.MayOffload(s)) most = std::min(most, MostOfMicroBatch(p, s, true));
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

bool SynthesisProblem::HasCopies() const {
  return std::find(may_offload.begin(), may_offload.end(), true) != may_offload.end();
}

int64_t SynthesisProblem::Symbols() const {
  const int64_t copies = 2 * std::count(may_offload.begin(), may_offload.end(), true);
  return (int64_t{kinds()} * stages() + copies) * units();
}

int64_t SynthesisProblem::Length(Symbol symbol, int slice) const {
  const int s = StageOf(symbol), part = s * slices + slice;
  if (IsForward(symbol)) return lengths.forward[part];
  if (KindOf(symbol) == kPassW) return lengths.backward_weight[part];
  if (IsCopy(symbol)) return host_copy[part];
  return Rebuild(s, slice) + lengths.backward_input[part] +
         (split_backward ? 0 : lengths.backward_weight[part]);
}

OrderLimits::Use SynthesisProblem::Use(Symbol symbol, int slice) const {
  if (limits.forward.empty()) return {};
  const int s = StageOf(symbol) * slices + slice;
  if (IsForward(symbol)) return limits.forward[s];
  if (KindOf(symbol) == kCopyO) return {};
  if (KindOf(symbol) == kCopyL) {
    const Bytes moved = Moved(StageOf(symbol), slice);
    return {moved, moved};
  }
  return (KindOf(symbol) == kPassI ? limits.backward_input : limits.backward_weight)[s];
}

Bytes SynthesisProblem::Moved(int stage, int slice) const {
  if (limits.forward.empty()) return Bytes(0);
  const int part = stage * slices + slice;
  return limits.forward[part].change - (read_later.empty() ? Bytes(0) : read_later[part]);
}

int64_t SynthesisProblem::Work(int device) const {
  int64_t work = 0;
  for (int s = 0; s < stages(); ++s) {
    if (device_of_stage[s] != device) continue;
    for (int kind = 0; kind < kinds(); ++kind) {
      for (int slice = 0; slice < slices; ++slice) {
        work += micro_batches * Length(SymbolOf(s, kind), slice);
      }
    }
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
  if (p.devices < 1 || p.micro_batches < 1 || p.slices < 1 || stages == 0 || stages > kMostStages ||
      int64_t{3} * p.stages() * p.micro_batches * p.slices > kMostPasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        "synthesis: ", p.devices, " devices, ", p.micro_batches, " micro-batches, ", stages,
        " stages", p.slices == 1 ? "" : absl::StrCat(", ", p.slices, " slices"),
        "; at least one of each, and at most ", kMostPasses, " passes"));
  }
  for (const int device : p.device_of_stage) {
    if (device >= 0 && device < p.devices) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("synthesis: a stage on device ", device, "; there are ", p.devices));
  }
  for (const auto& [name, list] : {std::make_pair("recomputation", &p.recomputed),
                                   std::make_pair("offloading", &p.may_offload)}) {
    if (list->empty() || list->size() == stages) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("synthesis: ", name, " of ", list->size(), " stages; there are ", stages));
  }
  PIPELAB_RETURN_IF_ERROR(CheckCopies(p));
  PIPELAB_RETURN_IF_ERROR(CheckTimes(p));
  PIPELAB_RETURN_IF_ERROR(CheckHops(p));
  const OrderLimits& limits = p.limits;
  const size_t uses = stages * p.slices;
  const bool has_uses = limits.forward.size() == uses && limits.backward_input.size() == uses &&
                        limits.backward_weight.size() == uses;
  if (!limits.free.empty() && (!has_uses || limits.free.size() != static_cast<size_t>(p.devices))) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthesis: memory limits of ", limits.free.size(), " devices and uses of ",
                     limits.forward.size(), " stages; there are ", p.devices, " and ", uses));
  }
  return CheckRoom(p);
}

UnitSums::UnitSums(const SynthesisProblem& p)
    : stride_(p.units() + 1), lengths_(p.symbols() * stride_), changes_(lengths_.size()) {
  for (int w = 0; w < p.symbols(); ++w) {
    const auto symbol = static_cast<Symbol>(w);
    if (!p.Has(symbol)) continue;
    for (int n = 0; n < p.units(); ++n) {
      const int slice = p.SliceOf(symbol, n);
      lengths_[w * stride_ + n + 1] = Length(symbol, n) + p.Length(symbol, slice);
      changes_[w * stride_ + n + 1] = Change(symbol, n) + p.Use(symbol, slice).change.value();
    }
  }
}

}  // namespace pipelab
