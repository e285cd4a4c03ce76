// Real fill jobs: what a network answers to samples, some at a time: pictures classified, a
// held-out text scored; and sentences translated, a character at a time.
//
//   EvaluationOptions options;
//   options.samples = 10000;
//   options.samples_of_piece = 4;
//   auto results = std::make_shared<EvaluationResults>();
//   PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<FillWork> work,
//                            MakeEvaluation("pictures", graph, &data, backend, options, results));
//   while (!work->over()) { PIPELAB_RETURN_IF_ERROR(work->RunNext()); }     // alone, or in gaps
//   results->loss;  results->predictions;
//
// A piece is a forward of all layers for its samples (SerialTrainer::Evaluate), so results are the
// same bits wherever pieces run, if they have the same samples. A job that gets results which
// another has begun resumes there. Errors: the trainer's.
#ifndef PIPELAB_PIPELINES_FILL_FILL_EVALUATION_H_
#define PIPELAB_PIPELINES_FILL_FILL_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "models/checkpoint/training_state.h"
#include "models/data/batch_source.h"
#include "models/data/greedy_translator.h"
#include "models/graph/layer_spec.h"
#include "pipelines/fill/fill_runner.h"

namespace pipelab {

struct EvaluationOptions {
  int64_t samples = 1, samples_of_piece = 1;  // the last piece may have fewer
  uint64_t seed = 1;                          // of weights, where there is no state
  absl::optional<TrainingState> state;        // a checkpoint's
  // Takes the predictions of each piece, whose first sample it is told; null: the results keep all.
  std::function<void(int64_t first_sample, absl::Span<const float> predictions)> take;
};

// Read by others between steps.
struct EvaluationResults {
  int64_t samples = 0;             // so far
  double loss = 0;                 // their mean
  std::vector<float> predictions;  // of the loss layer, sample by sample
};

// `data` and `backend` outlive the job.
absl::StatusOr<std::unique_ptr<FillWork>> MakeEvaluation(
    std::string name, const ModelGraph& graph, const BatchSource* data, Backend* backend,
    const EvaluationOptions& options, std::shared_ptr<EvaluationResults> results);

// Translates: a piece is the next character of each of the translation's rows. Of the options, the
// seed or the state count. The backend outlives the job; translation->said() is read between steps.
absl::StatusOr<std::unique_ptr<FillWork>> MakeTranslation(
    std::string name, const ModelGraph& graph, Backend* backend, const EvaluationOptions& options,
    std::shared_ptr<GreedyTranslation> translation);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_FILL_FILL_EVALUATION_H_
