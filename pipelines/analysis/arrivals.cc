#include "pipelines/analysis/arrivals.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "glog/logging.h"

namespace pipelab {
namespace {

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
    figures_.taken = static_cast<int64_t>(latencies_.size());
    if (latencies_.empty()) return figures_;
    std::sort(latencies_.begin(), latencies_.end());
    // The least latency that so many have at most.
    const auto share = [&](int64_t percent) {
      return latencies_[(figures_.taken * percent + 99) / 100 - 1];
    };
    figures_.median = share(50);
    figures_.p99 = share(99);
    figures_.longest = latencies_.back();
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

StreamFigures RunArrivals(const std::vector<Nanoseconds>& arrivals, const StreamRules& rules) {
  CHECK_GT(rules.tick.value(), 0);
  CHECK_GE(rules.places, 1);
  Entrance entrance(rules);
  for (const Nanoseconds arrival : arrivals) entrance.Arrive(arrival);
  return entrance.Finish();
}

std::vector<Nanoseconds> SampleLatencies(const Trace& trace) {
  struct Times {
    int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  };
  std::vector<Times> times;
  for (const DeviceTrace& device : trace.devices) {
    for (const Span& s : device.spans) {
      if (s.op != OpCode::kCompute || s.action.kind != ActionKind::kForward) continue;
      const auto m = static_cast<size_t>(s.action.micro_batch);
      if (m >= times.size()) times.resize(m + 1);
      times[m].begin = std::min(times[m].begin, s.begin_ns);
      times[m].end = std::max(times[m].end, s.end_ns);
    }
  }
  std::vector<Nanoseconds> latencies;
  for (const Times& t : times) latencies.emplace_back(std::max<int64_t>(0, t.end - t.begin));
  return latencies;
}

std::vector<Nanoseconds> EvenArrivals(int64_t count, Nanoseconds period) {
  std::vector<Nanoseconds> arrivals;
  for (int64_t i = 0; i < count; ++i) arrivals.push_back(Nanoseconds(i * period.value()));
  return arrivals;
}

}  // namespace pipelab
