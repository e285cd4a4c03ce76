#include "experiments/calibration/real_runs.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace pipelab {

double UpperMedian(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double CoreShare(const Program& program, absl::Span<const Trace> steps) {
  double cpu = 0, wall = 0;
  for (const Trace& step : steps) {
    for (size_t d = 0; d < step.devices.size(); ++d) {
      for (const ExecutedInstruction& s : SpansOf(program, step, d)) {
        if (s.op != OpCode::kCompute) continue;
        cpu += static_cast<double>(s.cpu_ns);
        wall += static_cast<double>(s.end_ns - s.begin_ns);
      }
    }
  }
  return wall > 0 ? cpu / wall : 0;
}

bool HadOwnCores(double core_share) { return core_share >= 0.97; }

std::string NoOwnCores(double core_share) {
  return absl::StrFormat(
      "a device needs a core of its own, and these had %.0f %% of theirs: others used the machine",
      100 * core_share);
}

}  // namespace pipelab
