#include "experiments/modern/modern_prediction.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/step/block_layout.h"
#include "pipelines/step/megatron_graph.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status Not(const Parts&... why) {
  return absl::FailedPreconditionError(absl::StrCat(why...));
}

absl::StatusOr<GptConfig> ModelOf(const ModernModel& m, const ModernRow& row) {
  GptConfig c;
  if (m.experts > 0) return Not("experts");
  if (absl::StrContains(m.attention, "swiglu")) {
    c = LlamaConfig(m.layers, m.hidden, m.heads, m.feed_forward, row.tokens, m.vocabulary);
  } else if (absl::StrContains(m.attention, "gelu") ||
             absl::StrContains(m.attention, "squared ReLU")) {
    c.layers = m.layers;
    c.hidden = m.hidden;
    c.heads = m.heads;
    c.tokens = row.tokens;
    c.feed_forward = m.feed_forward;
  } else {
    return Not("attention \"", m.attention.substr(0, m.attention.find(':')), "\"");
  }
  if (absl::StrContains(m.attention, "sliding")) return Not("attention with sliding windows");
  c.query_key_norms = absl::StrContains(m.attention, "qk norm");
  if (absl::StrContains(m.attention, "qkv bias")) c.biases = Biases::kQueryKeyValue;
  c.kv_heads = m.kv_heads;
  c.head_size = m.head_size;
  // Each device of a tensor-parallel group has as many words.
  c.vocabulary = (m.vocabulary + row.tensor - 1) / row.tensor * row.tensor;
  c.tied_embeddings = m.tied;
  return c;
}

absl::StatusOr<Sharding> ShardingOf(const ModernRow& row, int64_t copies) {
  const std::string& s = row.sharding;
  if (s == "zero0") return Sharding::kReplicated;
  if (s == "zero1" || s == "0" || s.empty() || s == "distributed optimizer") {
    return Sharding::kOptimizer;
  }
  if (s == "zero2" || s == "SHARD_GRAD_OP") return Sharding::kGradients;
  if (s == "FULL_SHARD" || s == absl::StrCat(copies)) return Sharding::kFully;
  return Not("shards over a part of the data-parallel copies");
}

absl::StatusOr<Recompute> RecomputeOf(const std::string& word) {
  if (word.empty() || word == "none") return Recompute::kNone;
  if (absl::StartsWith(word, "full layer")) return Recompute::kBlocks;
  // Fused attention keeps no scores: nothing else of its core is there to be computed again.
  if (word == "selective:core_attn") return Recompute::kNone;
  return Not("recomputation \"", word, "\"");
}

// Scales of blocks of 32 numbers (MXFP8) cost what those of a tensor do.
bool IsFp8(const ModernRow& row) { return row.precision == "FP8" || row.precision == "MXFP8"; }

absl::Status CheckDegrees(const ModernRow& row) {
  if (absl::StrContains(row.id, "-lora-")) return Not("adapters alone are trained (LoRA)");
  if (row.precision != "BF16" && !IsFp8(row)) return Not("precision ", row.precision);
  if (absl::StrContains(row.kernels, "cpu_offloading")) return Not("activations on the host");
  if (row.expert > 1) return Not("expert parallelism");
  if (row.batch == 0 || row.micro_batch == 0) return Not("batch or micro-batch not printed");
  if (!row.Seconds().has_value()) return Not("no time printed");
  return absl::OkStatus();
}

absl::StatusOr<StepConfig> ConfigOf(const ModernRow& row, const GptConfig& model) {
  const int64_t grid = row.tensor * row.pipeline * row.context;
  const int64_t data = grid > 0 ? row.gpus / grid : 0;
  if (data == 0 || data * grid != row.gpus) return Not("grid that is not the GPUs");
  if (row.batch % (data * row.micro_batch) != 0) return Not("batch that the grid does not divide");
  if (model.kv_heads % row.tensor != 0) return Not("more devices than heads of keys");
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
  c.overlap_pipeline = false;
  c.layout = EvenBlocks(model.layers, row.pipeline * std::max<int64_t>(1, row.virtual_stages));
  PIPELAB_ASSIGN_OR_RETURN(c.sharding, ShardingOf(row, c.copies()));
  if (c.copies() == 1) c.sharding = Sharding::kReplicated;
  GatherByBlock(model.layers, &c);
  PIPELAB_ASSIGN_OR_RETURN(c.recompute, RecomputeOf(row.recompute));
  return c;
}

}  // namespace

absl::StatusOr<ModernStep> StepOfRow(const ModernRow& row, const std::vector<ModernModel>& models,
                                     const ModernMachines& machines) {
  const auto machine = machines.by_gpu.find(row.gpu);
  if (machine == machines.by_gpu.end()) return Not("GPU ", row.gpu);
  const auto model = std::find_if(models.begin(), models.end(),
                                  [&](const ModernModel& m) { return m.id == row.model; });
  if (model == models.end()) return Not("model of an unknown shape");
  PIPELAB_RETURN_IF_ERROR(CheckDegrees(row));
  ModernStep step;
  PIPELAB_ASSIGN_OR_RETURN(step.model, ModelOf(*model, row));
  PIPELAB_ASSIGN_OR_RETURN(step.config, ConfigOf(row, step.model));
  const bool nanotron = row.group == "nanotron";
  step.cluster = nanotron ? machines.nanotron : machine->second;
  step.type = IsFp8(row) ? NumberType::kFp8 : NumberType::kBf16;
  if (step.cluster.device.peaks.count(step.type) == 0) return Not("precision ", row.precision);
  // Weights and gradients in 2 bytes, gradients summed in 4; of the optimizer, weights and Adam's
  // two in 4.
  if (nanotron) step.optimizer_tensors = 3;
  if (row.gpus > step.cluster.max_devices()) return Not("more GPUs than the machine has");
  return step;
}

absl::StatusOr<StepPrediction> Predict(const ModernStep& step) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildGpt(step.model));
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, step.config.split(), "tensor parallelism"));
  const GroupedModel model =
      GroupByName(MegatronGraph(std::move(graph), AttentionKernels::kFused, step.type));
  StepModel on;
  on.model = &model;
  on.cluster = &step.cluster;
  on.type = step.type;
  on.optimizer_tensors = step.optimizer_tensors;
  return PredictStep(on, step.config);
}

}  // namespace pipelab
