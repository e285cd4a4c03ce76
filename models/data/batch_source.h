// Where training samples come from: a pure function of (step, sample), so every stage of every
// scheme can ask for the same batch, in any order, from any thread.
#ifndef PIPELAB_MODELS_DATA_BATCH_SOURCE_H_
#define PIPELAB_MODELS_DATA_BATCH_SOURCE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace pipelab {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t tokens_per_sample() const = 0;
  virtual int64_t vocabulary() const = 0;
  // Samples [first_sample, first_sample + n) of the step's batch, n from the spans' size: tokens_M
  // and the tokens that follow them (targets_M). Either span may be empty: not wanted.
  virtual void Fill(int64_t step, int64_t first_sample, absl::Span<int32_t> tokens_M,
                    absl::Span<int32_t> targets_M) const = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_BATCH_SOURCE_H_
