#include "pipelines/planners/memory_modes.h"

#include <algorithm>
#include <cmath>

namespace pipelab {
namespace {

constexpr size_t kMostPairs = 20000;

struct Pair {
  double time, bytes;
  int from, mode;  // of the operator before, and the way of this one
};

// The fastest way; of several, the one of the fewest bytes.
int Fastest(const std::vector<MemoryMode>& modes) {
  return static_cast<int>(std::min_element(modes.begin(), modes.end(),
                                           [](const MemoryMode& a, const MemoryMode& b) {
                                             return a.time != b.time ? a.time < b.time
                                                                     : a.bytes < b.bytes;
                                           }) -
                          modes.begin());
}

// The operators that can be made smaller, those that pay least for a byte first.
struct Shrinkable {
  int op, best;  // and the way that does so
  double rate;   // time a byte
};

std::vector<Shrinkable> FindShrinkable(const std::vector<std::vector<MemoryMode>>& operators,
                                       const std::vector<int>& fastest) {
  std::vector<Shrinkable> found;
  for (size_t i = 0; i < operators.size(); ++i) {
    const MemoryMode& from = operators[i][fastest[i]];
    Shrinkable best = {static_cast<int>(i), -1, 0};
    for (size_t m = 0; m < operators[i].size(); ++m) {
      const MemoryMode& to = operators[i][m];
      if (to.bytes >= from.bytes) continue;
      const double rate = (to.time - from.time) / (from.bytes - to.bytes);
      if (best.best < 0 || rate < best.rate) best = {best.op, static_cast<int>(m), rate};
    }
    if (best.best >= 0) found.push_back(best);
  }
  std::sort(found.begin(), found.end(),
            [](const Shrinkable& a, const Shrinkable& b) { return a.rate < b.rate; });
  return found;
}

// Takes those first that pay least; `missing` bytes are to be saved. -1: that is not enough.
double GreedyTime(const std::vector<std::vector<MemoryMode>>& operators,
                  const std::vector<Shrinkable>& order, double missing, std::vector<int>* modes) {
  double extra = 0;
  for (const Shrinkable& s : order) {
    if (missing <= 0) break;
    const MemoryMode &from = operators[s.op][(*modes)[s.op]], &to = operators[s.op][s.best];
    extra += to.time - from.time;
    missing -= from.bytes - to.bytes;
    (*modes)[s.op] = s.best;
  }
  return missing <= 0 ? extra : -1;
}

// [i] Bytes that the operators of `order` from i on can save, at most.
std::vector<double> MostSavings(const std::vector<std::vector<MemoryMode>>& operators,
                                const std::vector<Shrinkable>& order,
                                const std::vector<int>& fastest) {
  std::vector<double> savings(order.size() + 1);
  for (size_t i = order.size(); i-- > 0;) {
    const auto& modes = operators[order[i].op];
    double least = modes[fastest[order[i].op]].bytes;
    for (const MemoryMode& mode : modes) least = std::min(least, mode.bytes);
    savings[i] = savings[i + 1] + modes[fastest[order[i].op]].bytes - least;
  }
  return savings;
}

// What a choice may take, and what the operators that are still open can do for it.
struct Limits {
  double time, most;     // of the fastest modes; of the choice, at most
  double savings, rate;  // bytes that can still be saved, and what a byte costs at least
};

// The pairs with one more operator, in each of its modes.
std::vector<Pair> Extended(const std::vector<Pair>& pairs, const std::vector<MemoryMode>& modes,
                           int fastest, const Limits& limits) {
  const MemoryMode& from = modes[fastest];
  std::vector<Pair> next;
  for (size_t p = 0; p < pairs.size(); ++p) {
    for (size_t m = 0; m < modes.size(); ++m) {
      const double extra = pairs[p].time + modes[m].time - from.time;
      const double missing = pairs[p].bytes - (from.bytes - modes[m].bytes);
      if (missing > limits.savings * (1 + 1e-15)) continue;
      if (limits.time + extra + std::max(missing, 0.0) * limits.rate > limits.most) continue;
      next.push_back({extra, missing, static_cast<int>(p), static_cast<int>(m)});
    }
  }
  return next;
}

// By their time.
std::vector<Pair> Undominated(std::vector<Pair> pairs) {
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  std::vector<Pair> kept;
  for (const Pair& pair : pairs) {
    if (!kept.empty() && pair.bytes >= kept.back().bytes) continue;
    kept.push_back(pair);
    if (pair.bytes <= 0) break;  // what comes later costs more
  }
  return kept;
}

}  // namespace

MemoryChoice FastestFit(const std::vector<std::vector<MemoryMode>>& operators, double room,
                        double most) {
  std::vector<int> fastest;
  double time = 0, bytes = 0;
  for (const auto& modes : operators) {
    fastest.push_back(Fastest(modes));
    time += modes[fastest.back()].time;
    bytes += modes[fastest.back()].bytes;
  }
  MemoryChoice choice;
  if (time > most) return choice;
  choice.modes = fastest;
  if (bytes <= room) {
    choice.time = time;
    return choice;
  }
  const std::vector<Shrinkable> order = FindShrinkable(operators, fastest);
  const double greedy = GreedyTime(operators, order, bytes - room, &choice.modes);
  if (greedy >= 0 && time + greedy <= most) {
    choice.time = most = time + greedy;
  } else {
    choice.modes.clear();
  }
  // Pairs of what is spent on top of `time` and of the bytes still to be saved.
  std::vector<std::vector<Pair>> pairs(order.size() + 1);
  pairs[0] = {{0, bytes - room, -1, -1}};
  const std::vector<double> savings = MostSavings(operators, order, fastest);
  for (size_t i = 0; i < order.size(); ++i) {
    const double rate = i + 1 < order.size() ? order[i + 1].rate : 0;
    pairs[i + 1] = Undominated(Extended(pairs[i], operators[order[i].op], fastest[order[i].op],
                                        {time, most, savings[i + 1], rate}));
    if (pairs[i + 1].size() > kMostPairs) {
      choice.exact = false;
      for (size_t p = 0; 2 * p < pairs[i + 1].size(); ++p) pairs[i + 1][p] = pairs[i + 1][2 * p];
      pairs[i + 1].resize((pairs[i + 1].size() + 1) / 2);
    }
  }
  const auto enough = std::find_if(pairs.back().begin(), pairs.back().end(),
                                   [](const Pair& pair) { return pair.bytes <= 0; });
  if (enough == pairs.back().end() || time + enough->time > choice.time) return choice;
  choice.time = time + enough->time;
  choice.modes = fastest;
  size_t p = enough - pairs.back().begin();
  for (size_t i = order.size(); i > 0; --i) {
    choice.modes[order[i - 1].op] = pairs[i][p].mode;
    p = pairs[i][p].from;
  }
  return choice;
}

namespace {

class ClassSearch {
 public:
  ClassSearch(const std::vector<ClassOfModes>& classes, double best)
      : classes_(classes), best_(best) {}

  void Extend(size_t i, double missing, double time) {
    if (missing <= 0) {
      best_ = std::min(best_, time);
      return;
    }
    if (i == classes_.size() || --budget_ < 0) return;
    const ClassOfModes& c = classes_[i];
    const int most = static_cast<int>(std::min<double>(c.count, std::ceil(missing / c.bytes)));
    for (int n = most; n >= 0; --n) {
      const double left = missing - c.bytes * n, spent = time + c.time * n;
      if (Bound(i + 1, left, spent) < best_) {
        Extend(i + 1, left, spent);
      } else if (left > 0) {
        return;  // fewer of this class leave more to classes that cost more
      }
    }
  }

  double best() const { return best_; }
  bool exact() const { return budget_ >= 0; }

 private:
  double Bound(size_t i, double missing, double time) const {
    for (; missing > 0; ++i) {
      if (i == classes_.size()) return std::numeric_limits<double>::infinity();
      const ClassOfModes& c = classes_[i];
      const double all = c.bytes * c.count;
      if (all >= missing) return time + c.time * (missing / c.bytes);
      missing -= all;
      time += c.time * c.count;
    }
    return time;
  }

  const std::vector<ClassOfModes>& classes_;
  double best_;
  int budget_ = 500;
};

}  // namespace

double LeastTimeOfClasses(const std::vector<ClassOfModes>& classes, double missing, double enough,
                          bool* exact) {
  ClassSearch search(classes, enough);
  search.Extend(0, missing, 0);
  *exact = search.exact();
  return search.best();
}

}  // namespace pipelab
