#include "experiments/calibration/kernel_times.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "glog/logging.h"
#include "kernels/cpu/cpu_backend.h"
#include "tools/base/clocks.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// What the clock itself takes of the time between two of its calls.
double ClockSeconds() {
  std::vector<double> times;
  for (int i = 0; i < 101; ++i) {
    const int64_t begin = ThreadCpuNs();
    times.push_back(static_cast<double>(ThreadCpuNs() - begin) * 1e-9);
  }
  return Median(std::move(times));
}

KernelTime Summary(std::vector<double> rounds) {
  KernelTime time;
  time.rounds = static_cast<int>(rounds.size());
  time.seconds = Median(rounds);
  if (rounds.size() < 4) return time;
  std::sort(rounds.begin(), rounds.end());
  const size_t quarter = rounds.size() / 4;
  time.spread = (rounds[rounds.size() - 1 - quarter] - rounds[quarter]) / time.seconds;
  return time;
}

// By size, and within a group in an order of its own, so that kinds of kernels take turns.
std::vector<std::vector<int>> Groups(const std::vector<KernelProbe>& probes, int group_probes) {
  std::vector<int> order(probes.size());
  std::iota(order.begin(), order.end(), 0);
  const CounterRng rng(/*seed=*/1, "calibration/order");
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return probes[a].bytes < probes[b].bytes; });
  std::vector<std::vector<int>> groups;
  for (size_t begin = 0; begin < order.size(); begin += group_probes) {
    const size_t end = std::min(order.size(), begin + group_probes);
    groups.emplace_back(order.begin() + begin, order.begin() + end);
    std::vector<int>& group = groups.back();
    for (size_t i = group.size(); i > 1; --i) std::swap(group[i - 1], group[rng.Below(i, i)]);
  }
  return groups;
}

}  // namespace

double Median(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

KernelMeasurements::KernelMeasurements(std::vector<KernelProbe> probes,
                                       const KernelTimesOptions& options)
    : probes_(std::move(probes)),
      options_(options),
      groups_(Groups(probes_, options.group_probes)),
      seconds_(probes_.size()) {}

void KernelMeasurements::MeasureGroup(absl::Span<const int> group) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const double clock = ClockSeconds();
  struct Call {
    std::unique_ptr<ProbeTensors> tensors;
    std::function<void()> run;
    double seconds = 0;
  };
  std::vector<Call> calls;
  for (int p : group) {
    auto tensors = std::make_unique<ProbeTensors>(backend.get());
    auto run = probes_[p].prepare(tensors.get());
    calls.push_back({std::move(tensors), std::move(run)});
  }
  for (int turn = 0; turn <= options_.turns; ++turn) {
    for (Call& call : calls) {
      call.tensors->WriteHot();
      const int64_t begin = ThreadCpuNs();
      call.run();
      const double seconds = static_cast<double>(ThreadCpuNs() - begin) * 1e-9 - clock;
      if (turn > 0) call.seconds += std::max(seconds, 1e-9) / options_.turns;
    }
  }
  for (size_t i = 0; i < group.size(); ++i) seconds_[group[i]].push_back(calls[i].seconds);
}

void KernelMeasurements::MeasurePart(int part, int parts) {
  if (part == 0) launch_.push_back(launch_probe_.Measure());
  for (size_t g = part; g < groups_.size(); g += parts) MeasureGroup(groups_[g]);
}

std::vector<KernelTime> KernelMeasurements::Times() const {
  std::vector<KernelTime> times;
  for (const std::vector<double>& of : seconds_) times.push_back(Summary(of));
  return times;
}

KernelTime KernelMeasurements::Launch() const { return Summary(launch_); }

}  // namespace pipelab
