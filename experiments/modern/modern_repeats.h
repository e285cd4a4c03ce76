// Layouts that a source ran twice, with ZeRO's stage 0 and 1 (nanotron). Both sum all gradients
// once a step, and hardly differ in price. How far the two times are apart says what no price of a
// layout can tell.
//
//   const ModernRepeats r = RepeatsOf(all, [](const ModernResult& r) { return ...; });
//   r.apart;         // of r.layouts, those whose times no one price is within 20 % of
//   r.best_rank;     // rank correlation of the geometric means of both
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_REPEATS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_REPEATS_H_

#include <cstdint>
#include <vector>

#include "experiments/modern/modern_results.h"

namespace pipelab {

struct ModernRepeats {
  int64_t layouts = 0, apart = 0;
  // Ratios of the longer time to the shorter one: measured, and predicted.
  double median_ratio = 0, largest_ratio = 0, largest_predicted = 0;
  double best_rank = 0;

  // The share of these layouts' rows that are within 20 % of one price for both, at best.
  double best_share() const {
    return layouts == 0 ? 0 : 1 - static_cast<double>(apart) / (2.0 * static_cast<double>(layouts));
  }
};

// The repeats of judged rows that are chosen.
ModernRepeats RepeatsOf(const std::vector<ModernResult>& all, const ModernChoice& choice);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_REPEATS_H_
