#include "pipelines/serving/generate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/backend.h"
#include "kernels/comm/communicator.h"
#include "kernels/cpu/cpu_devices.h"
#include "kernels/tensor/arena.h"
#include "models/specs/token_cache.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/serving/decode_stage.h"
#include "tools/base/memory.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {

namespace {

// Memory outlives what is computed in it.
struct DecodeDevice {
  explicit DecodeDevice(const ComputeDevice& on)
      : arena(on.memory), backend(on.make_backend(&arena)) {}

  Arena arena;
  const std::unique_ptr<Backend> backend;
  std::unique_ptr<DecodeStage> stage;
};

absl::Status CheckPrompts(const ModelGraph& graph, const GenerateOptions& options) {
  const LayerSpec& first = graph.layers[0];
  const int64_t words = first.data.empty() ? 0 : first.data[0].limit;
  const int64_t context = first.output_shape.empty() ? 0 : first.output_shape[0];
  for (size_t r = 0; r < options.prompts.size(); ++r) {
    const std::vector<int32_t>& prompt = options.prompts[r];
    for (const int32_t id : prompt) {
      if (id >= 0 && id < words) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "prompt ", r, ": token ", id, " is not one of the model's, which are 0 to ", words - 1));
    }
    const int64_t output = r < options.plan.requests.size() ? options.plan.requests[r].output : 0;
    const int64_t tokens = static_cast<int64_t>(prompt.size()) + output - 1;
    if (tokens <= context) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("prompt ", r, ": ", prompt.size(), " tokens and ", output,
                     " more are longer than the model's context of ", context));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelPartition> GenerationPartition(const ModelGraph& graph,
                                                   const GenerateOptions& options) {
  const int devices = options.plan.options.devices, stages = options.partition.num_stages();
  if (stages == devices) return options.partition;
  if (stages > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the layers are in ", stages, " stages, the plan has ", devices, " devices"));
  }
  std::vector<double> flops;
  for (const LayerSpec& layer : graph.layers) flops.push_back(layer.costs(1).forward.value());
  const auto first = PartitionChain(flops, devices);
  if (!first.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", devices, ": ", first.status().message()));
  }
  return MakeRangePartition(graph, *first);
}

// Weights and all slots' caches of all devices, in float32, in what memory there is.
absl::Status CheckMemory(const ModelGraph& graph, const ServingOptions& options) {
  double numbers = static_cast<double>(graph.num_parameters());
  for (const LayerSpec& layer : graph.layers) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t of_token, CacheNumbers(layer));
    numbers += static_cast<double>(of_token) * static_cast<double>(options.cache_tokens) *
               static_cast<double>(options.slots) * static_cast<double>(options.groups);
  }
  const double bytes = 4 * numbers;
  const Bytes free = AvailableMemory();
  if (bytes <= static_cast<double>(free.value())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "weights and caches need %.3g GiB of memory, and %s are free; fewer --groups or --slots, or "
      "a smaller --cache, would do",
      std::ldexp(bytes, -30), ToString(free)));
}

}  // namespace

int32_t ChooseToken(absl::Span<const float> logits, double temperature, uint64_t seed, int request,
                    int64_t position) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<int32_t>(likeliest - logits.begin());
  const double largest = *likeliest;
  double sum = 0;
  for (const float logit : logits) sum += std::exp((logit - largest) / temperature);
  const CounterRng rng(seed, absl::StrCat("generate/", request));
  double left = rng.Uniform(static_cast<uint64_t>(position)) * sum;
  for (size_t id = 0; id < logits.size(); ++id) {
    left -= std::exp((logits[id] - largest) / temperature);
    if (left < 0) return static_cast<int32_t>(id);
  }
  return static_cast<int32_t>(likeliest - logits.begin());  // rounding: there is nothing left
}

absl::StatusOr<Generated> Generate(const ModelGraph& graph, const GenerateOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckPrompts(graph, options));
  PIPELAB_RETURN_IF_ERROR(CheckMemory(graph, options.plan.options));
  const int count = options.plan.options.devices;
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition, GenerationPartition(graph, options));
  LoweringOptions lowering;
  lowering.stages = partition.stages;
  lowering.step = false;
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(PassSchedule(options.plan), lowering));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ComputeDevice> computes,
                           (options.devices ? options.devices : CpuDevices())(count));
  InProcessOptions in_process;
  for (const ComputeDevice& on : computes) {
    if (on.memory != nullptr) in_process.devices.push_back(on.memory);
  }
  auto communicators = MakeInProcessCommunicators(count, in_process);
  DecodeOptions decode;
  decode.plan = &options.plan;
  decode.prompts = &options.prompts;
  decode.choose = [&](int request, int64_t position, absl::Span<const float> logits) {
    return ChooseToken(logits, options.temperature, options.seed, request, position);
  };
  std::vector<std::unique_ptr<DecodeDevice>> devices;
  std::vector<DeviceSetup> setups(count);
  for (int d = 0; d < count; ++d) {
    devices.push_back(std::make_unique<DecodeDevice>(computes[d]));
    DecodeDevice& device = *devices[d];
    PIPELAB_ASSIGN_OR_RETURN(
        device.stage, DecodeStage::Create(graph, partition, d, device.backend.get(), decode));
    PIPELAB_RETURN_IF_ERROR(options.set_weights(&device.stage->parameters()));
    setups[d].arena = &device.arena;
    setups[d].communicator = std::move(communicators[d]);
    setups[d].modules.assign(1, std::vector<StageModule*>(count, nullptr));
    setups[d].modules[0][d] = device.stage.get();
  }
  Generated made;
  {
    PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                             Executor::Create(&program, std::move(setups), {}));
    PIPELAB_ASSIGN_OR_RETURN(made.trace, executor->RunStep());
  }
  for (const auto& device : devices) made.caches.push_back(device->stage->CacheBytes());
  made.tokens = devices[partition.loss_stage]->stage->chosen();
  return made;
}

}  // namespace pipelab
