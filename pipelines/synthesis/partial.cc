#include "pipelines/synthesis/partial.h"

#include <algorithm>

namespace pipelab {

// A state: [device] when it is free, its level of memory, the passes that are ruled out (bits),
// until when the next one must begin; [symbol] how many are done, of copies the unit behind
// the last one; [symbol][window] arrivals; and where there may be copies [device] when its link is
// free, when its copy out is over, of what that is, and [stage] bits of forwards that go to the
// host.
PartialOrders::PartialOrders(const SynthesisProblem& p, const Heads& heads, Options options)
    : p_(p),
      heads_(heads),
      options_(options),
      sums_(p),
      D_(p.devices),
      S_(p.stages()),
      K_(p.slices),
      N_(p.units()),
      window_(std::min(options.window, p.micro_batches) * p.slices),
      limited_(!p.limits.free.empty()),
      copies_(p.HasCopies()),
      sent_words_((N_ + 63) / 64),
      counts_(4 * D_),
      arrivals_(counts_ + p.symbols()),
      links_(arrivals_ + int64_t{3} * S_ * window_),
      sent_(links_ + 3 * D_),
      passes_(static_cast<size_t>(p.symbols()) * p.slices),
      symbols_of_(D_),
      tails_(D_),
      leaving_bytes_(static_cast<size_t>(S_) * K_),
      peak_(D_) {
  std::vector<int64_t> later(D_), passing(D_);  // of later stages: held, on its way to the host
  for (int s = S_ - 1; s >= 0; --s) {
    const int d = p.device_of_stage[s];
    for (int kind = p.kinds() - 1; kind >= 0; --kind) {
      for (int n = 0; n < K_; ++n) MakePass(SymbolOf(s, kind), n, later[d]);
    }
    const Symbol f = SymbolOf(s, kPassF);
    if (!p.MayOffload(s)) {
      for (int n = 0; n < K_; ++n) later[d] += std::max<int64_t>(PassOf(f, n).change, 0);
      continue;
    }
    int64_t most = passing[d];
    for (int n = 0; n < K_; ++n) {
      Pass& held = passes_[f * K_ + n];
      passes_[SymbolOf(s, kSentF) * K_ + n] = held;
      held.reserve += 2 * passing[d];
      most = std::max(most, held.change);
    }
    passing[d] = most;
  }
  for (int s = 0; s < S_; ++s) {
    const int d = p.device_of_stage[s];
    for (const int kind : {kPassF, kSentF}) {
      for (int n = 0; n < K_; ++n) passes_[SymbolOf(s, kind) * K_ + n].reserve += peak_[d];
    }
    for (int kind = 0; kind < kSymbolKinds; ++kind) {
      const Symbol symbol = SymbolOf(s, kind);
      if (!p.Has(symbol)) continue;
      for (int n = 0; n < K_; ++n) {
        passes_[symbol * K_ + n].bit = static_cast<int>(symbols_of_[d].size());
      }
      symbols_of_[d].push_back(symbol);
    }
    if (!p.MayOffload(s)) continue;
    for (int n = 0; n < K_; ++n) {
      Pass& forward = passes_[SymbolOf(s, kSentF) * K_ + n];
      forward.takes_room = true;
      passes_[SymbolOf(s, kPassF) * K_ + n].takes_room = limited_;
      Pass& out = passes_[SymbolOf(s, kCopyO) * K_ + n];
      Pass& back = passes_[SymbolOf(s, kCopyL) * K_ + p.MateOf(n)];
      leaving_bytes_[s * K_ + n] = p.Moved(s, n).value();
      out.copy = back.copy = p.host_copy[s * K_ + n];
      back.need = back.change = p.Moved(s, n).value();
      back.reserve = forward.reserve;
      back.takes_room = out.takes_room = true;
      back.next = SymbolOf(s, kPassI);
    }
  }
  if (options.sent != nullptr) set_left_.resize(static_cast<size_t>(S_) * (N_ + 1));
  for (int s = 0; s < S_ && options.sent != nullptr; ++s) {
    for (int n = N_ - 1; n >= 0; --n) {
      const size_t at = static_cast<size_t>(s) * (N_ + 1) + n;
      set_left_[at] = set_left_[at + 1] + ((*options.sent)[s][n] ? 1 : 0);
    }
  }
  for (int d = 0; d < D_; ++d) {
    std::vector<int64_t> ends = {0};
    for (const Symbol symbol : symbols_of_[d]) {
      if (p.IsPass(symbol)) ends.push_back(heads.tail[symbol * N_ + N_ - 1]);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    for (const int64_t tail : ends) {
      Tails& tails = tails_[d].emplace_back();
      tails.tail = tail;
      for (const Symbol symbol : symbols_of_[d]) {
        int count = p.IsPass(symbol) ? N_ : 0;  // a copy takes its device no time
        while (count > 0 && heads.tail[symbol * N_ + count - 1] < tail) --count;
        tails.counts.push_back(count);
      }
    }
  }
}

// Makes the data of all n-th passes of the symbol with this n % K. `later`: bytes of a micro-batch
// at later stages.
void PartialOrders::MakePass(Symbol symbol, int n, int64_t later) {
  const int s = StageOf(symbol), kind = KindOf(symbol), slice = p_.SliceOf(symbol, n);
  const OrderLimits::Use use = p_.Use(symbol, slice);
  Pass& pass = passes_[symbol * K_ + n];
  pass.length = p_.Length(symbol, slice);
  pass.change = use.change.value();
  pass.need = std::max(use.peak, use.change).value();
  pass.takes_room = limited_ && pass.change > 0;
  int64_t above = pass.need;
  if (kind == kPassF) {
    pass.next = s + 1 == S_ ? symbol + 1 : SymbolOf(s + 1, kPassF);
    pass.hop = s + 1 == S_ ? 0 : p_.Hop(s);
    pass.to = IsMirrored(symbol) ? p_.MateOf(n) - n : 0;
    pass.reserve = later;
    above -= pass.change;
  } else if (kind == kPassI) {
    pass.ahead = p_.Rebuild(s, slice);
    if (s > 0) {
      pass.next = SymbolOf(s - 1, kPassI);
      pass.hop = p_.Hop(s - 1);
    }
  }
  int64_t& peak = peak_[p_.device_of_stage[s]];
  peak = std::max(peak, above);
}

PartialOrders::State PartialOrders::Start() const {
  State state(copies_ ? sent_ + int64_t{S_} * sent_words_ : links_, 0);
  for (int d = 0; d < D_; ++d) state[3 * D_ + d] = kNoMakespan;
  return state;
}

// Whose result an F or I takes.
Symbol PartialOrders::ProducerOf(Symbol symbol) const {
  if (KindOf(symbol) == kPassF) return static_cast<Symbol>(symbol - kSymbolKinds);
  return static_cast<Symbol>(StageOf(symbol) + 1 == S_ ? symbol - 1 : symbol + kSymbolKinds);
}

int64_t PartialOrders::NextSent(const State& s, Symbol copy) const {
  const int stage = StageOf(copy);
  int64_t n = s[counts_ + copy];
  if (K_ > 1 && KindOf(copy) == kCopyL) {
    const int64_t forwards = s[counts_ + SymbolOf(stage, kPassF)];
    const int64_t whole = forwards - forwards % K_;
    while (n < whole && !IsSent(s, stage, p_.MateOf(static_cast<int>(n)))) ++n;
    return n < whole ? n : N_;
  }
  for (int64_t word = n / 64; word < sent_words_; ++word) {
    auto bits = static_cast<uint64_t>(s[sent_ + stage * sent_words_ + word]);
    if (word == n / 64) bits &= ~uint64_t{0} << n % 64;
    if (bits != 0) return word * 64 + __builtin_ctzll(bits);
  }
  return N_;
}

bool PartialOrders::MayRun(const State& s, Symbol symbol) const {
  if (options_.sent == nullptr || !IsForward(symbol)) return true;
  const int64_t n = UnitOf(s, symbol);
  return n < N_ && (*options_.sent)[StageOf(symbol)][n] == (KindOf(symbol) == kSentF);
}

int64_t PartialOrders::Arrival(const State& s, Symbol given) const {
  const int64_t n = UnitOf(s, given);
  if (n == N_) return kNoMakespan;
  const Symbol symbol = CountedAs(given);
  const int kind = KindOf(symbol), stage = StageOf(symbol);
  if (kind == kCopyO) return 0;
  if (kind == kPassF && stage == 0) return 0;
  const int64_t own = kind == kPassI || kind == kCopyL ? p_.MateOf(static_cast<int>(n)) : n;
  if (kind == kPassW || kind == kCopyL) return own < s[counts_ + symbol - 1] ? 0 : kNoMakespan;
  if (kind == kPassI && own >= s[counts_ + symbol - 1]) return kNoMakespan;
  const Symbol from = ProducerOf(symbol);
  if (!IsMirrored(from) && n >= s[counts_ + from]) return kNoMakespan;
  if (kind != kPassI || !copies_ || !IsSent(s, stage, own)) return s[Slot(symbol, n)];
  const Symbol back = SymbolOf(stage, kCopyL);
  if (n >= s[counts_ + back]) return kNoMakespan;
  return std::max(s[Slot(symbol, n)], s[Slot(back, n)]);
}

bool PartialOrders::Fits(const State& s, int device, Symbol symbol, const Pass& pass) const {
  if (!limited_) return true;
  int64_t level = Level(s, device);
  const int64_t free = p_.limits.free[device].value();
  if (IsCopy(symbol) && Leaving(s, device) > 0) level -= leaving_bytes_[Leaving(s, device) - 1];
  if (level + pass.need > free) return false;
  if (!options_.reserve || pass.change <= 0 || level == 0) return true;
  if (K_ > 1 && KindOf(symbol) == kPassF) {
    return LeavesRoom(s, device, symbol, pass, level + ComingBack(s, device, symbol));
  }
  return level + pass.change + pass.reserve + ComingBack(s, device, symbol) <= free;
}

// What stays beside must leave room for what is at the host, and whose I is earlier.
int64_t PartialOrders::ComingBack(const State& s, int device, Symbol symbol) const {
  int64_t most = 0;
  if (!copies_ || KindOf(symbol) != kPassF) return most;
  for (const Symbol back : symbols_of_[device]) {
    if (KindOf(back) != kCopyL || UnitOf(s, back) == N_) continue;
    most = std::max(most, PassOf(back, UnitOf(s, back)).change);
  }
  return most;
}

// Slices of a micro-batch may be at later stages already: what it still takes there is left, or it
// is all that the device holds.
bool PartialOrders::LeavesRoom(const State& s, int d, Symbol symbol, const Pass& pass,
                               int64_t level) const {
  const int64_t first = s[counts_ + symbol] / K_ * K_;
  int64_t own = 0, rest = 0;
  for (const Symbol f : symbols_of_[d]) {
    if (KindOf(f) != kPassF) continue;
    const int64_t done = std::clamp(s[counts_ + f], first, first + K_);
    own += sums_.Change(f, done) - sums_.Change(f, first);
    if (f > symbol) rest += sums_.Change(f, first + K_) - sums_.Change(f, done);
  }
  return level == own || level + pass.change + rest + peak_[d] <= p_.limits.free[d].value();
}

int64_t PartialOrders::BeginOf(const State& s, int d, Symbol symbol) const {
  if (copies_ && !MayRun(s, symbol)) return kNoMakespan;
  const Pass& pass = PassOf(symbol, UnitOf(s, symbol));
  const int64_t arrival = Arrival(s, symbol);
  const bool copy = IsCopy(symbol);
  if (arrival == kNoMakespan || !Fits(s, d, symbol, pass) || IsFull(s, symbol)) return kNoMakespan;
  const int64_t begin = std::max(s[d], arrival);
  if (!copy) return begin;
  int64_t least = Leaving(s, d) > 0 ? s[links_ + D_ + d] : 0;
  if (pass.next >= 0 && options_.lead >= 0) {  // an L
    thread_local std::vector<int64_t> next_f, next_i;
    NextBegins(s, &next_f, &next_i);
    const int stage = StageOf(symbol);
    // When the stage's next I can begin; those behind it begin as much later as their work takes.
    const int64_t ahead = UnitOf(s, symbol) - s[counts_ + pass.next];
    const int64_t needed = next_i[stage] + ahead * passes_[pass.next * K_].length;
    const double early = (1 + options_.lead) * static_cast<double>(pass.copy);
    least = std::max(least, needed - static_cast<int64_t>(early));
  }
  return std::max(begin, least);
}

PartialOrders::Outcome PartialOrders::Next(const State& s, Decision* decision) const {
  decision->begin = kNoMakespan;
  bool done = true;
  for (int d = 0; d < D_; ++d) {
    for (const Symbol symbol : symbols_of_[d]) {
      const Pass& pass = passes_[symbol * K_];
      if (p_.IsPass(symbol) && s[counts_ + symbol] < N_) done = false;
      if ((RuledOut(s, d) >> pass.bit & 1) != 0) continue;
      const int64_t begin = BeginOf(s, d, symbol);
      if (begin >= Deadline(s, d)) continue;
      if (begin >= decision->begin) continue;
      decision->begin = begin;
      decision->device = d;
    }
  }
  if (decision->begin == kNoMakespan) return done ? Outcome::kDone : Outcome::kClosed;
  const int d = decision->device;
  decision->symbols.clear();
  decision->later.clear();
  int64_t end = kNoMakespan;
  for (int round = 0; round < 2; ++round) {
    for (const Symbol symbol : symbols_of_[d]) {
      const Pass& pass = PassOf(symbol, UnitOf(s, symbol));
      if ((RuledOut(s, d) >> pass.bit & 1) != 0) continue;
      const int64_t begin = BeginOf(s, d, symbol);
      if (round == 0 && begin == decision->begin) {
        decision->symbols.push_back(symbol);
        end = std::min(end, begin + pass.length + pass.copy);
      } else if (round == 1 && begin > decision->begin && begin < end && begin < Deadline(s, d)) {
        decision->later.push_back(symbol);
      }
    }
  }
  return Outcome::kDecision;
}

}  // namespace pipelab
