// Training without a pipeline: one loop over micro-batches and layers. What "equals serial
// training" means, so it shares layers and initial values with the pipelines and nothing else: no
// stages, schedules or messages.
//
//   Arena arena;
//   auto backend = MakeCpuBackend(&arena);
//   PIPELAB_ASSIGN_OR_RETURN(auto trainer, SerialTrainer::Create(graph, backend.get(), options));
//   for (int i = 0; i < 50; ++i) {
//     PIPELAB_ASSIGN_OR_RETURN(double loss, trainer->Step());      // mean over the step's tokens
//   }
//
// Order, on which equality to the bit rests: micro-batches ascending, each forward then backward; a
// parameter's gradient adds up in that order; a tied parameter's gradients are summed in layer
// order at the step.
#ifndef PIPELAB_MODELS_LAYERS_SERIAL_TRAINER_H_
#define PIPELAB_MODELS_LAYERS_SERIAL_TRAINER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

struct SerialOptions {
  int64_t micro_batch_samples = 1;
  int num_micro_batches = 1;
  const BatchSource* data = nullptr;
  uint64_t seed = 1;
  AdamOptions adam;  // its step is set by the trainer
  // [micro-batch] -> which partial sum of gradients it goes to; the sums are added up, in order, at
  // the step. Empty: one sum. This is how a scheme with several replicas adds, without the
  // replicas.
  std::vector<int> sum_of_micro_batch;
};

class SerialTrainer {
 public:
  // `backend` and the data must outlive the trainer. InvalidArgument: a graph that is not a chain
  // of known layers, data that does not fit.
  static absl::StatusOr<std::unique_ptr<SerialTrainer>> Create(ModelGraph graph, Backend* backend,
                                                               const SerialOptions& options);

  // One optimizer step over all micro-batches. Returns the mean loss over their tokens, before the
  // step.
  absl::StatusOr<double> Step();
  // The losses of the last step, by micro-batch: sums over tokens.
  const std::vector<double>& losses() const { return losses_; }
  // Mean loss over the samples [first_sample, first_sample + samples) of a step's batch of any
  // source, without dropout and without training.
  absl::StatusOr<double> Evaluate(const BatchSource& data, int64_t step, int64_t first_sample,
                                  int64_t samples);

  // A copy of a parameter's value; NotFound. A tied parameter has its value under each of its
  // names.
  absl::StatusOr<std::vector<float>> ParameterValue(const std::string& name) const;

 private:
  // One value, with a gradient for each of its uses, in layer order, and each partial sum.
  struct Value {
    Tensor value, m, v;
    std::vector<Tensor> gradients;
  };

  SerialTrainer(ModelGraph graph, Backend* backend, const SerialOptions& options);
  absl::Status MakeLayers();
  Tensor NewState(const ParameterSpec& spec, MemoryKind kind);
  void MicroBatch(int micro_batch);
  LayerContext ContextFor(int64_t step, int64_t first_sample, int64_t samples) const;

  ModelGraph graph_;
  Backend* backend_;
  SerialOptions options_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::vector<std::vector<Parameter>>> parameters_;  // [partial sum][layer]
  std::map<std::string, Value> values_;                          // by ValueName
  std::vector<double> losses_;
  int64_t step_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_SERIAL_TRAINER_H_
