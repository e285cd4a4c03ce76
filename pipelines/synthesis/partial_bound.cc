// What a beginning of an order can become at the least.
#include <algorithm>
#include <vector>

#include "pipelines/synthesis/partial.h"

namespace pipelab {

// When the stage's next I, whose F is over, has its copy back at the least; 0 where it stayed.
int64_t PartialOrders::NextBack(const State& s, int stage) const {
  const int64_t n = s[counts_ + SymbolOf(stage, kPassI)];
  const Symbol back = SymbolOf(stage, kCopyL);
  const int64_t forward = p_.MateOf(static_cast<int>(n));
  if (!IsSent(s, stage, forward)) return 0;
  if (n < s[counts_ + back]) return s[Slot(back, n)];
  const int d = p_.device_of_stage[stage];
  const bool is_out = forward < s[counts_ + SymbolOf(stage, kCopyO)];
  return std::max(s[links_ + d], s[d]) + (is_out ? 1 : 2) * PassOf(back, n).copy;
}

int64_t PartialOrders::CopiesLeft(const State& s, Symbol copy) const {
  const int stage = StageOf(copy);
  const int64_t n = s[counts_ + copy], forwards = s[counts_ + SymbolOf(stage, kPassF)];
  int64_t sum = 0;
  if (K_ > 1) {
    const bool given = options_.sent != nullptr;
    for (int64_t f = n - n % K_; f < (given ? N_ : forwards); ++f) {
      const int64_t own = KindOf(copy) == kCopyO ? f : p_.MateOf(static_cast<int>(f));
      const bool sent = f < forwards ? IsSent(s, stage, f) : (*options_.sent)[stage][f];
      if (sent && own >= n) sum += PassOf(copy, own).copy;
    }
    return sum;
  }
  if (!set_left_.empty()) sum = set_left_[stage * (N_ + 1) + forwards];
  for (int64_t word = n / 64; word < sent_words_; ++word) {
    auto bits = static_cast<uint64_t>(s[sent_ + stage * sent_words_ + word]);
    if (word == n / 64) bits &= ~uint64_t{0} << n % 64;
    sum += __builtin_popcountll(bits);
  }
  return sum * passes_[copy].copy;
}

// Copies of what has begun that are left, one after the other, and the least that comes behind one
// back.
int64_t PartialOrders::LinkBound(const State& s, int d) const {
  int64_t work = 0, behind = kNoMakespan;
  for (const Symbol symbol : symbols_of_[d]) {
    if (!IsCopy(symbol)) continue;
    const int64_t left = CopiesLeft(s, symbol);
    work += left;
    const Symbol input = SymbolOf(StageOf(symbol), kPassI);
    const int64_t tail = PassOf(input, N_ - 1).length + heads_.tail[input * N_ + N_ - 1];
    if (left > 0) behind = std::min(behind, tail);
  }
  return work == 0 ? 0 : std::max(s[links_ + d], s[d]) + work + behind;
}

int64_t PartialOrders::NextBegins(const State& s, std::vector<int64_t>* f_begins,
                                  std::vector<int64_t>* i_begins) const {
  std::vector<int64_t>&next_f = *f_begins, &next_i = *i_begins;
  next_f.resize(S_);
  next_i.resize(S_);
  int64_t best = 0;
  const auto look = [&](Symbol symbol, int64_t begin) {
    const int64_t n = s[counts_ + symbol];
    if (n == N_) return kNoMakespan;
    begin = std::max({begin, s[p_.device_of_stage[StageOf(symbol)]], heads_.head[symbol * N_ + n]});
    best = std::max(best, begin + PassOf(symbol, n).length + heads_.tail[symbol * N_ + n]);
    return begin;
  };
  for (int stage = 0; stage < S_; ++stage) {
    const Symbol f = SymbolOf(stage, kPassF);
    const int64_t n = s[counts_ + f];
    int64_t begin = Arrival(s, f);
    if (begin == kNoMakespan && stage > 0 && n < N_) {
      const Pass& before = PassOf(f - kSymbolKinds, n);
      begin = next_f[stage - 1] + before.length + before.hop;
    }
    next_f[stage] = look(f, begin);
  }
  for (int stage = S_ - 1; stage >= 0; --stage) {
    const Symbol i = SymbolOf(stage, kPassI), f = SymbolOf(stage, kPassF);
    const int64_t n = s[counts_ + i], forwards = s[counts_ + f];
    int64_t begin = 0;
    if (n < N_) {
      // The forwards up to its own, one after the other.
      const int64_t own = p_.MateOf(static_cast<int>(n));
      const bool is_done = own < forwards;
      int64_t forward_end = 0;
      if (!is_done) {
        forward_end = next_f[stage] + sums_.Length(f, own + 1) - sums_.Length(f, forwards);
      }
      begin = forward_end;
      if (stage + 1 < S_) {
        const Symbol after = SymbolOf(stage + 1, kPassI);
        const Pass& pass = PassOf(after, n);
        const int64_t arrival = n < s[counts_ + after] ? s[Slot(i, n)]
                                                       : next_i[stage + 1] + pass.length +
                                                             pass.hop - PassOf(i, n).ahead;
        begin = std::max(begin, arrival);
      } else if (is_done) {
        begin = s[Slot(i, n)];
      }
      if (copies_ && is_done) begin = std::max(begin, NextBack(s, stage));
    }
    next_i[stage] = look(i, begin);
  }
  return best;
}

int64_t PartialOrders::LowerBound(const State& s, int* device, int64_t* sum) const {
  thread_local std::vector<int64_t> next_f, next_i;
  int64_t best = NextBegins(s, &next_f, &next_i), all = 0;
  int where = -1;
  for (int d = 0; d < D_; ++d) {
    int64_t begin = kNoMakespan;
    for (const Symbol symbol : symbols_of_[d]) {
      const int64_t n = s[counts_ + symbol];
      if (n == N_ || !p_.IsPass(symbol)) continue;
      const int stage = StageOf(symbol);
      int64_t b = KindOf(symbol) == kPassF      ? next_f[stage]
                  : KindOf(symbol) == kPassI    ? next_i[stage]
                  : n < s[counts_ + symbol - 1] ? s[d]
                                                : next_i[stage] + PassOf(symbol - 1, n).length;
      begin = std::min(begin, b);
    }
    if (begin == kNoMakespan) {
      all += s[d];
      best = std::max(best, s[d]);
      continue;
    }
    int64_t own = 0;
    for (const Tails& tails : tails_[d]) {
      int64_t work = 0;
      for (size_t i = 0; i < tails.counts.size(); ++i) {
        const Symbol symbol = symbols_of_[d][i];
        const int64_t done = s[counts_ + symbol];
        if (tails.counts[i] <= done) continue;
        work += sums_.Length(symbol, tails.counts[i]) - sums_.Length(symbol, done);
      }
      if (work > 0) own = std::max(own, begin + work + tails.tail);
    }
    if (copies_) own = std::max(own, LinkBound(s, d));
    all += own;
    if (own > best) {
      best = own;
      where = d;
    }
  }
  if (device != nullptr) *device = where;
  if (sum != nullptr) *sum = all;
  return best;
}

}  // namespace pipelab
