#include "models/mining/margin.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace pipelab {
namespace {

// The best k + 1 that are not hidden: with them the mean of k others than any one is known.
struct Best {
  Best(absl::Span<const Neighbour> list, const std::vector<bool>& hidden, int k) : k(k) {
    for (const Neighbour& n : list) {
      if (static_cast<int>(kept.size()) == k + 1) break;
      if (hidden.empty() || !hidden[n.index]) kept.push_back(n);
    }
  }

  float MeanWithout(int32_t index) const { return MeanOfOthers(kept, index, k); }

  int k;
  std::vector<Neighbour> kept;
};

float Margin(MarginKind kind, float score, float others) {
  if (kind == MarginKind::kDifference) return score - others;
  if (kind == MarginKind::kHalf) return score - others / 2;
  return others <= 0 ? 0 : score / others;
}

struct Choice {
  int32_t index = -1;
  float margin = -std::numeric_limits<float>::infinity();

  void Offer(int32_t candidate, float its_margin) {
    if (its_margin > margin || (its_margin == margin && candidate < index)) {
      *this = {candidate, its_margin};
    }
  }
};

}  // namespace

float MeanOfOthers(absl::Span<const Neighbour> list, int32_t index, int k) {
  float sum = 0;
  int others = 0;
  for (const Neighbour& n : list) {
    if (n.index == index || others == k) continue;
    sum += n.score;
    ++others;
  }
  return others == 0 ? 0 : sum / static_cast<float>(others);
}

std::vector<MinedPair> MutualPairs(const Neighbours& near, MarginKind kind, int k,
                                   const std::vector<bool>& hidden) {
  std::vector<Best> of_x, of_y;
  for (int64_t x = 0; x < near.of_x.rows(); ++x) of_x.emplace_back(near.of_x.Of(x), hidden, k);
  const std::vector<bool> none;
  for (int64_t y = 0; y < near.of_y.rows(); ++y) of_y.emplace_back(near.of_y.Of(y), none, k);
  std::vector<Choice> best_of_x(of_x.size()), best_of_y(of_y.size());
  const auto offer = [&](int32_t x, int32_t y, float score) {
    const float others = (of_x[x].MeanWithout(y) + of_y[y].MeanWithout(x)) / 2;
    const float margin = Margin(kind, score, others);
    best_of_x[x].Offer(y, margin);
    best_of_y[y].Offer(x, margin);
  };
  for (size_t x = 0; x < of_x.size(); ++x) {
    for (const Neighbour& n : of_x[x].kept) offer(static_cast<int32_t>(x), n.index, n.score);
  }
  for (size_t y = 0; y < of_y.size(); ++y) {
    if (!hidden.empty() && hidden[y]) continue;
    for (const Neighbour& n : of_y[y].kept) offer(n.index, static_cast<int32_t>(y), n.score);
  }
  std::vector<MinedPair> pairs;
  for (size_t i = 0; i < of_x.size(); ++i) {
    const auto x = static_cast<int32_t>(i);
    const Choice& choice = best_of_x[i];
    if (choice.index >= 0 && best_of_y[choice.index].index == x) {
      pairs.push_back({x, choice.index, choice.margin});
    }
  }
  return pairs;
}

std::vector<std::pair<int32_t, int32_t>> CandidatePairs(const Neighbours& near, int most) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  const auto best = [most](absl::Span<const Neighbour> list) { return list.subspan(0, most); };
  for (int64_t x = 0; x < near.of_x.rows(); ++x) {
    for (const Neighbour& n : best(near.of_x.Of(x))) {
      pairs.emplace_back(static_cast<int32_t>(x), n.index);
    }
  }
  for (int64_t y = 0; y < near.of_y.rows(); ++y) {
    for (const Neighbour& n : best(near.of_y.Of(y))) {
      pairs.emplace_back(n.index, static_cast<int32_t>(y));
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

std::vector<MinedPair> AtLeast(const std::vector<MinedPair>& pairs, float margin) {
  std::vector<MinedPair> kept;
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(kept),
               [margin](const MinedPair& p) { return p.margin >= margin; });
  return kept;
}

}  // namespace pipelab
