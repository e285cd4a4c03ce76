// Several pipeline devices on one GPU, a stream each, against one device that does the same work:
// the same GPT and micro-batches in four stages under 1F1B, and in one stage.
//
//   bazel run --config=cuda //experiments/gpu:one_gpu_speed -- --json=one_gpu.json
//
// Exit status: 0; 1, a run failed; 3, no CUDA device. Times are of whole steps, by the wall clock,
// the median of several; `ratio` is the pipeline's over the one device's.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_format.h"
#include "experiments/training.h"
#include "kernels/cuda/devices.h"
#include "models/data/random_batches.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, json, "", "write the results here too");
ABSL_FLAG(int, devices, 4, "of the pipeline");
ABSL_FLAG(int, hidden, 2048, "width of the GPT");
ABSL_FLAG(int, layers, 8, "Transformer blocks");
ABSL_FLAG(int, tokens, 512, "of a sample");
ABSL_FLAG(int, samples, 8, "of a micro-batch");
ABSL_FLAG(int, micro_batches, 16, "of a step");
ABSL_FLAG(int, steps, 5, "measured, after one that is not");
ABSL_FLAG(std::string, precision, "tf32", "fp32, tf32 or bf16");

namespace pipelab {
namespace {

absl::StatusOr<double> StepSeconds(const ModelGraph& graph, const BatchSource& data, int devices,
                                   gpu::Precision precision, double* loss) {
  TrainingOptions options;
  options.scheme = "1f1b";
  options.sizes.devices = devices;
  options.sizes.micro_batches = absl::GetFlag(FLAGS_micro_batches);
  options.micro_batch_samples = absl::GetFlag(FLAGS_samples);
  options.devices = gpu::CudaDevices(gpu::DefaultDeviceName(), precision);
  options.trace = false;
  PIPELAB_ASSIGN_OR_RETURN(auto training, PipelineTraining::Create(graph, data, options));
  std::vector<double> seconds;
  for (int step = 0; step <= absl::GetFlag(FLAGS_steps); ++step) {
    const auto begin = std::chrono::steady_clock::now();
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep done, training->Step());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    *loss = done.loss;
    if (step > 0) seconds.push_back(took.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

absl::Status Measure() {
  PIPELAB_ASSIGN_OR_RETURN(const gpu::Precision precision,
                           gpu::ParsePrecision(absl::GetFlag(FLAGS_precision)));
  PIPELAB_RETURN_IF_ERROR(gpu::MakeDevices(gpu::DefaultDeviceName(), 1, precision).status());
  GptConfig config;
  config.hidden = absl::GetFlag(FLAGS_hidden);
  config.heads = std::max<int64_t>(1, config.hidden / 64);
  config.layers = absl::GetFlag(FLAGS_layers);
  config.tokens = absl::GetFlag(FLAGS_tokens);
  config.vocabulary = 1024;  // so that no stage is all words
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildGpt(config));
  const RandomBatches data(
      FieldsOf(graph), int64_t{absl::GetFlag(FLAGS_samples)} * absl::GetFlag(FLAGS_micro_batches),
      /*seed=*/1);
  const int devices = absl::GetFlag(FLAGS_devices);
  double one_loss = 0, loss = 0;
  PIPELAB_ASSIGN_OR_RETURN(const double one, StepSeconds(graph, data, 1, precision, &one_loss));
  PIPELAB_ASSIGN_OR_RETURN(const double several,
                           StepSeconds(graph, data, devices, precision, &loss));
  std::cout << absl::StrFormat(
      "a step: %.1f ms on one device, %.1f ms on %d devices of one GPU: %.3f times\nlosses: %s\n",
      one * 1e3, several * 1e3, devices, several / one,
      loss == one_loss ? "bit-equal" : "WRONG: they differ");
  if (!absl::GetFlag(FLAGS_json).empty()) {
    std::ofstream(absl::GetFlag(FLAGS_json)) << absl::StrFormat(
        "{\"devices\": %d, \"hidden\": %d, \"layers\": %d, \"tokens\": %d, \"samples\": %d, "
        "\"micro_batches\": %d, \"precision\": \"%s\", \"one_device_ms\": %.3f, "
        "\"pipeline_ms\": %.3f, \"ratio\": %.4f, \"bit_equal\": %s}\n",
        devices, config.hidden, config.layers, config.tokens, absl::GetFlag(FLAGS_samples),
        absl::GetFlag(FLAGS_micro_batches), absl::GetFlag(FLAGS_precision), one * 1e3,
        several * 1e3, several / one, loss == one_loss ? "true" : "false");
  }
  if (loss != one_loss) return absl::InternalError("the losses differ");
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = pipelab::Measure();
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return absl::IsNotFound(status) ? 3 : 1;
}
