// What a trained network says about data, computed in pieces.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> scores, Predict(trained, held_out, 9993));
#ifndef PIPELAB_EXPERIMENTS_TRAIN_PREDICT_H_
#define PIPELAB_EXPERIMENTS_TRAIN_PREDICT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/data/batch_source.h"
#include "models/layers/serial_trainer.h"

namespace pipelab {

// LayerContext::predictions of the samples [0, samples), `chunk` at a time. Of step 0, which means
// nothing to sources in turn.
absl::StatusOr<std::vector<float>> Predict(SerialTrainer* trained, const BatchSource& data,
                                           int64_t samples, int64_t chunk = 64);
// The mean loss over these samples.
absl::StatusOr<double> MeanLoss(SerialTrainer* trained, const BatchSource& data, int64_t samples,
                                int64_t chunk = 64);

// [loss] Shares of samples, in turn, whose likeliest class is their label; the network's own loss
// comes last, behind those of blocks that learn locally.
absl::StatusOr<std::vector<double>> Accuracies(SerialTrainer* trained, const BatchSource& data,
                                               const std::vector<uint8_t>& labels);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_PREDICT_H_
