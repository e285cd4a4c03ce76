#include "pipelines/analysis/arrivals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <utility>

#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

void SumUp(std::vector<Nanoseconds> latencies, StreamFigures* figures) {
  figures->taken = static_cast<int64_t>(latencies.size());
  const TimeShares shares = SharesOf(std::move(latencies));
  figures->median = shares.median;
  figures->p99 = shares.p99;
  figures->longest = shares.longest;
}

// [micro-batch] From the begin of its first forward to the end of its last one.
struct Passage {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
};

std::vector<Passage> PassagesOf(const Program& program, const Trace& trace) {
  std::vector<Passage> passages;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOf(program, trace, d)) {
      if (s.op != OpCode::kCompute || s.action.kind != ActionKind::kForward) continue;
      const auto m = static_cast<size_t>(s.action.micro_batch);
      if (m >= passages.size()) passages.resize(m + 1);
      passages[m].begin = std::min(passages[m].begin, s.begin_ns);
      passages[m].end = std::max(passages[m].end, s.end_ns);
    }
  }
  return passages;
}

class Entrance {
 public:
  explicit Entrance(const StreamRules& rules) : rules_(rules) {}

  void Arrive(Nanoseconds now) {
    TakeUntil(now);
    const auto waiting = static_cast<int64_t>(waiting_.size());
    if (waiting >= rules_.places && free_ > now) {
      if (rules_.when_full == WhenFull::kDropOldest) {
        waiting_.pop_front();
        ++figures_.dropped;
      } else {
        ++figures_.blocked;  // it keeps its turn
      }
    }
    waiting_.push_back(now);
    TakeUntil(now);
  }

  StreamFigures Finish() {
    while (!waiting_.empty()) Take();
    SumUp(std::move(latencies_), &figures_);
    return figures_;
  }

 private:
  void TakeUntil(Nanoseconds now) {
    while (!waiting_.empty() && std::max(free_, waiting_.front()) <= now) Take();
  }

  void Take() {
    const Nanoseconds arrival = waiting_.front();
    waiting_.pop_front();
    const Nanoseconds entry = std::max(free_, arrival);
    free_ = entry + rules_.tick;
    figures_.end = entry + rules_.latency;
    latencies_.push_back(figures_.end - arrival);
  }

  const StreamRules rules_;
  std::deque<Nanoseconds> waiting_;  // arrivals
  Nanoseconds free_;                 // when the pipeline takes the next one
  std::vector<Nanoseconds> latencies_;
  StreamFigures figures_;
};

}  // namespace

TimeShares SharesOf(std::vector<Nanoseconds> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {times[(n * 50 + 99) / 100 - 1], times[(n * 99 + 99) / 100 - 1], times.back()};
}

StreamFigures RunArrivals(const std::vector<Nanoseconds>& arrivals, const StreamRules& rules) {
  CHECK_GT(rules.tick.value(), 0);
  CHECK_GE(rules.places, 1);
  Entrance entrance(rules);
  for (const Nanoseconds arrival : arrivals) entrance.Arrive(arrival);
  return entrance.Finish();
}

std::vector<Nanoseconds> SampleLatencies(const Program& program, const Trace& trace) {
  std::vector<Nanoseconds> latencies;
  for (const Passage& p : PassagesOf(program, trace)) {
    latencies.emplace_back(std::max<int64_t>(0, p.end - p.begin));
  }
  return latencies;
}

absl::optional<StreamRules> SteadyRules(const Program& program, const Trace& trace) {
  std::vector<Passage> passages = PassagesOf(program, trace);
  const size_t half = passages.size() / 2;
  if (half < 2) return absl::nullopt;
  passages.erase(passages.begin(), passages.end() - static_cast<std::ptrdiff_t>(half));
  std::vector<Nanoseconds> ticks, latencies;
  for (size_t m = 0; m < half; ++m) {
    if (m > 0) ticks.emplace_back(passages[m].begin - passages[m - 1].begin);
    latencies.emplace_back(passages[m].end - passages[m].begin);
  }
  std::sort(ticks.begin(), ticks.end());
  std::sort(latencies.begin(), latencies.end());
  const int64_t least = ticks.front().value(), most = ticks.back().value();
  if (least <= 0 || most - least > std::max<int64_t>(1, least / 100)) return absl::nullopt;
  StreamRules rules;
  rules.tick = ticks[ticks.size() / 2];
  rules.latency = latencies[half / 2];
  return rules;
}

StreamFigures FiguresOfReleases(const Program& program, const Trace& trace,
                                const std::vector<Nanoseconds>& releases) {
  StreamFigures figures;
  std::vector<Nanoseconds> latencies;
  const std::vector<Passage> passages = PassagesOf(program, trace);
  for (size_t m = 0; m < passages.size(); ++m) {
    const Nanoseconds end(passages[m].end);
    figures.blocked += passages[m].begin > releases[m].value();
    figures.end = std::max(figures.end, end);
    latencies.push_back(end - releases[m]);
  }
  SumUp(std::move(latencies), &figures);
  return figures;
}

std::vector<Nanoseconds> EvenArrivals(int64_t count, Nanoseconds period) {
  std::vector<Nanoseconds> arrivals;
  for (int64_t i = 0; i < count; ++i) arrivals.push_back(Nanoseconds(i * period.value()));
  return arrivals;
}

std::vector<Nanoseconds> RandomArrivals(int64_t count, double per_second, uint64_t seed) {
  const CounterRng rng(seed, "arrivals");
  std::vector<Nanoseconds> arrivals;
  double seconds = 0;
  for (int64_t i = 0; i < count; ++i) {
    seconds -= std::log1p(-rng.Uniform(static_cast<uint64_t>(i))) / per_second;
    arrivals.emplace_back(std::llround(seconds * 1e9));
  }
  return arrivals;
}

}  // namespace pipelab
