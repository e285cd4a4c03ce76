// The sizes of stages that the options of simulate and show give.
//
//   SimulatedMemory memory;
//   memory.kept = "2GiB";
//   memory.weights = "1GiB,1GiB,3GiB,1GiB";
//   PIPELAB_RETURN_IF_ERROR(SetSimulatedMemory(program, memory, &costs));   // with edge_bytes set
//
// Sizes are bytes ("64MiB"), one for all stages or one per stage. Gradients are as large as
// weights. Errors: InvalidArgument naming the option and the value.
#ifndef PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_MEMORY_H_
#define PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_MEMORY_H_

#include <string>

#include "absl/status/status.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"

namespace pipelab {

// Each a flag of the same name; empty: nothing.
struct SimulatedMemory {
  std::string kept;       // by a forward for its backward, besides the stage's inputs
  std::string weights;    // of a stage
  std::string workspace;  // of any action
  int optimizer_tensors = 2;

  bool any() const { return !kept.empty() || !weights.empty() || !workspace.empty(); }
};

// Sets the memory of every stage: of messages and stage inputs (costs.edge_bytes), and these.
absl::Status SetSimulatedMemory(const Program& program, const SimulatedMemory& memory,
                                CostTable* costs);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_MEMORY_H_
