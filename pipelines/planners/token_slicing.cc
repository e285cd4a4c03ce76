#include "pipelines/planners/token_slicing.h"

#include <algorithm>
#include <limits>

#include "absl/time/clock.h"

namespace pipelab {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

// The least sums for one bound on the longest slice.
class SliceSums {
 public:
  SliceSums(const SlicingProblem& problem, double bound) : p_(problem) {
    for (size_t s = 0; s < p_.sizes.size(); ++s) SliceSample(s, bound);
    CutBatch();
  }

  double sum() const { return of_batch_[p_.batch_samples]; }

  std::vector<SlicedMicroBatch> MicroBatches() const {
    std::vector<SlicedMicroBatch> all;
    for (int64_t left = p_.batch_samples; left > 0;) {
      const int s = last_size_[left];
      SlicedMicroBatch one;
      one.micro_batch_size = p_.sizes[s];
      for (int end = p_.units; end > 0; end -= last_length_[s][end]) {
        one.lengths.insert(one.lengths.begin(), last_length_[s][end]);
      }
      all.push_back(std::move(one));
      left -= p_.sizes[s];
    }
    // Larger ones first.
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.micro_batch_size > b.micro_batch_size; });
    return all;
  }

 private:
  void SliceSample(size_t s, double bound) {
    std::vector<double> sums(p_.units + 1, kNoBound);
    std::vector<int> last(p_.units + 1);
    sums[0] = 0;
    for (int end = 1; end <= p_.units; ++end) {
      for (int length = 1; length <= end; ++length) {
        const double time = p_.times[s][length - 1][end - length];
        if (time > bound || sums[end - length] + time >= sums[end]) continue;
        sums[end] = sums[end - length] + time;
        last[end] = length;
      }
    }
    of_sample_.push_back(sums[p_.units]);
    last_length_.push_back(std::move(last));
  }

  void CutBatch() {
    of_batch_.assign(p_.batch_samples + 1, kNoBound);
    last_size_.resize(p_.batch_samples + 1);
    of_batch_[0] = 0;
    for (int64_t samples = 1; samples <= p_.batch_samples; ++samples) {
      for (size_t s = 0; s < p_.sizes.size() && p_.sizes[s] <= samples; ++s) {
        const double sum = of_batch_[samples - p_.sizes[s]] + of_sample_[s];
        if (sum >= of_batch_[samples]) continue;
        of_batch_[samples] = sum;
        last_size_[samples] = static_cast<int>(s);
      }
    }
  }

  const SlicingProblem& p_;
  std::vector<double> of_sample_, of_batch_;   // [size], [samples]
  std::vector<std::vector<int>> last_length_;  // [size][units]
  std::vector<int> last_size_;                 // [samples]
};

double Longest(const SlicingProblem& problem, const std::vector<SlicedMicroBatch>& all) {
  double longest = 0;
  for (const SlicedMicroBatch& one : all) {
    const auto size = std::find(problem.sizes.begin(), problem.sizes.end(), one.micro_batch_size);
    int before = 0;
    for (int length : one.lengths) {
      const double time = problem.times[size - problem.sizes.begin()][length - 1][before];
      longest = std::max(longest, time);
      before += length;
    }
  }
  return longest;
}

}  // namespace

TokenSlicing SliceBatch(const SlicingProblem& problem, absl::Time deadline) {
  std::vector<double> bounds;
  for (const SliceTimes& times : problem.times) {
    for (const std::vector<double>& of_length : times) {
      bounds.insert(bounds.end(), of_length.begin(), of_length.end());
    }
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  const auto others = static_cast<double>(problem.stages - 1);
  // No bound makes the sum smaller. A plan, whatever the time limit.
  const SliceSums unbounded(problem, kNoBound);
  const double least = unbounded.sum();
  TokenSlicing best;
  best.time = kNoBound;
  if (least == kNoBound) return best;
  best.micro_batches = unbounded.MicroBatches();
  best.time = least + others * Longest(problem, best.micro_batches);
  for (double bound : bounds) {
    if (least + others * bound >= best.time) break;
    if (absl::Now() > deadline) {
      best.complete = false;
      break;
    }
    const SliceSums sums(problem, bound);
    const double time = sums.sum() + others * bound;
    if (time >= best.time) continue;
    best.time = time;
    best.micro_batches = sums.MicroBatches();
  }
  return best;
}

}  // namespace pipelab
