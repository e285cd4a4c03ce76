#include "models/data/translation_intervals.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "models/data/chrf.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// The translations of one English string, or of several.
struct Score {
  int64_t pairs = 0, exact = 0;
  Chrf chrf;
};

std::vector<Score> ScoresByString(const TranslationCorpus& corpus,
                                  absl::Span<const std::string> said) {
  std::map<absl::string_view, Score> scores;
  for (size_t i = 0; i < said.size(); ++i) {
    const Translation& t = corpus.translations[i];
    Score& score = scores[t.source];
    ++score.pairs;
    score.exact += said[i] == t.target;
    score.chrf.Add(said[i], t.target);
  }
  std::vector<Score> all;
  for (const auto& [source, score] : scores) all.push_back(score);
  return all;
}

// The middle 95 % of the values.
Interval Middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t cut = values.size() / 40;
  return {values[cut], values[values.size() - 1 - cut]};
}

}  // namespace

TranslationIntervals BootstrapIntervals(const TranslationCorpus& corpus,
                                        absl::Span<const std::string> said, int resamples,
                                        uint64_t seed) {
  CHECK_EQ(said.size(), corpus.translations.size());
  CHECK(!said.empty());
  CHECK_GE(resamples, 40);
  const std::vector<Score> scores = ScoresByString(corpus, said);
  std::vector<double> exact, chrf;
  for (int resample = 0; resample < resamples; ++resample) {
    const CounterRng rng(seed, absl::StrCat("bootstrap/", resample));
    Score sum;
    for (size_t i = 0; i < scores.size(); ++i) {
      const Score& drawn = scores[rng.Below(i, scores.size())];
      sum.pairs += drawn.pairs;
      sum.exact += drawn.exact;
      sum.chrf.Add(drawn.chrf);
    }
    exact.push_back(static_cast<double>(sum.exact) / static_cast<double>(sum.pairs));
    chrf.push_back(sum.chrf.Value());
  }
  return {Middle(std::move(exact)), Middle(std::move(chrf))};
}

}  // namespace pipelab
