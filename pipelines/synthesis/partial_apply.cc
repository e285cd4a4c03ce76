// What a pass or a wait makes of a beginning of an order.
#include <algorithm>
#include <vector>

#include "pipelines/synthesis/partial.h"

namespace pipelab {

void PartialOrders::Apply(int d, Symbol symbol, State* state, Undo* undo) const {
  State& s = *state;
  const int64_t n = UnitOf(s, symbol);
  const Pass& pass = PassOf(symbol, n);
  if (undo != nullptr) {
    *undo = {s[d], s[D_ + d], s[2 * D_ + d], s[3 * D_ + d], 0, -1, 0, 0, 0, 0};
    undo->count = s[counts_ + CountedAs(symbol)];
    if (copies_) {
      undo->link = s[links_ + d];
      undo->out = s[links_ + D_ + d];
      undo->leaving = s[links_ + 2 * D_ + d];
    }
  }
  if (IsCopy(symbol)) {
    if (undo != nullptr && pass.next >= 0) {
      undo->arrival_at = static_cast<int32_t>(Slot(symbol, n));
      undo->arrival = s[undo->arrival_at];
    }
    ApplyCopy(d, symbol, state);
    return;
  }
  const int64_t begin = std::max(s[d], Arrival(s, symbol));
  s[d] = begin + pass.length;
  s[D_ + d] += pass.change;
  s[2 * D_ + d] = 0;
  s[3 * D_ + d] = kNoMakespan;
  ++s[counts_ + CountedAs(symbol)];
  if (KindOf(symbol) == kSentF) {
    s[sent_ + StageOf(symbol) * sent_words_ + n / 64] |= int64_t{1} << n % 64;
  }
  if (pass.next < 0) return;
  const auto next = static_cast<Symbol>(pass.next);
  const int64_t at = Slot(next, n + pass.to);
  if (undo != nullptr) {
    undo->arrival_at = static_cast<int32_t>(at);
    undo->arrival = s[at];
  }
  s[at] = s[d] + pass.hop - PassOf(next, n + pass.to).ahead;
}

void PartialOrders::ApplyCopy(int d, Symbol symbol, State* state) const {
  State& s = *state;
  const int64_t n = UnitOf(s, symbol);
  const Pass& pass = PassOf(symbol, n);
  int64_t &link = s[links_ + d], &out = s[links_ + D_ + d], &leaving = s[links_ + 2 * D_ + d];
  if (leaving > 0) {
    s[d] = std::max(s[d], out);
    s[D_ + d] -= leaving_bytes_[leaving - 1];
  }
  link = std::max(link, s[d]) + pass.copy;
  const bool is_out = KindOf(symbol) == kCopyO;
  out = is_out ? link : 0;
  leaving = is_out ? StageOf(symbol) * K_ + n % K_ + 1 : 0;
  s[D_ + d] += pass.change;
  s[2 * D_ + d] = 0;
  s[3 * D_ + d] = kNoMakespan;
  s[counts_ + symbol] = n + 1;
  if (!is_out) s[Slot(symbol, n)] = link;
}

void PartialOrders::Revert(int d, Symbol symbol, const Undo& undo, State* state) const {
  State& s = *state;
  s[d] = undo.free;
  s[D_ + d] = undo.level;
  s[2 * D_ + d] = undo.ruled_out;
  s[3 * D_ + d] = undo.deadline;
  s[counts_ + CountedAs(symbol)] = undo.count;
  if (KindOf(symbol) == kSentF) {
    s[sent_ + StageOf(symbol) * sent_words_ + undo.count / 64] &= ~(int64_t{1} << undo.count % 64);
  }
  if (undo.arrival_at >= 0) s[undo.arrival_at] = undo.arrival;
  if (!copies_) return;
  s[links_ + d] = undo.link;
  s[links_ + D_ + d] = undo.out;
  s[links_ + 2 * D_ + d] = undo.leaving;
}

void PartialOrders::Delay(const Decision& decision, State* state) const {
  State& s = *state;
  const int d = decision.device;
  for (const Symbol symbol : decision.symbols) {
    const Pass& pass = PassOf(symbol, UnitOf(s, symbol));
    s[2 * D_ + d] |= int64_t{1} << pass.bit;
    if (!pass.takes_room) s[3 * D_ + d] = std::min(s[3 * D_ + d], decision.begin + pass.length);
  }
}

void PartialOrders::AppendTimes(const State& s, int64_t from_time,
                                std::vector<int64_t>* times) const {
  for (int d = 0; d < D_; ++d) times->push_back(std::max(s[d], from_time));
  for (int d = 0; d < (copies_ ? 2 * D_ : 0); ++d) {
    times->push_back(std::max(s[links_ + d], from_time));
  }
  for (int stage = 0; stage < S_; ++stage) {
    for (const int kind : {kPassF, kPassI}) {
      const Symbol symbol = SymbolOf(stage, kind);
      if (kind == kPassF && stage == 0) continue;
      const Symbol from = ProducerOf(symbol);
      const int64_t made = s[counts_ + from];
      if (IsMirrored(from)) {
        for (int64_t n = s[counts_ + symbol]; n < (made + K_ - 1) / K_ * K_; ++n) {
          if (p_.MateOf(static_cast<int>(n)) >= made) continue;
          times->push_back(std::max(s[Slot(symbol, n)], from_time));
        }
        continue;
      }
      for (int64_t n = s[counts_ + symbol]; n < made; ++n) {
        times->push_back(std::max(s[Slot(symbol, n)], from_time));
      }
    }
    if (!p_.MayOffload(stage)) continue;
    const Symbol back = SymbolOf(stage, kCopyL);
    for (int64_t n = s[counts_ + SymbolOf(stage, kPassI)]; n < s[counts_ + back]; ++n) {
      const bool sent = IsSent(s, stage, p_.MateOf(static_cast<int>(n)));
      if (sent) times->push_back(std::max(s[Slot(back, n)], from_time));
    }
  }
}

}  // namespace pipelab
