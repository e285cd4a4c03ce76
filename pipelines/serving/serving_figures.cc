#include "pipelines/serving/serving_figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/base/rng.h"

namespace pipelab {

Percentiles PercentilesOf(std::vector<Nanoseconds> values) {
  Percentiles found;
  if (values.empty()) return found;
  std::sort(values.begin(), values.end());
  const auto at = [&](int64_t percent) {
    const auto count = static_cast<int64_t>(values.size());
    return values[(count * percent + 99) / 100 - 1];
  };
  found.median = at(50);
  found.p99 = at(99);
  return found;
}

ServingFigures FiguresOf(const PassPlan& plan, const Trace& trace) {
  std::vector<Nanoseconds> end(plan.passes.size());  // [pass] at the last stage
  int64_t busy = 0;
  for (const DeviceTrace& device : trace.devices) {
    for (const Span& span : device.spans) {
      if (span.op != OpCode::kCompute) continue;
      busy += span.end_ns - span.begin_ns;
      end[span.action.micro_batch] =
          std::max(end[span.action.micro_batch], Nanoseconds(span.end_ns));
    }
  }
  std::vector<Nanoseconds> newest(plan.requests.size(), Nanoseconds(-1));
  std::vector<Nanoseconds> first, between, whole;
  int64_t tokens = 0;
  for (size_t m = 0; m < plan.passes.size(); ++m) {
    const Pass& pass = plan.passes[m];
    for (size_t i = 0; i < pass.runs.size(); ++i) {
      if (!pass.runs[i].predicts) continue;
      const int32_t r = pass.requests[i];
      const Request& request = plan.requests[r];
      ++tokens;
      if (newest[r] < Nanoseconds(0)) {
        first.push_back(end[m] - request.arrival);
      } else {
        between.push_back(end[m] - newest[r]);
      }
      newest[r] = end[m];
      if (pass.runs[i].end() == request.prompt + request.output - 1) {
        whole.push_back(end[m] - request.arrival);
      }
    }
  }
  ServingFigures f;
  f.first_token = PercentilesOf(std::move(first));
  f.between_tokens = PercentilesOf(std::move(between));
  f.request = PercentilesOf(std::move(whole));
  const double time = static_cast<double>(trace.makespan.value());
  f.tokens_per_second = static_cast<double>(tokens) / time * 1e9;
  f.device_use = static_cast<double>(busy) / (time * static_cast<double>(trace.devices.size()));
  return f;
}

std::vector<Nanoseconds> RandomArrivals(int64_t count, double per_second, uint64_t seed) {
  const CounterRng rng(seed, "arrivals");
  std::vector<Nanoseconds> arrivals;
  double seconds = 0;
  for (int64_t i = 0; i < count; ++i) {
    arrivals.push_back(Nanoseconds(std::llround(seconds * 1e9)));
    seconds -= std::log1p(-rng.Uniform(static_cast<uint64_t>(i))) / per_second;
  }
  return arrivals;
}

}  // namespace pipelab
