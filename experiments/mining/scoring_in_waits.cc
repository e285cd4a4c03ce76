#include "experiments/mining/scoring_in_waits.h"

#include <algorithm>
#include <cstddef>

#include "tools/base/status_macros.h"

namespace pipelab {

ScoringInWaits::ScoringInWaits(const Translator* translator, const std::vector<TextPair>& pairs,
                               int ranks)
    : translator_(translator) {
  const auto size = static_cast<int64_t>(pairs.size());
  constexpr int64_t kOfPiece = Translator::kScoredAtOnce;
  const int64_t pieces = (size + kOfPiece - 1) / kOfPiece;
  // Whole pieces, as they are without parts.
  const auto begin = [&](int rank) {
    return pairs.begin() + std::min(size, pieces * rank / ranks * kOfPiece);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    parts_.push_back({{begin(rank), begin(rank + 1)}, std::make_shared<std::vector<double>>()});
  }
}

std::function<absl::StatusOr<FillWorks>(int rank, Backend* backend)> ScoringInWaits::Works() {
  return [this](int rank, Backend* backend) -> absl::StatusOr<FillWorks> {
    const Part& part = parts_.at(rank);
    FillWorks works;
    if (part.nats->size() == part.pairs.size()) return works;
    PIPELAB_ASSIGN_OR_RETURN(works.emplace_back(),
                             translator_->CrossEntropyJob(part.pairs, backend, part.nats));
    return works;
  };
}

int64_t ScoringInWaits::scored() const {
  size_t scored = 0;
  for (const Part& part : parts_) scored += part.nats->size();
  return static_cast<int64_t>(scored);
}

absl::StatusOr<std::vector<double>> ScoringInWaits::Finish() const {
  std::vector<double> all;
  for (const Part& part : parts_) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> nats,
                             translator_->CrossEntropies(part.pairs, *part.nats));
    all.insert(all.end(), nats.begin(), nats.end());
  }
  return all;
}

}  // namespace pipelab
