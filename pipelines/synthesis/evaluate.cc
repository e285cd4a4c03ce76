#include "pipelines/synthesis/evaluate.h"

#include <algorithm>

namespace pipelab {

WordEvaluator::WordEvaluator(const SynthesisProblem& p)
    : micro_batches_(p.micro_batches),
      passes_(p.symbols()),
      arrivals_(passes_.size() * p.micro_batches),
      counts_(passes_.size()),
      begins_(p.devices),
      at_(p.devices),
      free_(p.devices),
      copies_(p.HasCopies()),
      link_(p.devices),
      out_(p.devices),
      back_(copies_ ? passes_.size() * p.micro_batches : 0) {
  for (int s = 0; s < p.stages(); ++s) {
    const bool last = s + 1 == p.stages();
    for (int kind = 0; kind < kSymbolKinds; ++kind) {
      const Symbol symbol = SymbolOf(s, kind);
      Pass& pass = passes_[symbol];
      pass.length = p.Has(symbol) ? p.Length(symbol) : 0;
      if (kind == kPassF) {
        pass.next = last ? symbol + 1 : SymbolOf(s + 1, kPassF);
        pass.hop = last ? 0 : p.Hop(s);
      } else if (kind == kPassI && s > 0) {
        pass.next = SymbolOf(s - 1, kPassI);
        pass.hop = p.Hop(s - 1);
      }
      if (kind == kPassI) pass.after_arrival = p.Rebuild(s);
      if (pass.next >= 0) pass.device_of_next = p.device_of_stage[StageOf(pass.next)];
    }
  }
  ready_.reserve(size_t{2} * p.stages() * p.micro_batches + p.devices);
}

int64_t WordEvaluator::Makespan(const OrderWords& words) {
  const int devices = static_cast<int>(words.size());
  std::fill(arrivals_.begin(), arrivals_.end(), kNoMakespan);
  std::fill_n(arrivals_.begin(), micro_batches_, 0);  // the first stage's forwards
  for (size_t w = kPassW; w < passes_.size(); w += kSymbolKinds) {
    std::fill_n(arrivals_.begin() + static_cast<int64_t>(w) * micro_batches_, micro_batches_, 0);
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
      const Symbol symbol = words[d][i];
      const Pass& pass = passes_[symbol];
      const int64_t m = counts_[symbol];
      if (copies_ && IsCopy(symbol)) {
        free = BeginCopy(d, symbol, free);
        begins_[d][i] = free;
        --left;
        continue;
      }
      const int64_t arrival = arrivals_[symbol * int64_t{micro_batches_} + m];
      if (arrival == kNoMakespan) break;
      int64_t begin = std::max(free, arrival - pass.after_arrival);
      if (copies_) begin = std::max(begin, back_[symbol * int64_t{micro_batches_} + m]);
      begins_[d][i] = begin;
      free = begin + pass.length;
      counts_[symbol] = static_cast<int32_t>(m) + 1;
      --left;
      if (pass.next < 0) continue;
      arrivals_[pass.next * int64_t{micro_batches_} + m] = free + pass.hop;
      if (pass.device_of_next != d) ready_.push_back(pass.device_of_next);
    }
    at_[d] = i;
    free_[d] = free;
  }
  return left > 0 ? kNoMakespan : *std::max_element(free_.begin(), free_.end());
}

int64_t WordEvaluator::BeginCopy(int d, Symbol symbol, int64_t now) {
  const int64_t m = counts_[symbol]++;
  const int64_t begin = std::max(now, out_[d]);
  link_[d] = std::max(begin, link_[d]) + passes_[symbol].length;
  const int stage = StageOf(symbol);
  if (KindOf(symbol) == kCopyO) {
    out_[d] = link_[d];
  } else {
    back_[SymbolOf(stage, kPassI) * int64_t{micro_batches_} + m] = link_[d];
  }
  return begin;
}

std::vector<WordPlace> WordEvaluator::CriticalPath(const OrderWords& words) const {
  std::vector<std::vector<int32_t>> places(passes_.size());  // [symbol][micro-batch] index
  int64_t end = -1;
  WordPlace at;
  for (size_t d = 0; d < words.size(); ++d) {
    for (size_t i = 0; i < words[d].size(); ++i) {
      places[words[d][i]].push_back(static_cast<int32_t>(i));
    }
    if (words[d].empty() || begins_[d].back() + passes_[words[d].back()].length <= end) continue;
    end = begins_[d].back() + passes_[words[d].back()].length;
    at = {static_cast<int>(d), static_cast<int>(words[d].size()) - 1};
  }
  std::vector<int> before(passes_.size(), -1), device_of(passes_.size(), -1);
  for (size_t s = 0; s < passes_.size(); ++s) {
    if (passes_[s].next >= 0) before[passes_[s].next] = static_cast<int>(s);
  }
  for (size_t d = 0; d < words.size(); ++d) {
    for (const Symbol symbol : words[d]) device_of[symbol] = static_cast<int>(d);
  }
  std::vector<WordPlace> path;
  while (true) {
    path.push_back(at);
    const int64_t begin = begins_[at.device][at.index];
    if (begin == 0) break;
    const auto& word = words[at.device];
    if (at.index > 0 &&
        begins_[at.device][at.index - 1] + passes_[word[at.index - 1]].length == begin) {
      --at.index;
      continue;
    }
    const Symbol symbol = word[at.index];
    const auto m = std::lower_bound(places[symbol].begin(), places[symbol].end(), at.index) -
                   places[symbol].begin();
    const int from = before[symbol];
    if (from < 0) break;
    at = {device_of[from], places[from][m]};
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace pipelab
