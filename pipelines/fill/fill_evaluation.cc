#include "pipelines/fill/fill_evaluation.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/layers/serial_trainer.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// No less than what a forward of so many samples holds: outputs until their last reader is over.
Bytes ForwardBytes(const ModelGraph& graph, int64_t samples) {
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  Bytes live, most;
  for (size_t n = 0; n < graph.layers.size(); ++n) {
    const LayerCosts costs = graph.layers[n].costs(samples);
    most = std::max(most,
                    live + costs.forward_peak + costs.kept + DataBytes(graph.layers[n], samples));
    live += costs.output;
    for (const int input : graph.layers[n].inputs) {
      if (consumers[input].back() == static_cast<int>(n)) {
        live -= graph.layers[input].costs(samples).output;
      }
    }
  }
  return most;
}

class Evaluation final : public FillWork {
 public:
  Evaluation(std::string name, const BatchSource* data, const EvaluationOptions& options,
             std::unique_ptr<SerialTrainer> trainer, std::shared_ptr<EvaluationResults> results)
      : name_(std::move(name)),
        data_(data),
        samples_(options.samples),
        of_piece_(options.samples_of_piece),
        take_(options.take),
        trainer_(std::move(trainer)),
        results_(std::move(results)) {}

  const std::string& name() const override { return name_; }
  bool over() const override { return results_->samples >= samples_; }
  int next_class() const override { return static_cast<int>(Next()); }
  Bytes next_bytes() const override { return ForwardBytes(trainer_->graph(), Next()); }

  absl::Status RunNext() override {
    const int64_t first = results_->samples, n = Next();
    PIPELAB_ASSIGN_OR_RETURN(const double loss, trainer_->Evaluate(*data_, /*step=*/0, first, n,
                                                                   &results_->predictions));
    const double before = results_->loss * static_cast<double>(results_->samples);
    results_->samples += n;
    results_->loss =
        (before + loss * static_cast<double>(n)) / static_cast<double>(results_->samples);
    if (take_ != nullptr) {
      take_(first, results_->predictions);
      results_->predictions.clear();
    }
    return absl::OkStatus();
  }

 private:
  int64_t Next() const { return std::min(of_piece_, samples_ - results_->samples); }

  const std::string name_;
  const BatchSource* const data_;
  const int64_t samples_, of_piece_;
  const std::function<void(int64_t, absl::Span<const float>)> take_;
  const std::unique_ptr<SerialTrainer> trainer_;
  const std::shared_ptr<EvaluationResults> results_;
};

class TranslationWork final : public FillWork {
 public:
  TranslationWork(std::string name, std::unique_ptr<SerialTrainer> trainer,
                  std::shared_ptr<GreedyTranslation> translation)
      : name_(std::move(name)),
        trainer_(std::move(trainer)),
        translation_(std::move(translation)) {}

  const std::string& name() const override { return name_; }
  bool over() const override { return translation_->over(); }
  int next_class() const override { return static_cast<int>(translation_->num_rows()); }
  Bytes next_bytes() const override {
    return ForwardBytes(trainer_->graph(), translation_->num_rows());
  }

  absl::Status RunNext() override {
    std::vector<float> logits;
    PIPELAB_RETURN_IF_ERROR(trainer_
                                ->Evaluate(translation_->rows(), /*step=*/0, /*first_sample=*/0,
                                           translation_->num_rows(), &logits)
                                .status());
    return translation_->Take(logits);
  }

 private:
  const std::string name_;
  const std::unique_ptr<SerialTrainer> trainer_;
  const std::shared_ptr<GreedyTranslation> translation_;
};

// A network with the weights that the options say.
absl::StatusOr<std::unique_ptr<SerialTrainer>> MakeNetwork(const ModelGraph& graph,
                                                           const BatchSource* data, int64_t samples,
                                                           Backend* backend,
                                                           const EvaluationOptions& options) {
  SerialOptions serial;
  serial.data = data;
  serial.seed = options.seed;
  serial.micro_batch_size = samples;
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<SerialTrainer> trainer,
                           SerialTrainer::Create(graph, backend, serial));
  if (options.state.has_value()) PIPELAB_RETURN_IF_ERROR(trainer->SetState(*options.state));
  return trainer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FillWork>> MakeEvaluation(
    std::string name, const ModelGraph& graph, const BatchSource* data, Backend* backend,
    const EvaluationOptions& options, std::shared_ptr<EvaluationResults> results) {
  if (options.samples < 1 || options.samples_of_piece < 1) {
    return absl::InvalidArgumentError(absl::StrCat("fill job ", name, ": ", options.samples,
                                                   " samples, ", options.samples_of_piece,
                                                   " a piece: must be at least 1"));
  }
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<SerialTrainer> trainer,
                           MakeNetwork(graph, data, options.samples_of_piece, backend, options));
  return std::unique_ptr<FillWork>(std::make_unique<Evaluation>(
      std::move(name), data, options, std::move(trainer), std::move(results)));
}

absl::StatusOr<std::unique_ptr<FillWork>> MakeTranslation(
    std::string name, const ModelGraph& graph, Backend* backend, const EvaluationOptions& options,
    std::shared_ptr<GreedyTranslation> translation) {
  PIPELAB_ASSIGN_OR_RETURN(
      std::unique_ptr<SerialTrainer> trainer,
      MakeNetwork(graph, &translation->rows(), std::max<int64_t>(translation->num_rows(), 1),
                  backend, options));
  return std::unique_ptr<FillWork>(std::make_unique<TranslationWork>(
      std::move(name), std::move(trainer), std::move(translation)));
}

}  // namespace pipelab
