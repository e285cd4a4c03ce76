// Memory for putting rows together: where stages differ in their device groups or in the size of
// their micro-batches, a device gets an input in several parts, or keeps a part of its output for
// itself.
//
//   ReshardMemoryTable table(schedule, costs);
//   if (table.any()) ReshardMemory m = table.Of(device, replica, action);
//
// The runtime (runtime/device_runner.h) allocates the whole input before it frees its parts, and
// copies the parts of an output that stay before it frees the whole.
#ifndef PIPELAB_PIPELINES_SIM_RESHARD_MEMORY_H_
#define PIPELAB_PIPELINES_SIM_RESHARD_MEMORY_H_

#include <cstdint>
#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// Bytes for a moment, above the device's level.
struct ReshardMemory {
  int64_t before = 0;  // above the level before the action
  int64_t after = 0;   // above the level after it
};

class ReshardMemoryTable {
 public:
  ReshardMemoryTable(const Schedule& schedule, const CostTable& costs);

  // False in most schedules: then Of is 0 everywhere.
  bool any() const { return any_; }
  // The memory of a forward, backward or its input part; 0 for other actions.
  ReshardMemory Of(int device, int replica, const Action& a) const;

 private:
  // One end of an edge on one member of its group, for one of the stage's micro-batches.
  struct End {
    int parts = 0;      // messages and rows that stay
    int64_t bytes = 0;  // of the tensor, all parts
    int64_t local = 0;  // bytes that stay on the device
  };
  // The memory of one member and one of the micro-batches after which parts repeat.
  struct Memory {
    ReshardMemory forward, backward;
  };
  struct StageTable {
    int phases = 1;
    std::vector<Memory> memory;  // [member * phases + micro-batch % phases]; empty: all 0
  };

  void AddStage(const Schedule& s, const CostTable& costs, int slice, int replica, int stage);
  // [member * phases + phase]
  static std::vector<End> EndsOf(const Schedule& s, const CostTable& costs, int slice, int replica,
                                 int stage, int edge, int phases);

  const Schedule& schedule_;
  bool any_ = false;
  int slices_ = 1;                  // with costs of their own
  std::vector<StageTable> stages_;  // [(slice * replicas + replica) * stages + stage]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_RESHARD_MEMORY_H_
