// A recipe as Megatron-LM's options.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pipelines/recipes/layer_pattern.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/megatron_parts.h"
#include "pipelines/recipes/padded_vocabulary.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kMegatronName = "Megatron-LM";

absl::Status CheckModel(const GptConfig& m) {
  const bool latent = m.latent.rank > 0;
  if (m.positions == Positions::kLearned && m.rotary_base > 0 && !latent) {
    return RecipeError("positions: ", kMegatronName, " has a table or rotary ones, not both");
  }
  if (m.post_norms || m.window_rotary_base > 0) {
    return RecipeError(m.post_norms ? "post_norms: " : "window_rotary_base: ", kMegatronName,
                       " has norms in front of half blocks and one rotary base");
  }
  if (m.output_bias) return RecipeError("output_bias: ", kMegatronName, "'s logits have none");
  const ExpertChoice& e = m.experts;
  if (!HasExperts(m)) return absl::OkStatus();
  if (!e.sigmoid && e.normalized && e.chosen == 1) {
    return RecipeError("experts: ", kMegatronName,
                       " takes one expert of a softmax by its own score");
  }
  if (e.sigmoid && e.normalized != (e.chosen > 1)) {
    return RecipeError("experts: ", kMegatronName, "'s weights are shares of the chosen ",
                       "sigmoids where a token takes several experts");
  }
  return absl::OkStatus();
}

void AddLatent(const LatentHeads& l, Settings* s) {
  s->Add("--multi-latent-attention");
  if (l.query_rank > 0) s->Add("--q-lora-rank", l.query_rank);
  s->Add("--kv-lora-rank", l.rank);
  s->Add("--qk-head-dim", l.nope_size);
  s->Add("--qk-pos-emb-head-dim", l.rope_size);
  s->Add("--v-head-dim", l.value_size);
}

// One of a size, in all layers or some; a window that covers the samples is none.
absl::Status AddWindows(const GptConfig& m, Settings* s) {
  int64_t window = 0;
  std::vector<bool> layers;
  for (int64_t i = 0; i < m.layers && !m.windows.empty(); ++i) {
    const int64_t of_layer = m.windows[i % static_cast<int64_t>(m.windows.size())];
    layers.push_back(0 < of_layer && of_layer < m.tokens);
    if (!layers.back()) continue;
    if (window > 0 && window != of_layer) {
      return RecipeError("windows of ", window, " and ", of_layer, ": ", kMegatronName,
                         " has one size of windows");
    }
    window = of_layer;
  }
  if (window == 0) return absl::OkStatus();
  s->Add("--window-size", absl::StrCat(window - 1, ",0"));
  if (std::find(layers.begin(), layers.end(), false) != layers.end()) {
    s->Add("--window-attn-skip-freq", FormatLayerPattern(layers));
  }
  return absl::OkStatus();
}

void AddExchanges(const StepConfig& c, Settings* s) {
  const bool flex = c.dispatch == Dispatch::kOncePerNode;
  s->Add("--moe-token-dispatcher-type", flex ? "flex" : "alltoall");
  s->AddIf(flex, "--moe-enable-deepep");
  s->AddIf(c.exchanges != Exchanges::kWaited, "--overlap-moe-expert-parallel-comm");
  s->AddIf(c.exchanges == Exchanges::kBesideDelayed, "--delay-wgrad-compute");
}

void AddMegatronExperts(const Recipe& r, Settings* s) {
  const GptConfig& m = r.model;
  const ExpertChoice& e = m.experts;
  const int64_t width = ExpertWidth(m);
  s->Add("--num-experts", e.experts);
  s->Add("--moe-router-topk", e.chosen);
  s->Add("--moe-ffn-hidden-size", width);
  if (e.shared > 0) s->Add("--moe-shared-expert-intermediate-size", e.shared * width);
  if (m.dense_blocks > 0 || !m.expert_blocks.empty()) {
    std::vector<bool> layers;
    for (int64_t i = 0; i < m.layers; ++i) layers.push_back(m.HasExperts(i));
    s->Add("--moe-layer-freq", FormatLayerPattern(layers));
  }
  s->Add("--moe-router-score-function", e.sigmoid ? "sigmoid" : "softmax");
  s->AddIf(!e.sigmoid && !e.normalized, "--moe-router-pre-softmax");
  if (e.scale != 1) s->Add("--moe-router-topk-scaling-factor", e.scale);
  if (e.nodes > 0) {
    s->Add("--moe-router-num-groups", e.nodes);
    s->Add("--moe-router-group-topk", e.most_nodes);
  }
  s->Add("--moe-router-load-balancing-type", e.balance > 0 ? "seq_aux_loss" : "none");
  if (e.balance > 0) s->Add("--moe-aux-loss-coeff", e.balance);
  if (e.capacity_factor > 0) {
    s->Add("--moe-expert-capacity-factor", e.capacity_factor);
    s->Add("--moe-token-drop-policy", "position");
  }
  AddExchanges(r.config, s);
  s->Add("--moe-grouped-gemm");
}

absl::Status AddMegatronModel(const Recipe& r, Settings* s) {
  const GptConfig& m = r.model;
  PIPELAB_RETURN_IF_ERROR(CheckModel(m));
  const bool latent = m.latent.rank > 0;
  const int64_t head_size = m.head_size == 0 ? m.hidden / m.heads : m.head_size;
  s->Add("--num-layers", m.layers);
  s->Add("--hidden-size", m.hidden);
  s->Add("--ffn-hidden-size", m.feed_forward_width());
  s->Add("--num-attention-heads", m.heads);
  if (m.kv_heads > 0 && m.kv_heads < m.heads) {
    s->Add("--group-query-attention");
    s->Add("--num-query-groups", m.kv_heads);
  }
  if (head_size * m.heads != m.hidden) s->Add("--kv-channels", head_size);
  if (latent) AddLatent(m.latent, s);
  s->AddIf(latent || m.query_key_norms, "--qk-layernorm");
  if (m.sinks) s->Add("--softmax-type", "learnable");
  if (m.further_tokens > 0) s->Add("--mtp-num-layers", m.further_tokens);
  PIPELAB_RETURN_IF_ERROR(AddWindows(m, s));
  s->Add("--seq-length", m.tokens);
  s->Add("--max-position-embeddings", m.tokens);
  s->Add("--position-embedding-type", m.positions == Positions::kLearned ? "learned_absolute"
                                      : m.rotary_base > 0                ? "rope"
                                                                         : "none");
  if (m.rotary_base > 0) s->Add("--rotary-base", static_cast<int64_t>(m.rotary_base));
  s->Add("--normalization", m.norm == NormKind::kRms ? "RMSNorm" : "LayerNorm");
  s->AddIf(m.feed_forward_kind == FeedForwardKind::kSwiGlu, "--swiglu");
  s->AddIf(m.feed_forward_kind == FeedForwardKind::kGeGlu, "--quick-geglu");
  s->AddIf(m.biases != Biases::kAll, "--disable-bias-linear");
  s->AddIf(m.biases == Biases::kQueryKeyValue, "--add-qkv-bias");
  s->AddIf(!m.tied_embeddings, "--untie-embeddings-and-output-weights");
  s->Add("--vocab-size", m.vocabulary);
  if (m.vocabulary % (kVocabularyMultiple * r.config.tensor) != 0)
    s->Add("--make-vocab-size-divisible-by", 1);
  s->Add("--hidden-dropout", m.dropout);
  s->Add("--attention-dropout", m.dropout);
  if (r.attention == AttentionImplementation::kUnfused) s->Add("--attention-backend", "unfused");
  s->AddIf(r.loss != LossImplementation::kUnfused, "--cross-entropy-loss-fusion");
  if (r.loss == LossImplementation::kTransformerEngine) s->Add("--cross-entropy-fusion-impl", "te");
  AddMegatronLaunches(r.kernels, s);
  if (m.positions == Positions::kSinusoidal) {
    s->Note("positions: Megatron-LM has no sinusoidal ones; it has none here");
  }
  if (HasExperts(m)) AddMegatronExperts(r, s);
  return absl::OkStatus();
}

// The weights of one device that are gathered a block at a time have no stages in Megatron-LM.
bool HasStages(const StepConfig& c) { return c.pipeline > 1; }

void AddStages(const Recipe& r, int64_t each, Settings* s) {
  const StepConfig& c = r.config;
  const auto even = EvenStages(r.model.layers, c.pipeline * each);
  if (!even.ok() || *even != r.stages) {
    s->Add("--pipeline-model-parallel-layout", FormatMegatronLayout(r.stages));
  } else if (each > 1) {
    s->Add("--num-virtual-stages-per-pipeline-rank", each);
  }
  if (each == 1) return;
  if (c.group_size > 0) s->Add("--microbatch-group-size-per-virtual-pipeline-stage", c.group_size);
  s->AddIf(!c.overlap_pipeline, "--no-overlap-p2p-communication");
  s->AddIf(c.overlap_pipeline && !c.steady_overlap, "--overlap-p2p-communication-warmup-flush");
}

absl::Status AddParallelism(const Recipe& r, Settings* s) {
  const StepConfig& c = r.config;
  const int64_t each = HasStages(c) ? static_cast<int64_t>(r.stages.size()) / c.pipeline : 1;
  if (HasStages(c) && (c.scheme != "interleaved" || each < 2) &&
      (c.scheme != "1f1b" && (c.scheme != "interleaved" || each != 1))) {
    return RecipeError("scheme=", c.scheme, ": ", kMegatronName,
                       " runs 1F1B and interleaved stages alone; scheme=",
                       each > 1 ? "interleaved" : "1f1b", " would do");
  }
  if (c.ranks == RankOrder::kTensorDataMirrored) {
    return RecipeError("ranks=", RankOrderName(c.ranks), ": ", kMegatronName,
                       " has no such order of ranks; ranks=tp-dp-pp would do");
  }
  s->Add("--tensor-model-parallel-size", c.tensor);
  s->Add("--pipeline-model-parallel-size", c.pipeline);
  if (c.context > 1) {
    s->Add("--context-parallel-size", c.context);
    const ContextExchange exchange = c.context_exchange;
    // Transformer Engine 2.11 has no such exchange (SimuMax 1.2, docs/b200).
    if (exchange == ContextExchange::kHeads && r.model.latent.rank > 0) {
      return RecipeError("context_exchange=heads: ", kMegatronName,
                         " does not exchange heads of latent attention; context_exchange=ring "
                         "would do");
    }
    s->Add("--cp-comm-type", exchange == ContextExchange::kHeads  ? "a2a"
                             : exchange == ContextExchange::kRing ? "p2p"
                                                                  : "all_gather");
  }
  if (HasExperts(r.model)) {
    if (c.tensor > 1 && !c.sequence_parallel) {
      return RecipeError("T=", c.tensor, ": with experts ", kMegatronName,
                         " needs sequence parallelism; add sequence");
    }
    s->Add("--expert-model-parallel-size", c.experts);
    if (c.whole_experts && c.tensor > 1) s->Add("--expert-tensor-parallel-size", 1);
  }
  if (HasStages(c)) AddStages(r, each, s);
  s->AddIf(c.sequence_parallel, "--sequence-parallel");
  s->AddIf(c.sequence_parallel && c.overlap_tensor, "--tp-comm-overlap");
  s->AddIf(c.ranks == RankOrder::kTensorPipelineData, "--use-tp-pp-dp-mapping");
  if (each == 1 && c.overlap_pipeline && c.pipeline > 1) {
    s->Note("messages: Megatron-LM's 1F1B waits for them; no_pipeline_overlap prices that");
  }
  if (c.pipeline > 1 && c.divided_messages()) {
    s->Note(
        "messages: each rank of a tensor-parallel group sends all rows in Megatron Core; "
        "whole_messages prices that");
  }
  return absl::OkStatus();
}

absl::Status AddSharding(const StepConfig& c, Settings* s) {
  if (ShardsGradients(c.sharding)) {
    if (c.pipeline > 1) {
      return RecipeError("sharding=", ShardingName(c.sharding), ": ", kMegatronName,
                         "'s FSDP has no pipeline; sharding=optimizer would do");
    }
    s->Add("--use-megatron-fsdp");
    s->Add("--data-parallel-sharding-strategy",
           c.sharding == Sharding::kFully ? "optim_grads_params" : "optim_grads");
  }
  s->AddIf(c.sharding == Sharding::kOptimizer, "--use-distributed-optimizer");
  if (c.shards > 0) s->Add("--num-distributed-optimizer-instances", c.copies() / c.shards);
  if (!c.overlap_data) return absl::OkStatus();
  s->Add("--overlap-grad-reduce");
  s->AddIf(c.sharding != Sharding::kReplicated, "--overlap-param-gather");
  return absl::OkStatus();
}

absl::Status AddRecomputation(const StepConfig& c, Settings* s) {
  if (c.recompute == Recompute::kSelective) {
    if (absl::StrContains(c.modules, "every_second_product")) {
      return RecipeError("modules=", c.modules, ": ", kMegatronName,
                         " rebuilds no single products; recompute=blocks would do");
    }
    s->AddIf(c.modules.empty(), "--recompute-activations");
    if (c.modules.empty()) return absl::OkStatus();
    s->Add("--recompute-granularity", "selective");
    s->AddWords("--recompute-modules", absl::StrSplit(c.modules, '+'));
  }
  if (c.recompute != Recompute::kBlocks) return absl::OkStatus();
  const int blocks = c.rebuilt_blocks;
  if (blocks > 0 && c.rebuilt_together > 1) {
    return RecipeError("rebuilt_together=", c.rebuilt_together, ": ", kMegatronName,
                       " rebuilds some blocks one by one, or all in groups; leave out one of both");
  }
  s->Add("--recompute-granularity", "full");
  s->Add("--recompute-method", blocks > 0 ? "block" : "uniform");
  s->Add("--recompute-num-layers", blocks > 0 ? blocks : c.rebuilt_together);
  return absl::OkStatus();
}

// Settings of narrow numbers. Weights have 2 bytes there; what has 4 here moves as 2.
void AddMegatronState(const Recipe& r, Settings* s) {
  const StateNumbers& n = r.config.state;
  const bool fp16 = r.type == NumberType::kFp16, wide = n.narrow() && n.gradients == 4;
  s->AddIf(fp16 && wide, "--accumulate-allreduce-grads-in-fp32");
  s->AddIf(!fp16 && !wide, "--grad-reduce-in-bf16");
  NoteState(n, {/*weights=*/2, wide ? 4 : 2}, kMegatronName, s);
}

void AddTypes(const Recipe& r, Settings* s) {
  s->AddIf(r.type == NumberType::kFp16, "--fp16");
  s->AddIf(r.type == NumberType::kBf16 || r.type == NumberType::kFp8, "--bf16");
  if (r.type == NumberType::kFp8) s->Add("--fp8-format", "hybrid");
  if (r.type != NumberType::kFp32) AddMegatronState(r, s);
  if (r.optimizer_tensors == 2) return;
  s->Add("--optimizer", "sgd");
  if (r.optimizer_tensors == 0) s->Add("--sgd-momentum", 0);
}

}  // namespace

absl::StatusOr<Settings> MegatronSettings(const Recipe& r) {
  const StepConfig& c = r.config;
  PIPELAB_RETURN_IF_ERROR(CheckExportable(
      c, kMegatronName,
      {"C", "context_exchange", "E", "whole_experts", "dispatch", "exchanges", "shards", "modules",
       "rebuilt", "rebuilt_together", "tensor_overlap", "state"}));
  Settings s(SettingsForm::kFlags);
  PIPELAB_RETURN_IF_ERROR(AddMegatronModel(r, &s));
  PIPELAB_RETURN_IF_ERROR(AddParallelism(r, &s));
  PIPELAB_RETURN_IF_ERROR(AddSharding(c, &s));
  PIPELAB_RETURN_IF_ERROR(AddRecomputation(c, &s));
  s.Add("--micro-batch-size", c.micro_batch_size);
  s.Add("--global-batch-size", c.batch());
  AddTypes(r, &s);
  return s;
}

}  // namespace pipelab
