// Trains one network of a study under its scheme: progress line, held-out curve, checkpoints, a
// stop at Ctrl-C.
//
//   PIPELAB_ASSIGN_OR_RETURN(TrainedPart done, TrainPart(settings, work, part));
//   if (done.interrupted) ...                        // done.checkpoint has all so far
//   part.judge(done.trained.get());
#ifndef PIPELAB_EXPERIMENTS_TRAIN_TRAIN_PART_H_
#define PIPELAB_EXPERIMENTS_TRAIN_TRAIN_PART_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "experiments/report/chart_svg.h"
#include "experiments/train/study.h"
#include "experiments/train/train_flags.h"
#include "kernels/backend.h"
#include "kernels/tensor/arena.h"
#include "models/layers/serial_trainer.h"

namespace pipelab {

// A network with the trained values, to ask for predictions.
class Evaluator {
 public:
  // `graph`: as it was trained, with local heads.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(const ModelGraph& graph,
                                                           const StudyPart& part);

  absl::Status TakeValues(const TrainingState& state);
  SerialTrainer* network() { return network_.get(); }

 private:
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SerialTrainer> network_;  // last: it has tensors of the arena
};

struct TrainedPart {
  Series training, held_out;  // of this run and, where known, those it went on from
  int64_t steps = 0;          // done, with those before
  int64_t steps_here = 0;
  absl::Duration time;  // of the steps here, without evaluations and checkpoints
  bool interrupted = false;
  std::string checkpoint;  // the file that was written
  std::unique_ptr<Evaluator> trained;
};

// FailedPrecondition for a loss that is not finite; InvalidArgument for a checkpoint of another
// training.
absl::StatusOr<TrainedPart> TrainPart(const TrainSettings& settings, const StudyWork& work,
                                      const StudyPart& part);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_TRAIN_PART_H_
