// How much better a pair is than what else its sentences could be paired with.
//
//   const std::vector<MinedPair> pairs = MutualPairs(near, MarginKind::kDifference, /*k=*/4);
//
// Margin of (x, y), with a(x) the mean of the k best scores of x with others than y, and b(y) the
// same of y (Artetxe and Schwenk, "Margin-based parallel corpus mining", ACL 2019, with the pair
// itself left out of the means):
//   ratio       score(x, y) / ((a(x) + b(y)) / 2)         for cosines
//   difference  score(x, y) - (a(x) + b(y)) / 2           for scores of any scale
//   half        score(x, y) - (a(x) + b(y)) / 4           for log odds, which mean something alone
#ifndef PIPELAB_MODELS_MINING_MARGIN_H_
#define PIPELAB_MODELS_MINING_MARGIN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "models/mining/nearest.h"

namespace pipelab {

enum class MarginKind : uint8_t { kRatio, kDifference, kHalf };

struct MinedPair {
  int32_t x, y;  // places in the two lists
  float margin;

  bool operator==(const MinedPair& o) const { return x == o.x && y == o.y && margin == o.margin; }
};

// Pairs of which each sentence is the other's best by margin, sorted by x. Lists should be longer
// than k + 1, so that a sentence has k others, and a choice. Sentences of y in `hidden` (by place;
// empty: none) are as if they were not there.
std::vector<MinedPair> MutualPairs(const Neighbours& near, MarginKind kind, int k,
                                   const std::vector<bool>& hidden = {});

// The mean of the k first of a list that are not `index`; 0 where there is none.
float MeanOfOthers(absl::Span<const Neighbour> list, int32_t index, int k);

// What is among the best `most` of either side, each once, by x.
std::vector<std::pair<int32_t, int32_t>> CandidatePairs(const Neighbours& near, int most);

std::vector<MinedPair> AtLeast(const std::vector<MinedPair>& pairs, float margin);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_MARGIN_H_
