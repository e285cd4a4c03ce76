#include <algorithm>
#include <utility>
#include <vector>

#include "pipelines/analysis/analysis.h"
#include "pipelines/sim/memory_levels.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// [device of the program] The most at a time. What is put together of sharded weights and gradients
// comes and goes, so the state may be at its peak when the activations are not. Empty where it
// takes a simulation.
std::vector<Bytes> MemoryWithRuns(const Step& step) {
  std::vector<Bytes> memory;
  if (step.config.copies() == 1 || !ShardsGradients(step.config.sharding)) return memory;
  for (const MemoryPeak& peak : PeakMemory(step.program, step.costs)) {
    memory.push_back(peak.parts.total());
  }
  return memory;
}

Bytes Largest(const std::vector<Bytes>& memory) {
  return memory.empty() ? Bytes(0) : *std::max_element(memory.begin(), memory.end());
}

std::vector<DevicePrediction> DevicesOf(const TraceAnalysis& analysis, const Trace& trace,
                                        const std::vector<Bytes>& memory, int members) {
  std::vector<DevicePrediction> devices;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    if (d % members == 0) devices.emplace_back();
    DevicePrediction& device = devices.back();
    const DeviceTrace& t = trace.devices[d];
    device.memory = std::max(device.memory, memory[d]);
    device.peak_activation = std::max(device.peak_activation, t.peak_activation);
    device.peak_state = std::max(device.peak_state, t.peak_state);
    device.sent = std::max(device.sent, t.bytes_sent);
    device.collective = std::max(device.collective, t.collective_bytes);
    device.tensor = std::max(device.tensor, t.tensor_bytes);
    device.bubble = analysis.devices[d].bubble;
    device.peak_in_flight = std::max(device.peak_in_flight, analysis.devices[d].peak_in_flight);
  }
  return devices;
}

// `memory`: [device of the program].
absl::StatusOr<StepPrediction> Simulated(Step step, absl::optional<Bytes> limit, bool totals,
                                         std::vector<Bytes>* memory) {
  StepPrediction p;
  *memory = MemoryWithRuns(step);
  if (limit.has_value() && Largest(*memory) > *limit) {
    p.largest_device = Largest(*memory);
    p.fits = false;
    p.step = std::move(step);
    return p;
  }
  PIPELAB_ASSIGN_OR_RETURN(p.trace, totals ? SimulateTotals(step.program, step.costs)
                                           : Simulate(step.program, step.costs));
  p.step_time = step.set_up + p.trace.makespan;
  if (memory->empty()) {
    for (const DeviceTrace& d : p.trace.devices) {
      memory->push_back(d.peak_activation + d.peak_state);
    }
  }
  p.largest_device = Largest(*memory);
  p.fits = step.device_memory == Bytes(0) || p.largest_device <= step.device_memory;
  const double seconds = static_cast<double>(p.step_time.value()) * 1e-9;
  if (seconds > 0) {
    p.tflops_per_device =
        step.model_flops.value() / seconds / static_cast<double>(step.config.devices()) * 1e-12;
  }
  p.step = std::move(step);
  return p;
}

}  // namespace

double StepPrediction::samples_per_second() const {
  return static_cast<double>(step.config.batch()) * 1e9 / static_cast<double>(step_time.value());
}

absl::StatusOr<StepPrediction> SimulateStep(Step step, absl::optional<Bytes> limit) {
  std::vector<Bytes> memory;
  return Simulated(std::move(step), limit, /*totals=*/true, &memory);
}

absl::StatusOr<StepPrediction> Predict(Step step) {
  std::vector<Bytes> memory;
  PIPELAB_ASSIGN_OR_RETURN(StepPrediction p,
                           Simulated(std::move(step), absl::nullopt, /*totals=*/false, &memory));
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis analysis, Analyze(p.step.program, p.trace));
  p.bubble = analysis.overall.bubble;
  p.devices = DevicesOf(analysis, p.trace, memory, p.step.members);
  return p;
}

absl::StatusOr<StepPrediction> PredictStep(StepCache* cache, const StepConfig& config) {
  PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(cache, config));
  return Predict(std::move(step));
}

absl::StatusOr<StepPrediction> PredictStep(const StepModel& model, const StepConfig& config) {
  StepCache cache(model);
  return PredictStep(&cache, config);
}

}  // namespace pipelab
