#include "experiments/simulate/simulated_memory.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "experiments/simulate/decimal.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostOptimizerTensors = 100;

absl::StatusOr<std::vector<Bytes>> SizesOf(absl::string_view option, const std::string& value,
                                           int stages) {
  if (value.empty()) return std::vector<Bytes>(stages);
  return ParseByteCounts(option, value, stages, "stage");
}

// Everything at once on one device must fit 63 bits.
absl::Status CheckFits(const Program& program, const CostTable& costs,
                       const std::vector<std::vector<Bytes>>& sizes, int optimizer_tensors) {
  double largest = 1, sum = 0;
  for (int stage = 0; stage < program.schedule.num_stages(); ++stage) {
    largest = std::max<double>(largest, program.schedule.MicroBatchSize(stage));
  }
  for (const std::vector<Bytes>& of_stages : sizes) {
    for (Bytes b : of_stages) sum += static_cast<double>(b.value());
  }
  for (Bytes b : costs.edge_bytes) sum += static_cast<double>(b.value());
  const double times = program.schedule.num_micro_batches + optimizer_tensors + 4.0;
  if (sum * largest * times * program.schedule.num_slices < 9e18) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--bytes, --activation_bytes, --weights or --workspace: too large: the memory of all "
      "micro-batches and "
      "stages together does not fit 63 bits");
}

}  // namespace

absl::Status SetSimulatedMemory(const Program& program, const SimulatedMemory& memory,
                                CostTable* costs) {
  const Schedule& s = program.schedule;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Bytes> kept,
                           SizesOf("--activation_bytes", memory.kept, s.num_stages()));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Bytes> weights,
                           SizesOf("--weights", memory.weights, s.num_stages()));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Bytes> workspace,
                           SizesOf("--workspace", memory.workspace, s.num_stages()));
  if (memory.optimizer_tensors < 0 || memory.optimizer_tensors > kMostOptimizerTensors) {
    return absl::InvalidArgumentError(absl::StrCat("--optimizer_tensors=", memory.optimizer_tensors,
                                                   ": must be 0 to ", kMostOptimizerTensors));
  }
  PIPELAB_RETURN_IF_ERROR(
      CheckFits(program, *costs, {kept, weights, workspace}, memory.optimizer_tensors));
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    // One device's rows of the stage's micro-batch.
    const auto own = [size = s.MicroBatchSize(stage), group = s.GroupSize(stage)](Bytes bytes) {
      return Bytes(bytes.value() * size / group);
    };
    Bytes in, out;
    for (int e : s.stages.in_edges[stage]) in += own(costs->edge_bytes[e]);
    for (int e : s.stages.out_edges[stage]) out += own(costs->edge_bytes[e]);
    StageMemory m;
    m.kept = own(kept[stage]);
    m.kept_for_weight = m.kept + in;  // released at W, as at B
    // Results come on top of the scratch; what goes is there until the end.
    const Bytes scratch = own(workspace[stage]);
    m.forward_peak = scratch + m.kept + out;
    m.forward_drop_peak = scratch + out;
    m.recompute_peak = scratch + m.kept;
    m.forward_peak_kept = m.recompute_peak_kept = m.kept;
    m.backward_peak = m.backward_input_peak = scratch + in;
    m.backward_weight_peak = scratch;
    m.weights = m.gradients = weights[stage];
    m.optimizer = m.weights * memory.optimizer_tensors;
    m.state = m.weights + m.gradients + m.optimizer;
    costs->stages[stage].memory = m;
  }
  return absl::OkStatus();
}

}  // namespace pipelab
