// Predicted times beside measured ones: how far off, and whether in the right order.
//
//   std::vector<TimedPrediction> all = {{"llama 8b on 64", 2.0, 2.2}, ...};
//   Summarise(all).median;          // 0.1
//   RankPairs(all).share();         // of pairs with equal `alike` that differ by more than 10 %
//   RankCorrelation(all);           // Spearman's, of all
#ifndef PIPELAB_EXPERIMENTS_PREDICT_ERROR_SUMMARY_H_
#define PIPELAB_EXPERIMENTS_PREDICT_ERROR_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pipelab {

struct TimedPrediction {
  std::string alike;  // which predictions are compared with one another
  double measured = 0, predicted = 0;

  double error() const { return predicted / measured - 1; }  // above 0: predicted too slow
};

// Absolute errors, and their mean with the sign.
struct ErrorSummary {
  int64_t rows = 0;
  double mean = 0, median = 0, ninth_decile = 0, largest = 0, bias = 0;
};
ErrorSummary Summarise(const std::vector<TimedPrediction>& all);

// Pairs of equal `alike` whose measured times differ by more than 10 %: how many the predictions
// put in the right order. Ties, of equal predictions, are not right.
struct RankingSummary {
  int64_t pairs = 0, right = 0, ties = 0;

  double share() const {
    return pairs == 0 ? 1 : static_cast<double>(right) / static_cast<double>(pairs);
  }
};
RankingSummary RankPairs(const std::vector<TimedPrediction>& all);

// Spearman's: the correlation of the ranks, equal values having the mean of theirs. 0 below three.
double RankCorrelation(const std::vector<TimedPrediction>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PREDICT_ERROR_SUMMARY_H_
