#include "models/data/ngram.h"

#include <algorithm>
#include <cmath>

#include "glog/logging.h"

namespace pipelab {
namespace {

// Up to seven tokens and, in the top byte, how many: the keys of all lengths are different numbers.
uint64_t GramKey(const uint8_t* first, size_t length) {
  uint64_t key = 0;
  for (size_t i = 0; i < length; ++i) key = key << 8 | first[i];
  return key | static_cast<uint64_t>(length) << 56;
}

}  // namespace

NGramModel::NGramModel(absl::Span<const uint8_t> tokens, int64_t vocabulary, int order)
    : order_(order), uniform_(1.0 / static_cast<double>(vocabulary)) {
  CHECK(order >= 1 && order <= kMaxOrder) << "order " << order;
  CHECK_GT(vocabulary, 0);
  for (size_t i = 0; i < tokens.size(); ++i) {
    CHECK_LT(tokens[i], vocabulary);
    for (size_t length = 0; length < static_cast<size_t>(order) && length <= i; ++length) {
      const uint8_t* first = tokens.data() + i - length;
      Context& context = contexts_[GramKey(first, length)];
      ++context.count;
      if (++grams_[GramKey(first, length + 1)] == 1) ++context.distinct;
    }
  }
}

double NGramModel::Probability(absl::Span<const uint8_t> before, uint8_t next) const {
  uint8_t gram[kMaxOrder];
  const size_t longest = std::min(before.size(), static_cast<size_t>(order_) - 1);
  std::copy(before.end() - static_cast<ptrdiff_t>(longest), before.end(), gram);
  gram[longest] = next;
  double probability = uniform_;
  for (size_t length = 0; length <= longest; ++length) {
    const uint8_t* first = gram + longest - length;
    const auto context = contexts_.find(GramKey(first, length));
    if (context == contexts_.end()) break;  // nor were longer ones seen
    const auto count = grams_.find(GramKey(first, length + 1));
    const double seen = count == grams_.end() ? 0 : count->second;
    const double distinct = context->second.distinct;
    probability = (seen + distinct * probability) / (context->second.count + distinct);
  }
  return probability;
}

double NGramModel::Loss(absl::Span<const uint8_t> tokens) const {
  return Loss(tokens, 0, static_cast<int64_t>(tokens.size()));
}

double NGramModel::Loss(absl::Span<const uint8_t> tokens, int64_t begin, int64_t end) const {
  CHECK(0 <= begin && begin < end && end <= static_cast<int64_t>(tokens.size()))
      << begin << " to " << end << " of " << tokens.size();
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    sum -= std::log(Probability(tokens.subspan(0, i), tokens[i]));
  }
  return sum / static_cast<double>(end - begin);
}

}  // namespace pipelab
