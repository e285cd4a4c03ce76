#include "models/mining/threshold.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"

namespace pipelab {
namespace {

constexpr int kParts = 5;
constexpr int64_t kLeastPairs = 10;
constexpr int64_t kLeastShare = 10;  // one pair in so many sentences

double WilsonUpper(double count, double of) {
  if (of == 0) return 1;
  const double share = count / of;
  return (share + 0.5 / of + std::sqrt((share * (1 - share) + 0.25 / of) / of)) / (1 + 1 / of);
}

int64_t CountAtLeast(const std::vector<float>& ascending, float margin) {
  return ascending.end() - std::lower_bound(ascending.begin(), ascending.end(), margin);
}

// Of the `mined` pairs with `margin` or more.
double PrecisionOf(int64_t mined, const std::vector<float>& orphans, int64_t sentences,
                   float margin) {
  const double wrong =
      WilsonUpper(static_cast<double>(CountAtLeast(orphans, margin)), static_cast<double>(mined));
  if (mined == 0 || wrong >= 1) return 0;
  return std::max(0.0, 1 - wrong * static_cast<double>(sentences - mined) /
                               ((1 - wrong) * static_cast<double>(mined)));
}

}  // namespace

std::vector<float> OrphanMargins(const Neighbours& near, const std::vector<MinedPair>& pairs,
                                 int k) {
  std::vector<float> margins;
  for (int part = 0; part < kParts; ++part) {
    std::vector<bool> hidden(near.of_y.rows(), false);
    absl::flat_hash_map<int32_t, float> orphan;  // with the margin of its own pair
    for (size_t p = part; p < pairs.size(); p += kParts) {
      hidden[pairs[p].y] = true;
      orphan[pairs[p].x] = pairs[p].margin;
    }
    for (const MinedPair& p : MutualPairs(near, MarginKind::kDifference, k, hidden)) {
      const auto own = orphan.find(p.x);
      if (own != orphan.end()) margins.push_back(std::min(own->second, p.margin));
    }
  }
  std::sort(margins.begin(), margins.end());
  return margins;
}

double EstimatedPrecision(const std::vector<MinedPair>& pairs, const std::vector<float>& orphans,
                          int64_t sentences, float margin) {
  const auto mined = static_cast<int64_t>(AtLeast(pairs, margin).size());
  return PrecisionOf(mined, orphans, sentences, margin);
}

Threshold ChooseThreshold(const Neighbours& near, const std::vector<MinedPair>& pairs, int k,
                          double precision) {
  const std::vector<float> orphans = OrphanMargins(near, pairs, k);
  const int64_t sentences = std::min(near.of_x.rows(), near.of_y.rows());
  std::vector<float> margins;
  for (const MinedPair& p : pairs) margins.push_back(p.margin);
  std::sort(margins.begin(), margins.end());
  Threshold best;
  // Down from the highest margin; the lowest that reaches the precision is what is left at the end.
  for (auto mined = std::max(kLeastPairs, sentences / kLeastShare);
       mined <= static_cast<int64_t>(margins.size()); ++mined) {
    const float margin = margins[margins.size() - mined];
    const double estimate = PrecisionOf(mined, orphans, sentences, margin);
    if (estimate >= precision) best = {true, margin, estimate, mined};
  }
  return best;
}

}  // namespace pipelab
