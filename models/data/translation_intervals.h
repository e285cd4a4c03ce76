// How sure a translation quality is: 95 % intervals, by the bootstrap over English strings.
//
//   const TranslationIntervals i = BootstrapIntervals(corpus, said, /*resamples=*/1000, seed);
//   i.exact.low, i.exact.high                        // shares, as in TranslationQuality
//
// Percentile bootstrap (Efron 1979) of Koehn's kind ("Statistical significance tests for machine
// translation evaluation", EMNLP 2004). Drawn are the English strings, each with all its
// translations: the translations of one name into several locales are no independent cases.
#ifndef PIPELAB_MODELS_DATA_TRANSLATION_INTERVALS_H_
#define PIPELAB_MODELS_DATA_TRANSLATION_INTERVALS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "models/data/translations.h"

namespace pipelab {

struct Interval {
  double low = 0, high = 0;
};

struct TranslationIntervals {
  Interval exact, chrf;
};

// `said` has a translation for each of the corpus's, which has some; at least 40 resamples (all
// checked).
TranslationIntervals BootstrapIntervals(const TranslationCorpus& corpus,
                                        absl::Span<const std::string> said, int resamples,
                                        uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TRANSLATION_INTERVALS_H_
