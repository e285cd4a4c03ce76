#include "pipelines/sim/replay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

int64_t Median(std::vector<int64_t>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  if (values->size() % 2 == 1) return *middle;
  return (*std::max_element(values->begin(), middle) + *middle) / 2;
}

absl::Status CheckMeasured(const Program& program, absl::Span<const Trace> measured) {
  if (measured.empty()) return absl::InvalidArgumentError("a replay needs at least one trace");
  for (const Trace& trace : measured) {
    PIPELAB_RETURN_IF_ERROR(CheckBelongs(program, trace));
    for (size_t d = 0; d < trace.devices.size(); ++d) {
      const DeviceTrace& device = trace.devices[d];
      if (device.spans.size() == program.instructions[d].size() && device.order.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "device ", d, ": the trace's ", device.spans.size(), " spans are not the program's ",
          program.instructions[d].size(), " instructions in their order"));
    }
  }
  return absl::OkStatus();
}

bool EndsCollective(OpCode op) {
  return op == OpCode::kReduceWait || op == OpCode::kGatherWait || op == OpCode::kNormWait;
}

}  // namespace

absl::StatusOr<CostTable> ReplayCosts(const Program& program, absl::Span<const Trace> measured,
                                      CostTable base) {
  PIPELAB_RETURN_IF_ERROR(CheckMeasured(program, measured));
  if (base.stages.empty()) base.stages.resize(program.schedule.num_stages());
  if (base.edge_bytes.empty()) base.edge_bytes.resize(program.schedule.stages.edges.size());
  base.instruction_time.resize(program.instructions.size());
  std::vector<int64_t> samples;
  for (size_t d = 0; d < program.instructions.size(); ++d) {
    std::vector<Nanoseconds>& times = base.instruction_time[d];
    times.assign(program.instructions[d].size(), Nanoseconds(0));
    for (size_t i = 0; i < times.size(); ++i) {
      const OpCode op = program.instructions[d][i].op;
      if (op == OpCode::kWait || op == OpCode::kSynchronise || op == OpCode::kFill ||
          op == OpCode::kHostWait) {
        continue;
      }
      samples.clear();
      for (const Trace& trace : measured) samples.push_back(trace.devices[d].spans[i].cpu_ns);
      times[i] = Nanoseconds(Median(&samples));
      if (EndsCollective(op)) times[i] += base.hop_latency;
    }
  }
  return base;
}

absl::StatusOr<Trace> Replay(const Program& program, absl::Span<const Trace> measured,
                             CostTable base) {
  PIPELAB_ASSIGN_OR_RETURN(const CostTable costs, ReplayCosts(program, measured, std::move(base)));
  return Simulate(program, costs, TraceOrigin::kReplayed);
}

}  // namespace pipelab
