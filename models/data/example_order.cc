#include "models/data/example_order.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {

namespace {

constexpr uint64_t kRounds = 10;  // small sets need more than the four of large ones

}  // namespace

Shuffle::Shuffle(uint64_t n, uint64_t seed, absl::string_view name)
    : n_(n), seed_(seed), stream_(StableHash(name)), half_bits_(1) {
  CHECK(n >= 1 && n <= uint64_t{1} << 62);
  while (uint64_t{1} << (2 * half_bits_) < n) ++half_bits_;
}

uint64_t Shuffle::At(uint64_t place) const {
  CHECK_LT(place, n_);
  const CounterRng rng(seed_, stream_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = place >> half_bits_, right = place & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      left ^= rng.Bits(round << 32 | right) & mask;
      std::swap(left, right);
    }
    place = left << half_bits_ | right;
  } while (place >= n_);
  return place;
}

ExampleOrder::ExampleOrder(int64_t examples) : examples_(examples) { CHECK_GT(examples, 0); }

ExampleOrder::ExampleOrder(int64_t examples, int64_t batch_samples, uint64_t seed,
                           absl::string_view part)
    : examples_(examples), batch_samples_(batch_samples), seed_(seed), part_(part) {
  CHECK_GT(examples, 0);
  CHECK_GT(batch_samples, 0);
}

int64_t ExampleOrder::ExampleAt(int64_t step, int64_t sample) const {
  CHECK(step >= 0 && sample >= 0);
  if (batch_samples_ == 0) return sample % examples_;
  CHECK_LT(sample, batch_samples_) << "the batch that the order was made for";
  const int64_t position = step * batch_samples_ + sample;
  const Shuffle shuffle(static_cast<uint64_t>(examples_), seed_,
                        absl::StrCat(part_, "/pass", position / examples_));
  return static_cast<int64_t>(shuffle.At(static_cast<uint64_t>(position % examples_)));
}

}  // namespace pipelab
