// How the small GPT of small_gpt.h is trained in tests: one place for its micro-batches, optimizer
// and limit.
#ifndef PIPELAB_TESTS_SMALL_TRAINING_H_
#define PIPELAB_TESTS_SMALL_TRAINING_H_

#include <string>

#include "absl/time/time.h"
#include "experiments/training.h"
#include "tests/small_gpt.h"

namespace pipelab {

inline TrainingOptions SmallTraining(const std::string& scheme, int devices, int micro_batches) {
  TrainingOptions options;
  options.scheme = scheme;
  options.sizes.devices = devices;
  options.sizes.micro_batches = micro_batches;
  options.micro_batch_samples = kSmallSamples;
  options.optimizer = SmallAdam();
  options.wait_limit = absl::Seconds(20);
  return options;
}

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SMALL_TRAINING_H_
