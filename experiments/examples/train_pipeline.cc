// Training for real under a pipeline schedule, beside the plain loop that it must equal.
//
//   tools/bazel run //experiments/examples:train_pipeline
#include <cstdint>
#include <cstdio>
#include <memory>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/data/random_batches.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/published.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status Run() {
  constexpr int kMicroBatches = 8, kSteps = 3;
  constexpr int64_t kSamples = 2;
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildPublished("gpt-small"));
  RandomBatches data(FieldsOf(graph), kMicroBatches * kSamples, /*seed=*/1);

  // Without a pipeline.
  SerialOptions serial_options;
  serial_options.num_micro_batches = kMicroBatches;
  serial_options.micro_batch_size = kSamples;
  serial_options.data = &data;
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  PIPELAB_ASSIGN_OR_RETURN(auto serial,
                           SerialTrainer::Create(graph, backend.get(), serial_options));

  // Four devices, a thread each.
  TrainingOptions options;
  options.config.scheme = "1f1b";
  options.config.pipeline = 4;
  options.config.micro_batches = kMicroBatches;
  options.config.micro_batch_size = kSamples;
  PIPELAB_ASSIGN_OR_RETURN(auto training, PipelineTraining::Create(graph, data, options));

  bool equal = true;
  TrainingStep step;
  for (int i = 0; i < kSteps; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(const double expected, serial->Step());
    PIPELAB_ASSIGN_OR_RETURN(step, training->Step());
    equal &= step.loss == expected;
  }
  std::printf("%s under %s: %d steps, losses %s\n", graph.name.c_str(),
              options.config.scheme.c_str(), kSteps,
              equal ? "bit-equal to those without a pipeline" : "differ");

  // The simulator takes the same program; its memory is that of the run.
  PIPELAB_ASSIGN_OR_RETURN(const Trace predicted, Simulate(training->program(), training->costs()));
  for (size_t d = 0; d < predicted.devices.size(); ++d) {
    std::printf("device %zu: %lld bytes of activations at the peak, predicted %lld\n", d,
                static_cast<long long>(step.trace.devices[d].peak_activation.value()),
                static_cast<long long>(predicted.devices[d].peak_activation.value()));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main() {
  const absl::Status status = pipelab::Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
