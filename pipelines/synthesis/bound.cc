#include "pipelines/synthesis/bound.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"

namespace pipelab {
namespace {

struct Pass {
  int64_t head, length, tail;
};

void Take(const Bound& bound, Bound* best) {
  if (bound.value > best->value) *best = bound;
}

// The set of passes from some head and tail on that takes the longest.
Bound LongestSet(const SynthesisProblem& p, const Heads& heads, int device) {
  const int N = p.units();
  std::vector<Pass> passes;
  std::vector<int64_t> tails;
  for (int symbol = 0; symbol < p.symbols(); ++symbol) {
    const auto own = static_cast<Symbol>(symbol);
    if (!p.IsPass(own) || p.device_of_stage[StageOf(own)] != device) continue;
    for (int n = 0; n < N; ++n) {
      passes.push_back({heads.head[symbol * N + n], p.Length(own, p.SliceOf(own, n)),
                        heads.tail[symbol * N + n]});
      tails.push_back(passes.back().tail);
    }
  }
  std::sort(passes.begin(), passes.end(),
            [](const Pass& a, const Pass& b) { return a.head > b.head; });
  std::sort(tails.begin(), tails.end());
  tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
  Bound best;
  for (const int64_t tail : tails) {
    int64_t work = 0;
    for (const Pass& pass : passes) {  // from the latest head on
      if (pass.tail < tail) continue;
      work += pass.length;
      Take({BoundReason::kLoad, pass.head + work + tail, device, pass.head, work, tail}, &best);
    }
  }
  return best;
}

Bound LongestPath(const SynthesisProblem& p, const Heads& heads) {
  Bound best;
  const int N = p.units();
  for (int s = 0; s < p.stages(); ++s) {
    for (int kind = 0; kind < p.kinds(); ++kind) {
      const Symbol symbol = SymbolOf(s, kind);
      for (int n = 0; n < N; ++n) {
        const int64_t head = heads.head[symbol * N + n], tail = heads.tail[symbol * N + n];
        const int64_t length = p.Length(symbol, p.SliceOf(symbol, n));
        Take({BoundReason::kPath, head + length + tail, p.device_of_stage[s], head, length, tail,
              symbol, n},
             &best);
      }
    }
  }
  return best;
}

Bound WithoutMemory(const SynthesisProblem& p, const Heads& heads) {
  Bound best = LongestPath(p, heads);
  for (int d = 0; d < p.devices; ++d) Take(LongestSet(p, heads, d), &best);
  return best;
}

// A micro-batch holds what its F changed from the F's begin to the end of its I or W, at least; one
// that goes to the host only to the end of O, and from the begin of L.
struct Offload {
  double saved = 0, copies = 0;  // of a stage's micro-batches: bytes x ns, ns of the link
};
struct Holding {
  double bytes_ns = 0;         // of all micro-batches of the device
  double fill = 0, drain = 0;  // bytes per ns, at most; not of a device with copies
  bool copies = false;
  std::vector<Offload> offloads;
  double largest = 0;  // bytes of one
  int64_t head = kNoTime, tail = kNoTime;

  static constexpr int64_t kNoTime = int64_t{1} << 61;
};

// What I leaves besides what W gives back goes from slice to slice (gradients of keys and values);
// it is never less than nothing, or there is no bound.
bool HandsOnNothingBelow(const SynthesisProblem& p, int s) {
  int64_t handed = 0;
  for (int slice = p.slices - 1; slice >= 0; --slice) {
    const auto change = [&](int kind) { return p.Use(SymbolOf(s, kind), slice).change.value(); };
    handed += change(kPassF) + change(kPassI) + (p.split_backward ? change(kPassW) : 0);
    if (handed < 0) return false;
  }
  return true;
}

Holding HoldingOf(const SynthesisProblem& p, const Heads& heads, int device) {
  Holding h;
  const int N = p.units(), last = p.stages() - 1;
  // [slice] From the end of the stage's F to the begin of its I, recompute apart.
  std::vector<int64_t> around(p.slices, 0);
  for (int s = last; s >= 0; --s) {
    const Symbol f = SymbolOf(s, kPassF), i = SymbolOf(s, kPassI), w = SymbolOf(s, kPassW);
    const bool own = p.device_of_stage[s] == device;
    if (own && !HandsOnNothingBelow(p, s)) return {};
    int64_t later_slice = 0;  // from the begin of its F to the end of its I
    for (int slice = p.slices - 1; slice >= 0; --slice) {
      const int64_t f_length = p.Length(f, slice), i_length = p.Length(i, slice);
      const int64_t ahead = p.Rebuild(s, slice);
      const int64_t wait = std::max(around[slice], ahead) - ahead;
      const int64_t until_input = f_length + std::max(wait, later_slice) + i_length;
      later_slice = until_input;
      if (s > 0) around[slice] = until_input + 2 * p.Hop(s - 1);
      if (!own) continue;
      const auto kept = static_cast<double>(p.Use(f, slice).change.value());
      const double left =
          p.split_backward ? -static_cast<double>(p.Use(w, slice).change.value()) : 0;
      if (kept <= 0 || left < 0) return {};
      const int64_t w_length = p.split_backward ? p.Length(w, slice) : 0;
      h.bytes_ns += p.micro_batches * (kept * static_cast<double>(until_input) +
                                       left * static_cast<double>(w_length));
      if (p.MayOffload(s)) {
        h.copies = true;
        const int64_t copies = 2 * p.host_copy[s * p.slices + slice];
        const auto moved = static_cast<double>(p.Moved(s, slice).value());
        const auto away = static_cast<double>(until_input - f_length - i_length - copies);
        if (away > 0 && moved > 0) {
          h.offloads.push_back(
              {p.micro_batches * moved * away, static_cast<double>(p.micro_batches * copies)});
        }
      }
      const double f_ns = static_cast<double>(std::max<int64_t>(f_length, 1));
      const double i_ns = static_cast<double>(std::max<int64_t>(i_length, 1));
      const double w_ns = static_cast<double>(std::max<int64_t>(w_length, 1));
      h.fill = std::max({h.fill, kept / f_ns, (left - kept) / i_ns});
      h.drain = std::max({h.drain, (kept - left) / i_ns, left / w_ns});
      h.largest = std::max({h.largest, kept, left});
    }
    if (!own) continue;
    const Symbol end = p.split_backward ? w : i;
    h.head = std::min(h.head, heads.head[f * N]);
    h.tail = std::min(h.tail, heads.tail[end * N + N - 1]);
  }
  return h;
}

// How long room and link take at the least: in the time T the link copies what saves the most room
// for its time, up to T, and what is left fits into room times T.
double LeastTime(Holding h, double free) {
  std::sort(h.offloads.begin(), h.offloads.end(), [](const Offload& a, const Offload& b) {
    return a.saved * b.copies > b.saved * a.copies;
  });
  double used = 0;  // of the link
  for (const Offload& o : h.offloads) {
    if (o.copies > 0) {
      const double rate = o.saved / o.copies;
      const double time = (h.bytes_ns + rate * used) / (free + rate);
      if (time <= used + o.copies) return time;
    }
    h.bytes_ns -= o.saved;
    used += o.copies;
  }
  return h.bytes_ns / free;
}

// Room times time: what is held fits into it. At either end the room cannot be full: forwards fill
// it and backwards empty it at a pass's rate; copies have no such rate.
Bound HoldingBound(const SynthesisProblem& p, const Heads& heads, int device) {
  Bound bound;
  bound.reason = BoundReason::kHolding;
  bound.device = device;
  const Holding h = HoldingOf(p, heads, device);
  const auto free = static_cast<double>(p.limits.free[device].value());
  if (h.bytes_ns <= 0 || free <= 0) return bound;
  double unused = 0;
  const double rest = free - h.largest;
  for (const double rate : {h.fill, h.drain}) {
    if (rest > 0 && rate > 0) unused += rest * rest / (2 * rate);
  }
  const double time = LeastTime(h, free);
  // Room is not short where it never fills.
  bound.work = static_cast<int64_t>(time * (1 - 1e-12));
  if (!h.copies && rest > 0 && time > rest / h.fill + rest / h.drain) {
    bound.work = static_cast<int64_t>((h.bytes_ns + unused) / free * (1 - 1e-12));
  }
  bound.head = h.head;
  bound.tail = h.tail;
  bound.value = bound.head + bound.work + bound.tail;
  return bound;
}

}  // namespace

const char* BoundReasonName(BoundReason reason) {
  switch (reason) {
    case BoundReason::kPath:
      return "path";
    case BoundReason::kLoad:
      return "load";
    case BoundReason::kMemory:
      return "memory";
    case BoundReason::kHolding:
      return "holding";
  }
  return "?";
}

Bound BestBound(const SynthesisProblem& p, const Heads* given) {
  Bound best = WithoutMemory(p, ComputeHeads(p, /*memory=*/false));
  if (p.limits.free.empty()) return best;
  Heads own;
  if (given == nullptr) own = ComputeHeads(p, /*memory=*/true);
  const Heads& heads = given == nullptr ? own : *given;
  Bound memory = WithoutMemory(p, heads);
  memory.reason = BoundReason::kMemory;
  Take(memory, &best);
  for (int d = 0; d < p.devices; ++d) Take(HoldingBound(p, heads, d), &best);
  return best;
}

std::string ToText(const Bound& b) {
  const auto ms = [](int64_t ns) { return static_cast<double>(ns) * 1e-6; };
  switch (b.reason) {
    case BoundReason::kPath:
      return absl::StrFormat("a path through pass %c %d of stage %d: %.6g ms",
                             "FIW"[KindOf(static_cast<Symbol>(b.symbol))], b.unit,
                             StageOf(static_cast<Symbol>(b.symbol)), ms(b.value));
    case BoundReason::kLoad:
      return absl::StrFormat("device %d's load: not before %.6g ms, %.6g ms of work, then %.6g ms",
                             b.device, ms(b.head), ms(b.work), ms(b.tail));
    case BoundReason::kMemory:
      return absl::StrFormat(
          "device %d's memory and load: not before %.6g ms, %.6g ms of work, then %.6g ms",
          b.device, ms(b.head), ms(b.work), ms(b.tail));
    case BoundReason::kHolding:
      return absl::StrFormat(
          "device %d's memory: not before %.6g ms, %.6g ms until all was held, then %.6g ms",
          b.device, ms(b.head), ms(b.work), ms(b.tail));
  }
  return "";
}

}  // namespace pipelab
