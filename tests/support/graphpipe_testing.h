// Small graphs for tests of GraphPipe's planner, and the best of all their plans, found by trying
// each with arithmetic of its own.
//
//   Draw draw(seed, "test");
//   PlanProblem p = ProblemOn(EdgesOf(bits, 5), 5, {}, &draw);
//   double best = BruteForce(p).Best();     // infinity: no plan fits
#ifndef PIPELAB_TESTS_SUPPORT_GRAPHPIPE_TESTING_H_
#define PIPELAB_TESTS_SUPPORT_GRAPHPIPE_TESTING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/planners/plan_problem.h"
#include "tests/support/plan_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {

inline constexpr double kPairBandwidth = 16;

struct Kind {
  bool recompute = false, sizes = false, latency = false, levels = false;
};

// Figures are small whole numbers: ties are frequent, and sums are exact.
inline PlanProblem ProblemOn(const std::vector<PlanEdge>& edges, int size, Kind kind, Draw* draw) {
  PlanProblem p;
  p.bandwidth = 4;
  p.micro_batches = 4;
  p.latency = kind.latency ? 0.5 : 0;
  p.devices = 1 + draw->Below(4);
  if (kind.levels && p.devices % 2 == 0) {
    p.levels = {{2, kPairBandwidth, p.latency}, {p.devices / 2, p.bandwidth, p.latency}};
  }
  if (kind.sizes) {
    p.micro_batch_size = 2;
    p.micro_batch_sizes = {1, 2, 4};
  }
  p.edges = edges;
  for (PlanEdge& edge : p.edges) edge.bytes = draw->Number(8);
  for (int v = 0; v < size; ++v) {
    PlanOperator o;
    o.id = absl::StrCat(v);
    PlanVariant plain;
    plain.name = "plain";
    plain.time = 4 + draw->Number(12);
    plain.parameter_bytes = draw->Number(16);
    plain.in_flight_bytes = draw->Number(8);
    plain.fixed_bytes = draw->Number(8);
    double time = plain.time / 2;
    for (size_t i = 0; i < p.micro_batch_sizes.size(); ++i) {
      plain.times.push_back({0, time});
      time *= 1.5 + 0.25 * draw->Number(3);  // at most in proportion
    }
    o.variants[1] = {plain};
    if (kind.recompute && draw->Below(2) == 0) {
      PlanVariant again = plain;
      again.recompute = true;
      again.time += 2;
      for (PlanTimes& t : again.times) t.time += 2;
      again.in_flight_bytes = std::floor(plain.in_flight_bytes / 2);
      o.variants[1].push_back(again);
    }
    p.operators.push_back(o);
  }
  EXPECT_THAT(FinishProblem(&p, "test"), IsOk());
  return p;
}

// Every partition into stages whose graph has no cycle, every number of copies and size of
// micro-batch. Stages of a partition are numbered by their first operators.
class BruteForce {
 public:
  // `batch`: of a batch's time, not of the longest stage.
  explicit BruteForce(const PlanProblem& problem, bool batch = false)
      : p_(problem), batch_(batch), stage_of_(problem.size()) {}

  double Best() {
    Partition(0, 0);
    return best_;
  }

 private:
  void Partition(int v, int stages) {
    if (v == p_.size()) {
      stages_ = stages;
      if (Order()) Shapes(0, p_.devices, 0);
      return;
    }
    for (int s = 0; s <= stages && s < p_.devices; ++s) {
      stage_of_[v] = s;
      Partition(v + 1, std::max(stages, s + 1));
    }
  }

  // From the sinks on; false where there is a cycle.
  bool Order() {
    order_.clear();
    std::vector<bool> done(stages_);
    while (static_cast<int>(order_.size()) < stages_) {
      int next = -1;
      for (int s = 0; s < stages_ && next < 0; ++s) {
        bool ready = !done[s];
        for (const PlanEdge& e : p_.edges) {
          if (stage_of_[e.from] == s && stage_of_[e.to] != s) ready &= done[stage_of_[e.to]];
        }
        if (ready) next = s;
      }
      if (next < 0) return false;
      done[next] = true;
      order_.push_back(next);
    }
    samples_.assign(stages_, 0);
    times_.assign(stages_, 0);
    own_.assign(stages_, 0);
    return true;
  }

  void Shapes(int place, int64_t devices, double value) {
    if (!batch_ && value >= best_) return;
    if (place == stages_) {
      best_ = std::min(best_, batch_ ? BatchTime() : value);
      return;
    }
    const int s = order_[place];
    int64_t behind = 0;
    for (const PlanEdge& e : p_.edges) {
      if (stage_of_[e.from] == s && stage_of_[e.to] != s) {
        behind = std::max(behind, samples_[stage_of_[e.to]]);
      }
    }
    for (int64_t d = 1; d <= devices - (stages_ - place - 1); d *= 2) {
      std::vector<int64_t> sizes = p_.micro_batch_sizes;
      if (sizes.empty()) sizes = {d};
      for (int64_t own : sizes) {
        const int64_t batch = p_.micro_batches * p_.micro_batch_size;
        if (own % d != 0 || batch % own != 0) continue;
        samples_[s] = behind + own;
        own_[s] = static_cast<double>(own) / static_cast<double>(p_.micro_batch_size);
        const auto in_flight = static_cast<double>((behind + own + own - 1) / own);
        times_[s] = Time(s, static_cast<double>(d), static_cast<double>(own), in_flight);
        if (times_[s] == kInfinity) continue;
        Shapes(place + 1, devices - d, std::max(value, times_[s]));
      }
    }
  }

  // The longest path through the stages, and the rest at the pace of the slowest.
  double BatchTime() const {
    std::vector<double> path(stages_);
    double longest = 0, rest = 0;
    for (const int s : order_) {  // from the sinks on
      for (const PlanEdge& e : p_.edges) {
        if (stage_of_[e.from] == s && stage_of_[e.to] != s) {
          path[s] = std::max(path[s], path[stage_of_[e.to]]);
        }
      }
      path[s] += own_[s] * times_[s];
      longest = std::max(longest, path[s]);
      const double others = static_cast<double>(p_.micro_batches) - own_[s];
      rest = std::max(rest, std::max(others, 0.0) * times_[s]);
    }
    return longest + rest;
  }

  // The time of the fastest ways that fit.
  double Time(int s, double d, double own, double in_flight) const {
    std::vector<int> layers;
    for (int v = 0; v < p_.size(); ++v) {
      if (stage_of_[v] == s) layers.push_back(v);
    }
    const double copy = own / d, samples = static_cast<double>(p_.micro_batch_size);
    double messages = 0, bytes = 0;
    for (const PlanEdge& e : p_.edges) {
      if ((stage_of_[e.from] == s) == (stage_of_[e.to] == s)) continue;
      messages += 1;
      bytes += e.bytes;
    }
    const double sums = !p_.levels.empty() && d <= 2 ? kPairBandwidth : p_.bandwidth;
    double best = kInfinity;
    for (int ways = 0; ways < 1 << layers.size(); ++ways) {
      double time = 0, weights = 0, memory = 0;
      bool there = true;
      for (size_t i = 0; i < layers.size() && there; ++i) {
        const auto& variants = p_.operators[layers[i]].variants.at(1);
        const size_t way = ways >> i & 1;
        there = way < variants.size();
        if (!there) break;
        const PlanVariant& v = variants[way];
        double t = v.time;
        if (!v.times.empty()) t = v.times[copy == 1 ? 0 : (copy == 2 ? 1 : 2)].time;
        time += t / copy * samples;
        weights += v.parameter_bytes;
        memory += v.in_flight_bytes * (copy / samples) * in_flight + v.fixed_bytes;
      }
      if (!there || memory > p_.memory_bytes) continue;
      const double batch = static_cast<double>(p_.micro_batches);
      best = std::min(best, time / d + 2 * bytes / d / p_.bandwidth +
                                4 * (d - 1) * weights / (d * batch) / sums +
                                2 * messages * p_.latency * samples / own);
    }
    return best;
  }

  const PlanProblem& p_;
  const bool batch_;
  std::vector<int> stage_of_, order_;
  std::vector<double> times_, own_;  // own: in the problem's micro-batches
  std::vector<int64_t> samples_;
  int stages_ = 0;
  double best_ = kInfinity;
};

inline bool IsConnected(const std::vector<PlanEdge>& edges, int size) {
  std::vector<int> part(size);
  std::iota(part.begin(), part.end(), 0);
  for (int round = 0; round < size; ++round) {
    for (const PlanEdge& e : edges) {
      part[e.from] = part[e.to] = std::min(part[e.from], part[e.to]);
    }
  }
  return std::all_of(part.begin(), part.end(), [](int x) { return x == 0; });
}

inline std::vector<PlanEdge> EdgesOf(int64_t bits, int size) {
  std::vector<PlanEdge> edges;
  for (int to = 1; to < size; ++to) {
    for (int from = 0; from < to; ++from, bits >>= 1) {
      if ((bits & 1) != 0) edges.push_back({from, to, 0});
    }
  }
  return edges;
}

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_GRAPHPIPE_TESTING_H_
