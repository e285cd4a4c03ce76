// Batches that are prepared in front of the stage that trains on them: sampled, gathered, moved
// (Kaler et al., "SALIENT", MLSys 2022). Not in the catalogue: its sizes are not a pipeline's.
//
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s,
//                            MakePreparation({.workers = 2, .depth = 2, .batches = 31}));
//   PIPELAB_ASSIGN_OR_RETURN(Program p, Lower(std::move(s), {}));     // simulated, or executed
//
// Four stages: sample, gather, move, train. Each batch is a micro-batch, prepared by one worker and
// followed by an optimizer step. Workers take batches in turn, and the trainer takes them in order,
// so nothing depends on who is fast. A worker begins a batch only when the trainer has been
// through the forward of its `depth`-th batch before that: an edge carries a word back, as tokens
// go back in decoding. So at most workers * depth batches are under way, in queues too.
#ifndef PIPELAB_PIPELINES_GRAPHS_PREPARATION_H_
#define PIPELAB_PIPELINES_GRAPHS_PREPARATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

struct PreparationSizes {
  int workers = 1;  // 0: the trainer prepares by itself, one thing after the other
  int depth = 2;    // batches of a worker that the trainer is not through, at most
  int batches = 1;  // of an epoch
  int copies = 1;   // data-parallel ones: each has a trainer and workers of its own
  // Moves have a device of their own, as a GPU's copy engine, and not the worker's.
  bool copy_engine = false;
  // [turn] The batch that the trainer takes; each worker's in order. Empty: in their order.
  std::vector<int> taken = {};
};

struct PreparationStage {
  enum { kSample, kGather, kMove, kTrain, kStages };
};
struct PreparationEdge {
  enum { kSampled, kGathered, kMoved, kCredit };
};

absl::StatusOr<Schedule> MakePreparation(const PreparationSizes& sizes);

// Devices of a copy: its trainer, its workers, its copy engine.
int DevicesOfCopy(const PreparationSizes& sizes);
int TrainerOf(const PreparationSizes& sizes, int copy);
// That computes the stage for a batch.
int DeviceOf(const PreparationSizes& sizes, int copy, int stage, int batch);

// Lower and upper bound on the time of an epoch: batches through the slowest of trainer, workers
// together, and copy engine; and one batch through all on top. Seconds of each stage for a batch.
struct PreparationBound {
  double slowest = 0, with_first = 0;
  double workers = 0;  // that keep the trainer busy
};
PreparationBound BoundOf(const PreparationSizes& sizes, double sample, double gather, double move,
                         double train);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_GRAPHS_PREPARATION_H_
