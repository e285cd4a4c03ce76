#include "pipelines/recipes/deepspeed_json.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/recipes/megatron_flags.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kDeepSpeedName = "DeepSpeed";

int ZeroStage(Sharding sharding) {
  switch (sharding) {
    case Sharding::kReplicated:
      return 0;
    case Sharding::kOptimizer:
      return 1;
    case Sharding::kGradients:
      return 2;
    case Sharding::kFully:
      return 3;
  }
  return 0;
}

absl::Status CheckPipeline(const Recipe& r) {
  const StepConfig& c = r.config;
  if (c.pipeline == 1) return absl::OkStatus();
  if (c.scheme != "1f1b") {
    return RecipeError("scheme=", c.scheme, ": ", kDeepSpeedName,
                       "'s pipeline runs 1F1B alone; scheme=1f1b would do");
  }
  if (ShardsGradients(c.sharding)) {
    return RecipeError("sharding=", ShardingName(c.sharding), ": ", kDeepSpeedName,
                       "'s pipeline takes ZeRO-1 at most; sharding=optimizer would do");
  }
  if (c.tensor > 1) {
    return RecipeError(
        "T=", c.tensor, ": ", kDeepSpeedName,
        "'s configuration has tensor parallelism without a pipeline alone; T=1 would do");
  }
  const auto even = EvenStages(r.model.layers, c.pipeline);
  if (even.ok() && *even == r.stages) return absl::OkStatus();
  return RecipeError(
      "layout=", c.layout, ": ", kDeepSpeedName,
      "'s configuration has no layers of each stage; equal ones would do, with a P that "
      "divides ",
      r.model.layers);
}

}  // namespace

absl::StatusOr<DeepSpeedConfig> DeepSpeedJson(const Recipe& r) {
  const StepConfig& c = r.config;
  PIPELAB_RETURN_IF_ERROR(
      CheckExportable(c, kDeepSpeedName, {"E", "whole_experts", "shards", "state"}));
  PIPELAB_RETURN_IF_ERROR(CheckPipeline(r));
  if (c.recompute == Recompute::kSelective) {
    return RecipeError("recompute=selective: ", kDeepSpeedName,
                       "'s configuration rebuilds whole layers; recompute=blocks would do");
  }
  if (c.ranks != RankOrder::kTensorDataPipeline) {
    return RecipeError("ranks=", RankOrderName(c.ranks), ": ", kDeepSpeedName,
                       "'s configuration has no order of ranks; ranks=tp-dp-pp would do");
  }
  DeepSpeedConfig d;
  d.json = {
      {"train_batch_size", c.batch()},
      {"train_micro_batch_size_per_gpu", c.micro_batch_size},
      {"gradient_accumulation_steps", c.micro_batches},
      {"zero_optimization", {{"stage", ZeroStage(c.sharding)}, {"overlap_comm", c.overlap_data}}}};
  if (r.type == NumberType::kFp8 || r.type == NumberType::kTf32) {
    return RecipeError("dtype=", NumberTypeName(r.type), ": ", kDeepSpeedName,
                       " has bf16, fp16 and fp32");
  }
  if (r.type != NumberType::kFp32) d.json[NumberTypeName(r.type)] = {{"enabled", true}};
  const bool rebuilds = c.recompute == Recompute::kBlocks;
  if (c.pipeline > 1) {
    d.json["pipeline"] = {{"stages", c.pipeline},
                          {"activation_checkpoint_interval", rebuilds ? 1 : 0}};
    d.notes.push_back(absl::StrCat("PipelineModule(num_stages=", c.pipeline,
                                   ") must give each stage ", r.model.layers / c.pipeline,
                                   " layers"));
  } else if (rebuilds) {
    d.json["activation_checkpointing"] = {{"partition_activations", false}};
    d.notes.emplace_back("the model must checkpoint each layer (deepspeed.checkpointing)");
  }
  if (HasExperts(r.model)) {
    // deepspeed/runtime/engine.py.
    if (c.sharding == Sharding::kFully) {
      return RecipeError("sharding=fully: ", kDeepSpeedName,
                         " takes ZeRO-2 at most with experts; sharding=gradients would do");
    }
    if (c.whole_experts && c.tensor > 1) {
      return RecipeError("whole_experts: ", kDeepSpeedName, " is not told of it; leave it out");
    }
    d.notes.push_back(absl::StrCat(
        "the model's layers must be deepspeed.moe.layer.MoE(num_experts=", r.model.experts.experts,
        ", ep_size=", c.experts, ", k=", r.model.experts.chosen, ")"));
  }
  if (c.shards > 0) {
    // MiCS divides all of ZeRO-3 within a set; zero_hpz_partition_size only keeps weights there.
    if (c.sharding != Sharding::kFully) {
      return RecipeError("shards=", c.shards, ": ", kDeepSpeedName,
                         " has sets of copies with ZeRO-3 (MiCS) alone; sharding=fully would do");
    }
    d.json["zero_optimization"]["mics_shard_size"] = c.shards;
    d.notes.emplace_back("the model must be made in deepspeed.zero.MiCS_Init");
  }
  if (c.tensor > 1) d.json["tensor_parallel"] = {{"autotp_size", c.tensor}};
  return d;
}

}  // namespace pipelab
