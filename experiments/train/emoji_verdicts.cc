#include "experiments/train/emoji_verdicts.h"

#include <cstddef>
#include <cstdint>

#include "glog/logging.h"
#include "models/data/metrics.h"

namespace pipelab {

EmojiVerdicts VerdictsOf(const EmojiSet& set, absl::Span<const float> logits) {
  const size_t emojis = set.images.labels.size();
  const size_t groups = static_cast<size_t>(set.images.classes);
  CHECK_EQ(logits.size(), set.names.size() * groups);
  std::vector<std::vector<double>> sum(emojis, std::vector<double>(groups));
  std::vector<double> right(emojis), names(emojis);
  for (size_t i = 0; i < set.names.size(); ++i) {
    const int32_t e = set.names[i].emoji;
    const std::vector<double> p = LogSoftmax(logits.subspan(i * groups, groups));
    for (size_t g = 0; g < groups; ++g) sum[e][g] += p[g];
    right[e] += ArgMax(p) == set.images.labels[e] ? 1 : 0;
    ++names[e];
  }
  EmojiVerdicts v;
  for (size_t e = 0; e < emojis; ++e) {
    CHECK_GT(names[e], 0) << "emoji " << e;
    v.by_name.push_back(right[e] / names[e]);
    v.together.push_back(ArgMax(sum[e]) == set.images.labels[e] ? 1 : 0);
  }
  return v;
}

std::vector<double> MeanOver(const std::vector<EmojiVerdicts>& repeats,
                             std::vector<double> EmojiVerdicts::*which) {
  CHECK(!repeats.empty());
  std::vector<double> mean((repeats[0].*which).size());
  for (const EmojiVerdicts& v : repeats) {
    for (size_t e = 0; e < mean.size(); ++e) {
      mean[e] += (v.*which)[e] / static_cast<double>(repeats.size());
    }
  }
  return mean;
}

}  // namespace pipelab
