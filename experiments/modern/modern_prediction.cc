#include "experiments/modern/modern_prediction.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "experiments/modern/flash_attention.h"
#include "experiments/modern/megatron_stages.h"
#include "experiments/modern/modern_assumptions.h"
#include "experiments/modern/modern_model.h"
#include "experiments/modern/nanotron_stages.h"
#include "models/specs/composer_kernels.h"
#include "models/specs/megatron_kernels.h"
#include "models/specs/recomputed_modules.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/step/block_layout.h"
#include "pipelines/step/megatron_graph.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status NotPredicted(const Parts&... why) {
  return absl::FailedPreconditionError(absl::StrCat(why...));
}

// A number says how many ranks divide the weights. torchtitan prints it without the ranks of
// context parallelism, which shard too.
absl::Status TakeSharding(const ModernRow& row, StepConfig* c) {
  const std::string& s = row.sharding;
  const int copies = c->copies();
  int64_t ranks = 0;
  if (s == "zero0") {
    c->sharding = Sharding::kReplicated;
  } else if (s == "zero1" || s == "0" || s.empty() || s == "distributed optimizer") {
    c->sharding = Sharding::kOptimizer;
  } else if (s == "zero2" || s == "SHARD_GRAD_OP") {
    c->sharding = Sharding::kGradients;
  } else if (s == "FULL_SHARD") {
    c->sharding = Sharding::kFully;
  } else if (absl::SimpleAtoi(s, &ranks) && ranks > 0) {
    if (row.group == "titan") ranks *= row.context;
    if (copies % ranks != 0) return NotPredicted("shards that do not divide the copies");
    c->sharding = ranks == 1 ? Sharding::kReplicated : Sharding::kFully;
    if (ranks > 1 && ranks < copies) c->shards = static_cast<int>(ranks);
  } else {
    return NotPredicted("sharding \"", s, "\"");
  }
  if (copies == 1) c->sharding = Sharding::kReplicated;
  return absl::OkStatus();
}

// Scales of blocks of 32 numbers (MXFP8) cost what those of a tensor do.
bool IsFp8(const ModernRow& row) {
  return row.precision == "FP8" || row.precision == "MXFP8" || row.precision == "NVFP4";
}

// Products in 4 bits at the rate of the data sheets, without sparsity; all else as under fp8.
absl::Status TakeFp4(const ModernRow& row, DeviceSpec* device) {
  const bool ultra = row.gpu == "GB300", base = row.gpu == "GB200";
  if (!ultra && !base) return NotPredicted("precision NVFP4 on ", row.gpu);
  device->peaks[NumberType::kFp8] = {FlopsPerSecond(ultra ? 15e15 : 10e15),
                                     "data sheets of GB200 and GB300, dense"};
  DropRates(OperationKind::kMatmul, NumberType::kFp8, device);
  return absl::OkStatus();
}

// CUDA graphs that do not say their modules are of all.
LaunchedKernels KernelsOf(const ModernRow& row) {
  const absl::string_view kernels = row.kernels;
  LaunchedKernels k;
  k.fused_routers = absl::StrContains(kernels, "fused_router");
  k.fused_experts = absl::StrContains(kernels, "fused_experts");
  constexpr absl::string_view kModules = "cuda_graph=transformer_engine(";
  const size_t at = kernels.find(kModules);
  if (at == absl::string_view::npos) {
    k.graphed_step =
        absl::StrContains(kernels, "cuda_graph=") && !absl::StrContains(kernels, "cuda_graph=none");
    return k;
  }
  const absl::string_view behind = kernels.substr(at + kModules.size());
  for (absl::string_view module : absl::StrSplit(behind.substr(0, behind.find(')')), ',')) {
    for (const GraphedModule& known : kGraphedModules) k.*known.graphed |= module == known.name;
  }
  return k;
}

absl::Status CheckDegrees(const ModernRow& row) {
  if (row.precision != "BF16" && !IsFp8(row)) return NotPredicted("precision ", row.precision);
  if (absl::StrContains(row.kernels, "cpu_offloading"))
    return NotPredicted("activations on the host");
  if (row.batch == 0 || row.micro_batch == 0)
    return NotPredicted("batch or micro-batch not printed");
  if (!row.Seconds().has_value()) return NotPredicted("no time printed");
  return absl::OkStatus();
}

absl::Status CheckGrid(const ModernRow& row, const GptConfig& model) {
  const int64_t grid = row.tensor * row.pipeline * row.context;
  const int64_t data = grid > 0 ? row.gpus / grid : 0;
  if (data == 0 || data * grid != row.gpus) return NotPredicted("grid that is not the GPUs");
  if (row.batch % (data * row.micro_batch) != 0)
    return NotPredicted("batch that the grid does not divide");
  if (model.kv_heads % row.tensor != 0) return NotPredicted("more devices than heads of keys");
  return absl::OkStatus();
}

// DeepEP's and HybridEP's dispatchers send a token once to each node, and there to each device.
void TakeExchanges(const ModernRow& row, StepConfig* c) {
  if (c->experts == 1) return;
  const std::string kernels = absl::AsciiStrToLower(row.kernels);
  for (const char* dispatcher : {"hybridep", "deepep"}) {
    if (absl::StrContains(kernels, dispatcher)) c->dispatch = Dispatch::kOncePerNode;
  }
  if (absl::StrContains(kernels, "ep_overlap=on")) c->exchanges = Exchanges::kBeside;
  if (absl::StrContains(kernels, "delay-wgrad")) c->exchanges = Exchanges::kBesideDelayed;
}

StepConfig GridOf(const ModernRow& row, const GptConfig& model) {
  const int64_t data = row.gpus / (row.tensor * row.pipeline * row.context);
  StepConfig c;
  c.scheme = row.virtual_stages > 1 ? "interleaved" : "1f1b";
  c.pipeline = static_cast<int>(row.pipeline);
  c.tensor = static_cast<int>(row.tensor);
  c.context = static_cast<int>(row.context);
  c.data = static_cast<int>(data);
  c.virtual_stages = row.virtual_stages > 1 ? static_cast<int>(row.virtual_stages) : 0;
  c.micro_batch_size = row.micro_batch;
  c.micro_batches = static_cast<int>(row.batch / (data * row.micro_batch));
  c.sequence_parallel = row.tensor > 1;
  // Megatron-Core's cp_comm_type is p2p by default, and NVIDIA's recipes keep it.
  const bool megatron = row.group == "dgxc" || row.group == "mbridge" || row.group == "mlperf" ||
                        row.group == "mcore";
  if (megatron && row.context > 1) {
    c.context_exchange = row.exchanges_heads ? ContextExchange::kHeads : ContextExchange::kRing;
  }
  if (row.whole_pipelines) c.ranks = RankOrder::kTensorPipelineData;
  c.experts = static_cast<int>(row.expert);
  // Megatron-Bridge and AutoModel leave experts whole; what came before them splits them as all
  // else, which the rows of Grok on GB200s print.
  const bool split = row.group == "dgxc" || row.group == "mcore";
  c.whole_experts = row.expert > 1 && row.tensor > 1 && !split;
  TakeExchanges(row, &c);
  c.overlap_pipeline = c.steady_overlap = IsMegatronCore(row) && row.virtual_stages > 1;
  c.overlap_tensor = row.tensor > 1 && OverlapsTensor(row);
  const int64_t stages = row.pipeline * std::max<int64_t>(1, row.virtual_stages);
  c.layout = IsMegatronCore(row) ? MegatronLayout(model.layers, model.further_tokens, stages)
                                 : EvenBlocks(model.layers, stages);
  return c;
}

// Megatron-LM's example of 175B and torchtitan's pipelines have micro-batches of one sample, where
// nothing else is said.
int64_t DefaultMicroBatch(const ModernRow& row) {
  return row.group == "mlm" || row.group == "titan" ? 1 : 0;
}

// NVIDIA's recipes for speed have them beside queries, keys and values alone (NeMo and
// Megatron-Bridge, llama3 recipes), AutoModel beside all products. What they take hardly depends on
// the rank.
Adapters AdaptersOf(const ModernRow& row, NumberType type) {
  return {/*rank=*/16, /*all_products=*/row.group == "automodel", ProductInputsUnder(type)};
}

// [pipeline device] Of weights that are not trained, which keep 2 bytes a number.
std::vector<Bytes> FrozenWeights(const ModelGraph& trained, const Step& step) {
  std::vector<Bytes> bytes(step.config.pipeline);
  const Placement& placement = step.program.schedule.placement;
  for (int stage = 0; stage < step.partition.num_stages(); ++stage) {
    const int device = placement.groups[0][stage][0] / step.members;
    for (const int layer : step.partition.layers[stage]) {
      for (const ParameterSpec& p : trained.layers[layer].parameters) {
        bytes[device] += Bytes(2 * p.size_on(step.config.split()));
      }
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<ModernStep> StepOfRow(const ModernRow& printed,
                                     const std::vector<ModernModel>& models,
                                     const ModernMachines& machines) {
  ModernRow row = printed;
  ModernStep step;
  const auto machine = machines.by_gpu.find(row.gpu);
  if (machine == machines.by_gpu.end()) return NotPredicted("GPU ", row.gpu);
  const ModernModel* model = FindModernModel(models, row.model);
  if (model == nullptr) return NotPredicted("model of an unknown shape");
  if (row.micro_batch == 0) row.micro_batch = DefaultMicroBatch(row);
  step.assumed = row.micro_batch != printed.micro_batch;
  PIPELAB_RETURN_IF_ERROR(CheckDegrees(row));
  PIPELAB_ASSIGN_OR_RETURN(step.model, ModelOf(*model, row));
  PIPELAB_RETURN_IF_ERROR(CheckGrid(row, step.model));
  step.config = GridOf(row, step.model);
  PIPELAB_RETURN_IF_ERROR(TakeSharding(row, &step.config));
  GatherByBlock(step.model.layers, &step.config);
  PIPELAB_RETURN_IF_ERROR(TakeRecomputation(row, &step));
  const bool nanotron = row.group == "nanotron";
  step.cluster = nanotron ? machines.nanotron : machine->second;
  if (nanotron || row.group == "foundry" || row.group == "titan") {
    // llm-foundry's "gpu" dependencies name flash-attn 1.0.3 and 1.0.9 when its tables were added
    // (setup.py; May 2023 to January 2024). The second version was another choice, "gpu-flash2".
    TakeFlashAttention2(row.gpu, model->head_size, row.tokens, &step.cluster,
                        row.group == "foundry" ? kFlashAttention1Share : 1);
  }
  step.type = IsFp8(row) ? NumberType::kFp8 : NumberType::kBf16;
  if (step.cluster.device.peaks.count(step.type) == 0)
    return NotPredicted("precision ", row.precision);
  if (row.precision == "NVFP4") PIPELAB_RETURN_IF_ERROR(TakeFp4(row, &step.cluster.device));
  if (row.trains_adapters()) step.adapters = AdaptersOf(row, step.type);
  if (step.adapters.has_value() && ShardsGradients(step.config.sharding)) {
    return NotPredicted("adapters beside sharded weights");
  }
  step.config.state = StateNumbersOf(row);
  // Weights and gradients in 2 bytes, gradients summed in 4; of the optimizer, weights and Adam's
  // two in 4.
  if (nanotron) {
    step.optimizer_tensors = 3;
    if (row.pipeline > 1) step.config.layout = NanotronLayout(*model, row.pipeline);
    TakeNanotronSums(step.model.layers, &step.config);
  }
  step.eager = nanotron;
  step.composer = row.group == "foundry";
  step.kernels = KernelsOf(row);
  // Megatron-Bridge's scripts set it for whole models (scripts/performance, since its 0.1.0).
  const bool bridge = row.group == "mbridge" && !row.trains_adapters();
  if (row.loss_in_place || bridge) step.loss = LossImplementation::kTransformerEngine;
  // The experts of gpt-oss have biases under Megatron-Core.
  step.expert_biases = row.group == "mbridge" && absl::StrContains(model->attention, "biases");
  if (row.gpus > step.cluster.max_devices()) return NotPredicted("more GPUs than the machine has");
  // Last, since it predicts.
  PIPELAB_RETURN_IF_ERROR(InferRecomputation(row, &step));
  return step;
}

namespace {

absl::StatusOr<ModelGraph> GraphOf(const ModernStep& step) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildGpt(step.model));
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, step.config.split(), "tensor parallelism"));
  const auto with_kernels = step.eager || step.composer ? MegatronGraph : MegatronCoreGraph;
  graph = with_kernels(std::move(graph), AttentionImplementation::kFused, step.type, step.loss);
  if (step.eager) graph = WithSumsBesideWeights(WithEagerKernels(std::move(graph)));
  if (step.expert_biases) graph = WithExpertBiases(std::move(graph));
  if (step.composer) graph = WithComposerKernels(std::move(graph));
  graph = WithLaunchedKernels(std::move(graph), step.kernels);
  return WithRecomputedModules(std::move(graph), step.recomputed, ProductInputsUnder(step.type));
}

}  // namespace

absl::StatusOr<ModernStepModel> ModernStepModel::Of(const ModernStep& step) {
  ModernStepModel made;
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, GraphOf(step));
  if (step.adapters.has_value()) {
    made.trained_ = graph;
    graph = WithAdapters(std::move(graph), *step.adapters);
  }
  made.model_ = GroupByName(std::move(graph));
  return made;
}

StepModel ModernStepModel::On(const ModernStep& step) const {
  StepModel on;
  on.model = &model_;
  on.cluster = &step.cluster;
  on.type = step.type;
  on.optimizer_tensors = step.optimizer_tensors;
  return on;
}

absl::StatusOr<StepPrediction> ModernStepModel::Predict(const ModernStep& step) const {
  PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, PredictStep(On(step), step.config));
  if (!step.adapters.has_value()) return p;
  p.largest_device = Bytes(0);
  const std::vector<Bytes> frozen = FrozenWeights(trained_, p.step);
  for (size_t d = 0; d < p.devices.size(); ++d) {
    p.devices[d].memory += frozen[d];
    p.largest_device = std::max(p.largest_device, p.devices[d].memory);
  }
  p.fits = p.largest_device <= p.step.device_memory;
  return p;
}

absl::StatusOr<StepPrediction> Predict(const ModernStep& step) {
  PIPELAB_ASSIGN_OR_RETURN(const ModernStepModel model, ModernStepModel::Of(step));
  return model.Predict(step);
}

}  // namespace pipelab
