// chrF: how alike a translation and its reference are, in character n-grams.
//
//   Chrf score;
//   score.Add("Niederlande", "Niederlanden");
//   score.Value()              // from 0 to 1
//
// Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015: n-grams of 1 to
// 6 characters without white space; precision and recall averaged over n; recall counts beta = 2
// times as much. Over several pairs the n-grams are counted together. Lengths that one side never
// has are left out of the averages, as in sacreBLEU.
#ifndef PIPELAB_MODELS_DATA_CHRF_H_
#define PIPELAB_MODELS_DATA_CHRF_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace pipelab {

class Chrf {
 public:
  static constexpr int kLongest = 6;
  static constexpr double kBeta = 2;

  // UTF-8; bytes that are not UTF-8 count as characters of their own.
  void Add(absl::string_view hypothesis, absl::string_view reference);
  void Add(const Chrf& other);  // all of its pairs
  double Value() const;         // 0 before any pair with characters

 private:
  struct Counts {
    int64_t hypothesis = 0, reference = 0, both = 0;
  };
  std::array<Counts, kLongest> counts_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_CHRF_H_
