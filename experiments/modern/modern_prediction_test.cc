#include "experiments/modern/modern_prediction.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ModernModel Llama() {
  ModernModel m;
  m.id = "llama";
  m.layers = 8;
  m.hidden = 1024;
  m.heads = 8;
  m.kv_heads = 2;
  m.head_size = 128;
  m.feed_forward = 2816;
  m.vocabulary = 32001;
  m.attention = "gqa swiglu";
  return m;
}

ModernRow Row() {
  ModernRow r;
  r.id = r.group = "dgxc";
  r.gpu = "H100";
  r.precision = "BF16";
  r.model = "llama";
  r.gpus = 16;
  r.tokens = 1024;
  r.batch = 64;
  r.micro_batch = 2;
  r.tensor = 2;
  r.pipeline = 2;
  r.sharding = "0";
  r.step_seconds = 1;
  return r;
}

ModernMachines Machines() {
  ModernMachines m;
  m.by_gpu["H100"] = *LoadCluster("--cluster", "dgx-h100");
  m.nanotron = *LoadCluster("--cluster", "h100-cloud");
  return m;
}

std::string ConfigOf(const ModernRow& row) {
  const auto step = StepOfRow(row, {Llama()}, Machines());
  EXPECT_THAT(step, IsOk());
  if (!step.ok()) return "";
  EXPECT_THAT(Predict(*step), IsOk());
  return step->config.ToString();
}

TEST(StepOfRow, SaysEachSystemsConfiguration) {
  ModernRow row = Row();
  EXPECT_EQ(ConfigOf(row),
            "1f1b:P=2,T=2,D=4,V=0,b=2,M=8,sharding=optimizer,sequence,layout=9+9,"
            "no_pipeline_overlap");
  row.virtual_stages = 2;
  EXPECT_EQ(ConfigOf(row),
            "interleaved:P=2,T=2,D=4,V=2,b=2,M=8,sharding=optimizer,sequence,layout=5+4+4+5,"
            "no_pipeline_overlap");
  row = Row();
  row.context = 2;
  EXPECT_EQ(ConfigOf(row),
            "1f1b:P=2,T=2,D=2,V=0,b=2,M=16,C=2,sharding=optimizer,sequence,layout=9+9,"
            "no_pipeline_overlap");
  row = Row();
  row.group = "nanotron";
  row.sharding = "zero0";
  EXPECT_EQ(ConfigOf(row), "1f1b:P=2,T=2,D=4,V=0,b=2,M=8,sequence,layout=9+9,no_pipeline_overlap");
  // FSDP's unit is a block.
  row.sharding = "FULL_SHARD";
  row.tensor = row.pipeline = 1;
  row.recompute = "full layer";
  EXPECT_EQ(ConfigOf(row),
            "interleaved:P=1,T=1,D=16,V=8,b=2,M=2,sharding=fully,recompute=blocks,"
            "layout=3+2+2+2+2+2+2+3,gathers_each,no_pipeline_overlap");
}

// Words are as many for each device of a tensor-parallel group.
TEST(StepOfRow, TakesTheModelsSizes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep step, StepOfRow(Row(), {Llama()}, Machines()));
  EXPECT_EQ(step.model.vocabulary, 32002);
  EXPECT_EQ(step.model.kv_heads, 2);
  EXPECT_EQ(step.model.tokens, 1024);
  EXPECT_EQ(step.optimizer_tensors, 2);
}

TEST(StepOfRow, SaysWhyNot) {
  const auto why = [](const auto& change) {
    ModernRow row = Row();
    ModernModel model = Llama();
    change(&row, &model);
    const auto step = StepOfRow(row, {model}, Machines());
    EXPECT_EQ(step.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(step.status().message());
  };
  using R = ModernRow;
  using M = ModernModel;
  EXPECT_EQ(why([](R* r, M*) { r->gpu = "B200"; }), "GPU B200");
  EXPECT_EQ(why([](R* r, M*) { r->model = "x"; }), "model of an unknown shape");
  EXPECT_EQ(why([](R* r, M*) { r->precision = "NVFP4"; }), "precision NVFP4");
  EXPECT_EQ(why([](R* r, M*) { r->id = "dgxc-llama-lora-8g"; }),
            "adapters alone are trained (LoRA)");
  EXPECT_EQ(why([](R* r, M*) { r->kernels = "cpu_offloading=40"; }), "activations on the host");
  EXPECT_EQ(why([](R* r, M*) { r->expert = 2; }), "expert parallelism");
  EXPECT_EQ(why([](R*, M* m) { m->experts = 8; }), "experts");
  EXPECT_EQ(why([](R*, M* m) { m->attention = "mla: q_lora 1536"; }), "attention \"mla\"");
  EXPECT_EQ(why([](R*, M* m) { m->attention += " sliding window"; }),
            "attention with sliding windows");
  EXPECT_EQ(why([](R* r, M*) { r->micro_batch = 0; }), "batch or micro-batch not printed");
  EXPECT_EQ(why([](R* r, M*) { r->step_seconds.reset(); }), "no time printed");
  EXPECT_EQ(why([](R* r, M*) { r->gpus = 15; }), "grid that is not the GPUs");
  EXPECT_EQ(why([](R* r, M*) { r->batch = 65; }), "batch that the grid does not divide");
  EXPECT_EQ(why([](R* r, M*) {
              r->tensor = 8;
              r->pipeline = 1;
            }),
            "more devices than heads of keys");
  EXPECT_EQ(why([](R* r, M*) { r->sharding = "8"; }),
            "shards over a part of the data-parallel copies");
  EXPECT_EQ(why([](R* r, M*) { r->recompute = "selective op"; }), "recomputation \"selective op\"");
}

}  // namespace
}  // namespace pipelab
