// A recipe as torchtitan's keys.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/torchtitan_names.h"
#include "pipelines/recipes/torchtitan_stages.h"
#include "pipelines/recipes/torchtitan_toml.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kTorchtitanName = "torchtitan";

std::string TomlString(absl::string_view word) { return absl::StrCat("\"", word, "\""); }

auto RouterOf(const ExpertChoice& e) {
  return std::make_tuple(e.experts == 0, e.nodes, e.most_nodes, e.sigmoid, e.normalized, e.scale,
                         e.capacity_factor, e.balance);
}

auto LatentOf(const LatentHeads& l) {
  return std::make_tuple(l.query_rank, l.rank, l.nope_size, l.rope_size, l.value_size);
}

int64_t HeadSize(const GptConfig& m) {
  return m.head_size > 0 || m.latent.rank > 0 ? m.head_size : m.hidden / m.heads;
}

// Whether two are one model, by all sizes but the samples' length.
bool SameModel(const GptConfig& a, const GptConfig& b) {
  return ModelText(a) == ModelText(b) && a.norm == b.norm && a.positions == b.positions &&
         a.rotary_base == b.rotary_base && a.biases == b.biases && a.dropout == b.dropout &&
         a.tied_embeddings == b.tied_embeddings && a.output_bias == b.output_bias &&
         a.post_norms == b.post_norms && a.window_rotary_base == b.window_rotary_base &&
         HeadSize(a) == HeadSize(b) && LatentOf(a.latent) == LatentOf(b.latent) &&
         RouterOf(a.experts) == RouterOf(b.experts);
}

absl::Status AddTorchtitanModel(const Recipe& r, Settings* s) {
  for (const TorchtitanModel& m : TorchtitanModels()) {
    GptConfig sizes = r.model;
    sizes.tokens = m.config.tokens;
    if (!SameModel(m.config, sizes)) continue;
    s->Add("model.name", TomlString(m.name));
    s->Add("model.flavor", TomlString(m.flavor));
    if (r.type == NumberType::kFp8) s->Add("model.converters", "[\"float8\"]");
    return absl::OkStatus();
  }
  return RecipeError(
      kTorchtitanName, ": no model of ", ModelText(r.model),
      "; llama3's 8B, 70B and 405B, qwen3's and deepseek_v3's 16B, 236B and 671B, without "
      "dropout, would do");
}

absl::Status AddTorchtitanExperts(const StepConfig& c, Settings* s) {
  if (c.experts == 1) return absl::OkStatus();
  const bool whole = c.whole_experts && c.tensor > 1;
  const int64_t unit = int64_t{c.context} * (whole ? c.tensor : 1);
  const int64_t shard = ShardsGradients(c.sharding) ? c.sharing() / c.context : 1;
  if (c.experts % unit != 0 || shard * unit % c.experts != 0) {
    return RecipeError(
        "E=", c.experts, ": ", kTorchtitanName,
        " divides experts over what shards weights; sharding=fully and an E that is ", unit,
        " times a divisor of its ranks would do");
  }
  s->Add("parallelism.expert_parallel_degree", c.experts);
  s->Add("parallelism.expert_tensor_parallel_degree", whole ? 1 : c.tensor);
  return absl::OkStatus();
}

absl::Status AddPipeline(const Recipe& r, Settings* s) {
  const StepConfig& c = r.config;
  s->Add("parallelism.pipeline_parallel_degree", c.pipeline);
  if (c.pipeline == 1) return absl::OkStatus();
  const int64_t stages = static_cast<int64_t>(r.stages.size());
  const auto* schedule =
      std::find_if(std::begin(kTorchtitanSchedules), std::end(kTorchtitanSchedules),
                   [&](const TorchtitanSchedule& t) { return t.scheme == c.scheme; });
  if (schedule == std::end(kTorchtitanSchedules)) {
    return RecipeError("scheme=", c.scheme, ": ", kTorchtitanName, " has no such schedule; scheme=",
                       stages > c.pipeline ? "interleaved" : "1f1b", " would do");
  }
  if (HasOption(c.scheme, kSplitBackward) && !c.split_head) {
    return RecipeError("scheme=", c.scheme, ": ", kTorchtitanName,
                       " splits the head's backward, too; add split_head");
  }
  if (HasOption(c.scheme, kPassTimes) && !c.published_order) {
    return RecipeError("scheme=", c.scheme, ": ", kTorchtitanName,
                       " has one order whatever passes take; add published");
  }
  if (c.group_size > 0) {
    return RecipeError("group=", c.group_size, ": ", kTorchtitanName,
                       " chooses groups itself; leave it out");
  }
  s->Add("parallelism.pipeline_parallel_schedule", TomlString(schedule->name));
  s->Add("parallelism.pipeline_parallel_microbatch_size", c.micro_batch_size);
  const int64_t usual = c.pipeline * (schedule->one_stage ? 1 : 2);
  // Two layers more are counted, for the embedding and the output.
  const int64_t counted = r.model.layers + 2, each = (counted + stages - 1) / stages;
  const auto own = TorchtitanStages(r.model.layers, stages);
  const bool divided = own.ok() && *own == r.stages;
  if (divided && stages != usual && (counted + each - 1) / each == stages) {
    s->Add("parallelism.pipeline_parallel_layers_per_stage", each);
  } else if (!divided || stages != usual) {
    s->Add("parallelism.module_fqns_per_model_part", ModulesOfStages(r.stages));
  }
  if (c.overlap_pipeline) {
    s->Note("messages: torchtitan's schedules wait for them; no_pipeline_overlap prices that");
  }
  return absl::OkStatus();
}

absl::Status AddData(const StepConfig& c, Settings* s) {
  const bool sharded = ShardsGradients(c.sharding);
  if (c.sharding == Sharding::kOptimizer) {
    return RecipeError("sharding=optimizer: ", kTorchtitanName,
                       " shards gradients too; sharding=gradients would do");
  }
  if (c.context > 1 && (!sharded || c.sharing() % c.context != 0)) {
    return RecipeError("C=", c.context, ": ", kTorchtitanName,
                       " shards weights over what divides the tokens; sharding=fully would do");
  }
  if (c.context > 1 && c.context_exchange == ContextExchange::kHeads) {
    return RecipeError("context_exchange=heads: ", kTorchtitanName,
                       " exchanges keys and values alone; context_exchange=ring would do");
  }
  s->Add("parallelism.data_parallel_replicate_degree", sharded ? c.copies() / c.sharing() : c.data);
  s->Add("parallelism.data_parallel_shard_degree", sharded ? c.sharing() / c.context : 1);
  if (c.context > 1) s->Add("parallelism.context_parallel_degree", c.context);
  if (c.context_exchange == ContextExchange::kRing) {
    s->Add("parallelism.context_parallel_rotate_method", TomlString("alltoall"));
  }
  const bool kept = c.sharding == Sharding::kGradients;
  if (sharded && kept != (c.pipeline > 1)) {
    s->Add("parallelism.fsdp_reshard_after_forward", TomlString(kept ? "never" : "always"));
  }
  if (!c.overlap_data && c.data > 1) {
    s->Note("gradients: torchtitan sums them beside compute");
  }
  return absl::OkStatus();
}

// Settings of sharded weights. What has 4 bytes here moves as 2.
void AddTorchtitanState(const StateNumbers& n, Settings* s) {
  const bool narrow_sums = n.gradients == 2 || !n.narrow();
  if (narrow_sums) s->Add("training.mixed_precision_reduce", TomlString("bfloat16"));
  NoteState(n, {/*weights=*/2, narrow_sums ? 2 : 4, /*cast=*/true}, kTorchtitanName, s);
}

}  // namespace

std::vector<std::string> TorchtitanSchemes() {
  std::vector<std::string> schemes;
  for (const TorchtitanSchedule& s : kTorchtitanSchedules) schemes.emplace_back(s.scheme);
  return schemes;
}

absl::StatusOr<Settings> TorchtitanSettings(const Recipe& r) {
  const StepConfig& c = r.config;
  PIPELAB_RETURN_IF_ERROR(
      CheckExportable(c, kTorchtitanName,
                      {"C", "context_exchange", "E", "whole_experts", "shards", "modules",
                       "rebuilt_every", "state", "split_head", "published"}));
  const bool op = c.recompute == Recompute::kSelective;
  if (op && c.modules != "every_second_product") {
    return RecipeError("recompute=selective: ", kTorchtitanName,
                       " rebuilds other parts under that name; modules=every_second_product or "
                       "recompute=blocks would do");
  }
  if (c.tensor > 1 && !c.sequence_parallel) {
    return RecipeError("T=", c.tensor, ": ", kTorchtitanName,
                       "'s tensor parallelism divides tokens, too; add sequence");
  }
  if (c.ranks != RankOrder::kTensorDataPipeline) {
    return RecipeError("ranks=", RankOrderName(c.ranks), ": ", kTorchtitanName,
                       " has no such order of ranks; ranks=tp-dp-pp would do");
  }
  if (r.type == NumberType::kFp16 || r.type == NumberType::kTf32) {
    return RecipeError("dtype=", NumberTypeName(r.type), ": ", kTorchtitanName,
                       " has bf16, fp8 and fp32");
  }
  Settings s(SettingsForm::kToml);
  PIPELAB_RETURN_IF_ERROR(AddTorchtitanModel(r, &s));
  s.Add("training.seq_len", r.model.tokens);
  s.Add("training.local_batch_size",
        c.pipeline > 1 ? c.micro_batch_size * c.micro_batches : c.micro_batch_size);
  s.Add("training.global_batch_size", c.batch());
  if (r.type == NumberType::kFp32) s.Add("training.mixed_precision_param", TomlString("float32"));
  if (ShardsGradients(c.sharding) && r.type != NumberType::kFp32) AddTorchtitanState(c.state, &s);
  PIPELAB_RETURN_IF_ERROR(AddData(c, &s));
  s.Add("parallelism.tensor_parallel_degree", c.tensor);
  PIPELAB_RETURN_IF_ERROR(AddTorchtitanExperts(c, &s));
  PIPELAB_RETURN_IF_ERROR(AddPipeline(r, &s));
  const bool some = c.rebuilt_every > 1;
  s.Add("activation_checkpoint.mode", TomlString(op || some                          ? "selective"
                                                 : c.recompute == Recompute::kBlocks ? "full"
                                                                                     : "none"));
  if (op || some) {
    s.Add("activation_checkpoint.selective_ac_option",
          TomlString(op ? "op" : absl::StrCat(c.rebuilt_every)));
  }
  return s;
}

}  // namespace pipelab
