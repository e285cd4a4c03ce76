// The flags that choose an optimizer, for every experiment that trains: --optimizer,
// --learning_rate, --momentum, --weight_decay, --warmup_steps, --rate_decay, --clip_norm.
//
//   RegisterOptimizerFlags();                                           // in main
//   PIPELAB_ASSIGN_OR_RETURN(options.optimizer, OptimizerFromFlags(defaults, /*steps=*/2000));
//
// A flag that is not given leaves the experiment's own value.
#ifndef PIPELAB_EXPERIMENTS_TRAINING_OPTIMIZER_FLAGS_H_
#define PIPELAB_EXPERIMENTS_TRAINING_OPTIMIZER_FLAGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/layers/optimizer.h"

namespace pipelab {

// Makes them options of the program (study_flags.h): others of its studies may have none.
void RegisterOptimizerFlags();

// `defaults` with what the flags say; `steps`, of the training, is where a cosine ends.
// InvalidArgument naming flag and value, also for a flag that the optimizer has no use for.
absl::StatusOr<OptimizerOptions> OptimizerFromFlags(OptimizerOptions defaults, int64_t steps);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_OPTIMIZER_FLAGS_H_
