#include "pipelines/synthesis/evaluate.h"

#include <algorithm>

namespace pipelab {

WordEvaluator::WordEvaluator(const SynthesisProblem& p)
    : units_(p.units()),
      slices_(p.slices),
      passes_(p.symbols() * slices_),
      arrivals_(p.symbols() * units_),
      counts_(p.symbols()),
      begins_(p.devices),
      at_(p.devices),
      free_(p.devices),
      copies_(p.HasCopies()),
      link_(p.devices),
      out_(p.devices),
      back_(copies_ ? arrivals_.size() : 0),
      sent_(back_.size()) {
  for (int symbol = 0; symbol < p.symbols(); ++symbol) {
    const auto own = static_cast<Symbol>(symbol);
    const int s = StageOf(own), kind = KindOf(own);
    if (!p.Has(own)) continue;
    const bool last = s + 1 == p.stages();
    for (int n = 0; n < p.slices; ++n) {
      Pass& pass = passes_[symbol * slices_ + n];
      const int slice = p.SliceOf(own, n);
      pass.length = p.Length(own, slice);
      if (IsForward(own)) {
        pass.next = SymbolOf(last ? s : s + 1, last ? kPassI : kPassF);
        pass.hop = last ? 0 : p.Hop(s);
        pass.to = last ? p.MateOf(n) - n : 0;
      } else if (kind == kPassI && s > 0) {
        pass.next = SymbolOf(s - 1, kPassI);
        pass.hop = p.Hop(s - 1);
      }
      if (kind == kPassI) pass.after_arrival = p.Rebuild(s, slice);
      if (pass.next >= 0) pass.device_of_next = p.device_of_stage[StageOf(pass.next)];
    }
  }
  ready_.reserve(size_t{2} * p.stages() * p.units() + p.devices);
}

int64_t WordEvaluator::Makespan(const OrderWords& words) {
  const int devices = static_cast<int>(words.size());
  std::fill(arrivals_.begin(), arrivals_.end(), kNoMakespan);
  std::fill_n(arrivals_.begin(), units_, 0);  // the first stage's forwards
  for (size_t w = kPassW; w < counts_.size(); w += kSymbolKinds) {
    std::fill_n(arrivals_.begin() + static_cast<int64_t>(w) * units_, units_, 0);
  }
  std::fill(counts_.begin(), counts_.end(), 0);
  std::fill(at_.begin(), at_.end(), 0);
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(link_.begin(), link_.end(), 0);
  std::fill(out_.begin(), out_.end(), 0);
  std::fill(back_.begin(), back_.end(), 0);
  ready_.clear();
  for (int d = devices - 1; d >= 0; --d) {
    ready_.push_back(d);
    begins_[d].resize(words[d].size());
  }
  size_t left = 0;
  for (const auto& word : words) left += word.size();
  while (!ready_.empty()) {
    const int d = ready_.back();
    ready_.pop_back();
    int64_t free = free_[d];
    size_t i = at_[d];
    for (; i < words[d].size(); ++i) {
      Symbol symbol = words[d][i];
      if (copies_ && IsCopy(symbol)) {
        free = BeginCopy(d, symbol, free);
        begins_[d][i] = free;
        --left;
        continue;
      }
      const bool sent = copies_ && KindOf(symbol) == kSentF;
      if (sent) symbol = CountedAs(symbol);
      const int64_t n = counts_[symbol];
      const Pass& pass = PassOf(symbol, n);
      const int64_t arrival = arrivals_[symbol * units_ + n];
      if (arrival == kNoMakespan) break;
      int64_t begin = std::max(free, arrival - pass.after_arrival);
      if (copies_) begin = std::max(begin, back_[symbol * units_ + n]);
      begins_[d][i] = begin;
      free = begin + pass.length;
      counts_[symbol] = static_cast<int32_t>(n) + 1;
      --left;
      if (sent) sent_[words[d][i] * units_ + counts_[words[d][i]]++] = static_cast<int32_t>(n);
      if (pass.next < 0) continue;
      arrivals_[pass.next * units_ + n + pass.to] = free + pass.hop;
      if (pass.device_of_next != d) ready_.push_back(pass.device_of_next);
    }
    at_[d] = i;
    free_[d] = free;
  }
  return left > 0 ? kNoMakespan : *std::max_element(free_.begin(), free_.end());
}

int64_t WordEvaluator::BeginCopy(int d, Symbol symbol, int64_t now) {
  const int64_t n = counts_[symbol]++;
  const int64_t begin = std::max(now, out_[d]);
  const int stage = StageOf(symbol);
  const int64_t sent_symbol = SymbolOf(stage, kSentF);
  const int32_t* sent = &sent_[sent_symbol * units_];
  const bool is_out = KindOf(symbol) == kCopyO;
  int64_t unit = sent[is_out ? n : PlaceOfBack(sent, counts_[sent_symbol], n, slices_)];
  if (!is_out && slices_ > 1) unit += slices_ - 1 - 2 * (unit % slices_);  // the backward
  link_[d] = std::max(begin, link_[d]) + PassOf(symbol, unit).length;
  if (is_out) {
    out_[d] = link_[d];
  } else {
    back_[SymbolOf(stage, kPassI) * units_ + unit] = link_[d];
  }
  return begin;
}

std::vector<WordPlace> WordEvaluator::CriticalPath(const OrderWords& words) const {
  std::vector<std::vector<WordPlace>> places(counts_.size());  // [symbol][unit]
  std::vector<std::vector<int64_t>> ends(words.size());
  std::vector<std::vector<int>> units(words.size());
  int64_t end = -1;
  WordPlace at;
  for (size_t d = 0; d < words.size(); ++d) {
    for (size_t i = 0; i < words[d].size(); ++i) {
      auto& own = places[words[d][i]];
      units[d].push_back(static_cast<int>(own.size()));
      ends[d].push_back(begins_[d][i] + PassOf(words[d][i], units[d].back()).length);
      own.push_back({static_cast<int>(d), static_cast<int>(i)});
    }
    if (words[d].empty() || ends[d].back() <= end) continue;
    end = ends[d].back();
    at = places[words[d].back()].back();
  }
  // Whose result each takes: the unit of the same number, or of a micro-batch's last stage its
  // mate.
  std::vector<int> before(counts_.size(), -1);
  for (size_t s = 0; s < before.size(); ++s) {
    const Pass& pass = passes_[s * slices_];
    if (pass.next >= 0) before[pass.next] = static_cast<int>(s);
  }
  std::vector<WordPlace> path;
  while (true) {
    path.push_back(at);
    const int64_t begin = begins_[at.device][at.index];
    if (begin == 0) break;
    if (at.index > 0 && ends[at.device][at.index - 1] == begin) {
      --at.index;
      continue;
    }
    const int from = before[words[at.device][at.index]];
    if (from < 0) break;
    const int n = units[at.device][at.index];
    at = places[from][n + PassOf(static_cast<Symbol>(from), n).to];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace pipelab
