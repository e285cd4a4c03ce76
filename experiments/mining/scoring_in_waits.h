// Cross-entropies of pairs by a translator while another one is trained: fill jobs in the waits of
// that training, a part of the pairs for each of its ranks. What they leave is done afterwards.
//
//   ScoringInWaits scoring(&forward, candidates, options.devices);
//   options.fill_works = scoring.Works();
//   PIPELAB_ASSIGN_OR_RETURN(auto backward, Translator::Train(pairs, "en", subwords, options));
//   scoring.scored();                                                   // in the waits
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<double> nats, scoring.Finish());
//
// They are the bits of forward.CrossEntropies(candidates), however many were done in waits; the
// trained translator has the bits that it has without. Errors: the translator's.
#ifndef PIPELAB_EXPERIMENTS_MINING_SCORING_IN_WAITS_H_
#define PIPELAB_EXPERIMENTS_MINING_SCORING_IN_WAITS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/mining/translator.h"
#include "kernels/backend.h"
#include "models/data/catalogues.h"
#include "pipelines/fill/fill_runner.h"

namespace pipelab {

class ScoringInWaits {
 public:
  // `translator` outlives it, and all `pairs` fit it. `ranks`: of the training, 1 or more.
  ScoringInWaits(const Translator* translator, const std::vector<TextPair>& pairs, int ranks);

  // TranslatorOptions::fill_works, for one training, during which this is there.
  std::function<absl::StatusOr<FillWorks>(int rank, Backend* backend)> Works();
  int64_t scored() const;  // so far; not while a step runs
  // The scores of all pairs, in their order; what is missing is scored now.
  absl::StatusOr<std::vector<double>> Finish() const;

 private:
  struct Part {  // pairs that follow one another
    std::vector<TextPair> pairs;
    std::shared_ptr<std::vector<double>> nats;  // of the first ones
  };

  const Translator* const translator_;
  std::vector<Part> parts_;  // [rank]
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MINING_SCORING_IN_WAITS_H_
