// The best schedule of a training step, for the times and memory of its stages (pipelines/step) and
// within what may be chosen. Its time is the one that `simulate` gives.
//
//   StepCache cache(on->step());
//   PIPELAB_ASSIGN_OR_RETURN(StepConfig config, ParseStepConfig("", "1f1b:P=4,M=8"));
//   StepSynthesisOptions options;
//   options.search.time_limit = absl::Seconds(20);
//   PIPELAB_ASSIGN_OR_RETURN(StepSynthesis found, SynthesizeStep(&cache, config, options));
//   found.best().prediction.step_time;      // what simulate says
//   found.catalogue.prediction.step_time;   // of the best schedule of the catalogue that fits
//
// The configuration's grid, P and M count; of its scheme only whether it recomputes. A problem is a
// cut into stages, a placement of them, a number of token slices, and which stages are recomputed;
// backwards are split or whole. In each, orders are found for the passes alone, and judged by the
// whole step: messages that share links, sums of gradients, the optimizer. The bound is one of the
// passes. Memory is the simulator's: where messages in flight take what the problem knew nothing
// of, it is solved again with less room.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_STEP_SYNTHESIS_H_
#define PIPELAB_PIPELINES_SYNTHESIS_STEP_SYNTHESIS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/step_problem.h"
#include "pipelines/synthesis/synthesize.h"

namespace pipelab {

struct StepSynthesisOptions {
  SynthesisOptions search;
  StepLimits limits;
  bool split_backward = true;   // backwards may be split
  bool placement = true;        // stages may be placed otherwise than looped
  bool recompute = true;        // stages may be recomputed where the configuration has none
  bool offload = true;          // activations may wait at the host, on clusters with a host link
  int most_virtual_stages = 4;  // stages that a device has of a pipeline, at most
  int most_slices = 1;  // token slices of a micro-batch, at most: 1, 2, 4 and so on are tried
};

struct PlacedSynthesis {
  std::string placement;  // "looped V=1"
  SynthesisProblem problem;
  Synthesis synthesis;
  StepPrediction prediction;  // of the schedule
};

struct CatalogueStep {
  std::string scheme;  // empty: none fits
  StepPrediction prediction;
};

struct StepSynthesis {
  std::vector<PlacedSynthesis> placed;  // the shortest step first
  CatalogueStep catalogue;
  std::vector<std::string> refused;  // placements, and why

  const PlacedSynthesis& best() const { return placed[0]; }
};

// InvalidArgument naming option or key; ResourceExhausted where nothing fits.
absl::StatusOr<StepSynthesis> SynthesizeStep(StepCache* cache, const StepConfig& config,
                                             const StepSynthesisOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_STEP_SYNTHESIS_H_
