// Bytes of weights, gradients and optimizer state on each device, by part and over time: they may
// be sharded (ir/sharding.h), and asynchronous schedules keep older weights (ir/versions.h).
//
//   std::vector<Bytes> peak = PeakState(costs, program);        // [device]
//   StateWalk walk(costs, program, /*device=*/0);
//   for (const Instruction& i : program.instructions[0]) {
//     walk.Begin(i).gradients;                                  // while it runs
//     walk.End(i);
//   }
//
// What the runtime's stages allocate, to the byte: parts are equal and the last are padded; a
// number has the bytes of StageMemory::numbers. A stage's own parameters have
// StageMemory::gradients bytes; the rest of its weights are tied to other stages and never sharded.
//
//   kept                values     gradients               the optimizer's
//   replicated          whole      whole                   whole
//   optimizer           whole      whole                   part
//   gradients           whole      part; whole in a run    part
//   fully               part;      part; whole in a run    part
//                       whole in a run
//   travels, owner      whole      whole in a run          whole
//   travels, others     none;      whole in a run          none
//                       whole from a hop to its release
//
// Where StateNumbers::cast, the part of the values is one of the optimizer's.
//
// "In a run": from its gather, or its first weight gradient, to its release, or the end of its
// reduction. Of gradients that travel: from the first weight gradient, or the hop that brings a
// sum, until the sum is sent on, or stepped. While both are there, both are: then the hop's is
// added.
#ifndef PIPELAB_PIPELINES_COST_STATE_WALK_H_
#define PIPELAB_PIPELINES_COST_STATE_WALK_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/versions.h"
#include "tools/base/units.h"

namespace pipelab {

struct StateParts {
  Bytes weights;    // the newest version, or the device's part of it; and what is gathered
  Bytes gradients;  // and Transformer Engine's buffers (models/specs/fused_sums.h)
  Bytes optimizer;
  Bytes statistics;     // running ones
  Bytes older_weights;  // versions that an asynchronous schedule still computes with

  Bytes total() const { return weights + gradients + optimizer + statistics + older_weights; }
};

// The state of one copy of a stage.
struct CopyState {
  StateParts always;
  Bytes gathered;       // weights more while they are put together
  Bytes run_gradients;  // gradients more while those of a run are
  Bytes hop_gradients;  // and of a sum that travels
};
CopyState StateOf(const StageMemory& memory, const Shard& shard);

// One device's, as it runs its list.
class StateWalk {
 public:
  // Keeps references to both.
  StateWalk(const CostTable& costs, const Program& program, int device);

  // `i` is the next of the device's list. What is there while it runs: what it needs is, what it
  // frees still is.
  const StateParts& Begin(const Instruction& i);
  // What is there once the instruction of the last Begin is over.
  const StateParts& End(const Instruction& i);
  const StateParts& now() const { return now_; }
  // Whether Begin and End never change anything.
  bool constant() const { return constant_; }

 private:
  struct Copy {
    CopyState state;
    bool in_run = false;  // its gradients are
    Bytes sum;            // that travels: what is there of it
  };

  Copy& CopyOf(const Instruction& i) {
    const int stage = i.action.stage;
    return copies_.at({program_.schedule.IsOneCopy(stage) ? 0 : i.replica, stage});
  }
  void BeginHop(const Instruction& i);
  void EndHop(const Instruction& i);
  void AddOlder(const Action& a, int versions);

  const CostTable& costs_;
  const Program& program_;
  StateParts now_;
  bool constant_ = true;
  std::map<std::pair<int, int>, Copy> copies_;  // by replica and stage
  absl::optional<VersionWalk> versions_;        // of schedules with steps of their own
};

// [device] The most at a time.
std::vector<Bytes> PeakState(const CostTable& costs, const Program& program);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STATE_WALK_H_
