// The loss of a language model over a whole text, where each token that counts has at least half a
// window before it (models/data/text_windows.h): what an n-gram model of the same tokens may be
// compared with.
//
//   PIPELAB_ASSIGN_OR_RETURN(double nats, WindowedLoss(trained, windows));   // mean, per token
#ifndef PIPELAB_EXPERIMENTS_TRAIN_WINDOWED_LOSS_H_
#define PIPELAB_EXPERIMENTS_TRAIN_WINDOWED_LOSS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/data/text_windows.h"
#include "models/layers/serial_trainer.h"

namespace pipelab {

// The mean over the targets [first_place, end_place) of the windows, `chunk` windows computed at a
// time.
absl::StatusOr<double> WindowedLoss(SerialTrainer* trained, const TextWindows& windows,
                                    int64_t chunk = 32);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_WINDOWED_LOSS_H_
