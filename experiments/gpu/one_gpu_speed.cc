// Several pipeline devices on one GPU, a stream each, against one device that does the same work:
// the same GPT and micro-batches in four stages under 1F1B, and in one stage; and all that by CUDA
// graphs.
//
//   bazel run --config=cuda //experiments/gpu:one_gpu_speed -- --json=one_gpu.json
//
// Exit status: 0; 1, a run failed; 3, no CUDA device. Times are of whole steps, by the wall clock,
// the median of several; `ratio` is the pipeline's over the one device's, without graphs.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/compute_device.h"
#include "kernels/cuda/devices.h"
#include "models/data/random_batches.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, json, "", "write the results here too");
ABSL_FLAG(int, devices, 4, "devices of the pipeline");
ABSL_FLAG(int, hidden, 2048, "width of the GPT");
ABSL_FLAG(int, layers, 4, "Transformer blocks");
ABSL_FLAG(int, tokens, 512, "tokens of a sample");
ABSL_FLAG(int, micro_batch_size, 8, "samples of a micro-batch");
ABSL_FLAG(int, micro_batches, 16, "micro-batches of a step");
ABSL_FLAG(int, steps, 5, "measured steps, after two that are not: graphs are made in the second");
ABSL_FLAG(std::string, dtype, "tf32", "fp32, tf32 or bf16");

namespace pipelab {
namespace {

struct Measured {
  double seconds = 0;  // of a step
  double loss = 0;     // of the last step
  std::vector<ComputeDevice::Counts> counts;
};

absl::StatusOr<Measured> MeasureSteps(const ModelGraph& graph, const BatchSource& data, int devices,
                                      const gpu::DeviceOptions& on) {
  TrainingOptions options;
  options.config.scheme = "1f1b";
  options.config.pipeline = devices;
  options.config.micro_batches = absl::GetFlag(FLAGS_micro_batches);
  options.config.micro_batch_size = absl::GetFlag(FLAGS_micro_batch_size);
  options.devices = gpu::CudaDevices(gpu::DefaultDeviceName(), on);
  options.trace = false;
  const auto start = std::chrono::steady_clock::now();
  PIPELAB_ASSIGN_OR_RETURN(auto training, PipelineTraining::Create(graph, data, options));
  const std::chrono::duration<double> made = std::chrono::steady_clock::now() - start;
  Measured measured;
  std::vector<double> seconds;
  for (int step = 0; step < absl::GetFlag(FLAGS_steps) + 2; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep done, training->Step());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    measured.loss = done.loss;
    if (step > 1) seconds.push_back(took.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  measured.seconds = seconds[seconds.size() / 2];
  measured.counts = training->DeviceCounts();
  std::cout << absl::StrFormat("%d devices%s: made in %.1f s, a step of %.1f ms", devices,
                               on.graphs ? ", graphs" : "", made.count(), measured.seconds * 1e3)
            << std::endl;
  return measured;
}

// Sums over devices, "{...}".
std::string CountsToJson(const std::vector<ComputeDevice::Counts>& counts) {
  ComputeDevice::Counts sums = counts[0];
  for (size_t d = 1; d < counts.size(); ++d) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i].second += counts[d][i].second;
  }
  return absl::StrCat("{",
                      absl::StrJoin(sums, ", ",
                                    [](std::string* out, const auto& count) {
                                      absl::StrAppend(out, "\"", count.first, "\": ", count.second);
                                    }),
                      "}");
}

absl::Status Measure() {
  gpu::DeviceOptions on;
  PIPELAB_ASSIGN_OR_RETURN(on.format, gpu::ParsePrecision(absl::GetFlag(FLAGS_dtype)));
  PIPELAB_RETURN_IF_ERROR(gpu::MakeDevices(gpu::DefaultDeviceName(), 1, on).status());
  GptConfig config;
  config.hidden = absl::GetFlag(FLAGS_hidden);
  config.heads = std::max<int64_t>(1, config.hidden / 64);
  config.layers = absl::GetFlag(FLAGS_layers);
  config.tokens = absl::GetFlag(FLAGS_tokens);
  config.vocabulary = 1024;  // so that no stage is all words
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildGpt(config));
  const RandomBatches data(
      FieldsOf(graph),
      int64_t{absl::GetFlag(FLAGS_micro_batch_size)} * absl::GetFlag(FLAGS_micro_batches),
      /*seed=*/1);
  const int devices = absl::GetFlag(FLAGS_devices);
  PIPELAB_ASSIGN_OR_RETURN(const Measured one, MeasureSteps(graph, data, 1, on));
  PIPELAB_ASSIGN_OR_RETURN(const Measured several, MeasureSteps(graph, data, devices, on));
  on.graphs = true;
  PIPELAB_ASSIGN_OR_RETURN(const Measured one_graphs, MeasureSteps(graph, data, 1, on));
  PIPELAB_ASSIGN_OR_RETURN(const Measured graphs, MeasureSteps(graph, data, devices, on));
  const double ratio = several.seconds / one.seconds;
  const bool equal =
      several.loss == one.loss && one_graphs.loss == one.loss && graphs.loss == one.loss;
  std::cout << absl::StrFormat(
      "a step: %.1f ms on one device, %.1f ms on %d devices of one GPU: %.3f times\n"
      "by CUDA graphs: %.1f ms and %.1f ms; %s\nlosses: %s\n",
      one.seconds * 1e3, several.seconds * 1e3, devices, ratio, one_graphs.seconds * 1e3,
      graphs.seconds * 1e3, CountsToJson(graphs.counts),
      equal ? "bit-equal" : "WRONG: they differ");
  if (!absl::GetFlag(FLAGS_json).empty()) {
    std::ofstream(absl::GetFlag(FLAGS_json)) << absl::StrFormat(
        "{\"devices\": %d, \"hidden\": %d, \"layers\": %d, \"tokens\": %d, \"samples\": %d, "
        "\"micro_batches\": %d, \"precision\": \"%s\", \"one_device_ms\": %.3f, "
        "\"pipeline_ms\": %.3f, \"ratio\": %.4f, \"one_device_graphs_ms\": %.3f, "
        "\"pipeline_graphs_ms\": %.3f, \"graphs\": %s, \"bit_equal\": %s}\n",
        devices, config.hidden, config.layers, config.tokens, absl::GetFlag(FLAGS_micro_batch_size),
        absl::GetFlag(FLAGS_micro_batches), absl::GetFlag(FLAGS_dtype), one.seconds * 1e3,
        several.seconds * 1e3, ratio, one_graphs.seconds * 1e3, graphs.seconds * 1e3,
        CountsToJson(graphs.counts), equal ? "true" : "false");
  }
  if (!equal) return absl::InternalError("the losses differ");
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
