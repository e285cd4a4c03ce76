#include "pipelines/synthesis/local_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pipelines/synthesis/evaluate.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int64_t kFarthest = 12;                   // symbols
constexpr int64_t kOutWithin = 6, kBackWithin = 8;  // of a new trip's copies, behind F, before I

class LocalOrderSearch {
 public:
  LocalOrderSearch(const SynthesisProblem& p, OrderWords words, const LocalSearchOptions& options)
      : p_(p),
        options_(options),
        evaluator_(p),
        random_(options.seed, "local search"),
        words_(std::move(words)) {}

  OrderWords Run() {
    Value best = ValueOf();
    for (int64_t move = 0; move < options_.moves; ++move) {
      if (options_.stop && move % 256 == 0 && options_.stop()) break;
      const auto d = static_cast<int>(Below(p_.devices));
      if (words_[d].empty()) continue;
      const std::vector<Symbol> before = words_[d];
      Change(&words_[d]);
      const Value value = IsWordOf(p_, d, words_[d]) ? ValueOf() : Value{kNoMakespan, 0};
      if (value <= best) {
        best = value;
      } else {
        words_[d] = before;
      }
    }
    return std::move(words_);
  }

 private:
  using Value = std::pair<int64_t, int64_t>;  // makespan, sum of begins

  int64_t Below(int64_t end) { return static_cast<int64_t>(random_.Below(drawn_++, end)); }

  Value ValueOf() {
    Value value = {evaluator_.Makespan(words_), 0};
    if (value.first == kNoMakespan) return value;
    for (int d = 0; d < p_.devices; ++d) {
      for (size_t i = 0; i < words_[d].size(); ++i) {
        if (KindOf(words_[d][i]) == kPassI) value.second += evaluator_.Begins(d)[i];
      }
    }
    return value;
  }

  void Change(std::vector<Symbol>* word) {
    const auto size = static_cast<int64_t>(word->size());
    const int64_t at = Below(size);
    const Symbol symbol = (*word)[at];
    if (IsForward(symbol) && p_.MayOffload(StageOf(symbol)) && Below(2) == 0) {
      ChangeTrip(at, word);
      return;
    }
    const int64_t by = 1 + Below(1 + Below(kFarthest));
    const int64_t to = std::clamp<int64_t>(Below(2) == 0 ? at + by : at - by, 0, size - 1);
    const auto begin = word->begin();
    if (to > at) {
      std::rotate(begin + at, begin + at + 1, begin + to + 1);
    } else {
      std::rotate(begin + to, begin + at, begin + at + 1);
    }
  }

  static bool IsForwardOf(int stage, Symbol symbol) {
    return StageOf(symbol) == stage && IsForward(symbol);
  }

  // Changes the trip of the unit whose forward is there.
  void ChangeTrip(int64_t at, std::vector<Symbol>* word) {
    const int stage = StageOf((*word)[at]);
    int n = 0;                   // forwards before it
    int64_t trip = 0, back = 0;  // copies out before its own, and copies back
    for (int64_t i = 0; i < at; ++i) n += IsForwardOf(stage, (*word)[i]) ? 1 : 0;
    int other = 0;
    for (const Symbol symbol : *word) {
      if (!IsForwardOf(stage, symbol)) continue;
      const bool sent = KindOf(symbol) == kSentF;
      trip += sent && other < n ? 1 : 0;
      back += sent && p_.MateOf(other) < p_.MateOf(n) ? 1 : 0;
      ++other;
    }
    const auto place = [&](int kind, int64_t nth) {
      size_t i = 0;
      while ((*word)[i] != SymbolOf(stage, kind) || nth-- > 0) ++i;
      return word->begin() + static_cast<int64_t>(i);
    };
    if (KindOf((*word)[at]) == kSentF) {
      (*word)[at] = SymbolOf(stage, kPassF);
      word->erase(place(kCopyL, back));
      word->erase(place(kCopyO, trip));
      return;
    }
    (*word)[at] = SymbolOf(stage, kSentF);
    const int64_t input = place(kPassI, p_.MateOf(n)) - word->begin();
    const int64_t begin = std::max(at + 1, input - Below(kBackWithin));
    const int64_t out = std::min(begin, at + 1 + Below(kOutWithin));
    word->insert(word->begin() + begin, SymbolOf(stage, kCopyL));
    word->insert(word->begin() + out, SymbolOf(stage, kCopyO));
  }

  const SynthesisProblem& p_;
  const LocalSearchOptions& options_;
  WordEvaluator evaluator_;
  const CounterRng random_;
  uint64_t drawn_ = 0;
  OrderWords words_;
};

}  // namespace

OrderWords LocalSearch(const SynthesisProblem& p, OrderWords words,
                       const LocalSearchOptions& options) {
  return LocalOrderSearch(p, std::move(words), options).Run();
}

}  // namespace pipelab
