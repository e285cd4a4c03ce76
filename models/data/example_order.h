// Which example a sample of a step's batch is: a pure function, without any state to advance.
//
//   const ExampleOrder order(60000, /*batch_samples=*/128, /*seed=*/1, "data/fashion");
//   order.ExampleAt(step, sample);      // each example once in 60,000 samples, then anew
//   ExampleOrder(10000).ExampleAt(step, sample);            // sample, whatever the step
#ifndef PIPELAB_MODELS_DATA_EXAMPLE_ORDER_H_
#define PIPELAB_MODELS_DATA_EXAMPLE_ORDER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace pipelab {

// A permutation of [0, n): place -> number. A Feistel network on the smallest even number of
// bits that holds n, walked until it falls below n (Black and Rogaway, "Ciphers with
// arbitrary finite domains", CT-RSA 2002).
class Shuffle {
 public:
  Shuffle(uint64_t n, uint64_t seed, absl::string_view name);
  uint64_t At(uint64_t place) const;  // place < n

 private:
  uint64_t n_, seed_, stream_;
  int half_bits_;
};

class ExampleOrder {
 public:
  // In turn: sample i is example i modulo `examples`, in every step. For evaluation.
  explicit ExampleOrder(int64_t examples);
  // Shuffled anew in each pass over the examples, by (seed, part, pass). A step's batch has
  // `batch_samples` samples, and the next step goes on where it ends.
  ExampleOrder(int64_t examples, int64_t batch_samples, uint64_t seed, absl::string_view part);

  int64_t ExampleAt(int64_t step, int64_t sample) const;
  int64_t examples() const { return examples_; }
  uint64_t seed() const { return seed_; }
  const std::string& part() const { return part_; }

 private:
  int64_t examples_;
  int64_t batch_samples_ = 0;  // 0: in turn
  uint64_t seed_ = 0;
  std::string part_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EXAMPLE_ORDER_H_
