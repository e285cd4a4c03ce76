// What a table of measured rows predicts without any model: the rival of the cost model where both
// know the same rows (cross_validation.h).
//
//   const LookupTable table(known, LookupRule::kPasses);
//   table.Milliseconds(row);          // of a row that is not in it
//
// Each rule keeps a rate, which depends on sizes less than the time does: flop/s of a GPU
// (Narayanan et al. 2021, section 5.1, without recomputation) with the pipeline's fill, (M + P - 1)
// / M, taken out. It is
//   kNearest    the median of the nearest rows': the sum of |log2| ratios over hidden size,
//               micro-batch, T, P, D, micro-batches and layers is least
//   kPasses     the same, the nearest by hidden size, micro-batch and T alone
//   kRegression its logarithm linear in those of all seven sizes: least squares over all rows
#ifndef PIPELAB_EXPERIMENTS_VALIDATION_LOOKUP_TABLE_H_
#define PIPELAB_EXPERIMENTS_VALIDATION_LOOKUP_TABLE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "experiments/predict/measured_rows.h"

namespace pipelab {

enum class LookupRule : uint8_t { kNearest, kPasses, kRegression };
constexpr std::array<LookupRule, 3> kLookupRules = {LookupRule::kNearest, LookupRule::kPasses,
                                                    LookupRule::kRegression};

class LookupTable {
 public:
  // At least one row, all measured: CHECKed.
  LookupTable(std::vector<MeasuredRow> known, LookupRule rule);

  double Milliseconds(const MeasuredRow& row) const;

 private:
  double RateOf(const MeasuredRow& row) const;  // of the nearest, flop/ms

  std::vector<MeasuredRow> known_;
  LookupRule rule_;
  std::vector<double> weights_;  // kRegression: the constant, then one for each size
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VALIDATION_LOOKUP_TABLE_H_
