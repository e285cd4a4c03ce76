#include "experiments/modern/modern_prediction.h"

#include <string>

#include "experiments/modern/modern_assumptions.h"
#include "experiments/modern/modern_model.h"
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
            "1f1b:P=2,T=2,D=4,V=0,b=2,M=8,sharding=optimizer,state=2+2,sequence,layout=Et*4|t*4L,"
            "no_pipeline_overlap,tensor_overlap");
  row.virtual_stages = 2;
  EXPECT_EQ(ConfigOf(row),
            "interleaved:P=2,T=2,D=4,V=2,b=2,M=8,sharding=optimizer,state=2+2,sequence,layout=Et*2|"
            "(t*2|)*2t*2L,"
            "steady_overlap,tensor_overlap");
  row = Row();
  row.context = 2;
  EXPECT_EQ(ConfigOf(row),
            "1f1b:P=2,T=2,D=2,V=0,b=2,M=16,C=2,context_exchange=ring,sharding=optimizer,state=2+2,"
            "sequence,"
            "layout=Et*4|t*4L,no_pipeline_overlap,tensor_overlap");
  row = Row();
  row.group = "nanotron";
  row.sharding = "zero0";
  EXPECT_EQ(ConfigOf(row),
            "1f1b:P=2,T=2,D=4,V=0,b=2,M=8,sequence,layout=Et*6|t*2L,no_pipeline_overlap");
  row.pipeline = 1;
  EXPECT_EQ(ConfigOf(row),
            "interleaved:P=1,T=2,D=8,V=8,b=2,M=4,sequence,layout=3+2+2+2+2+2+2+3,"
            "no_pipeline_overlap");
  row.sharding = "zero1";
  EXPECT_EQ(ConfigOf(row),
            "1f1b:P=1,T=2,D=8,V=0,b=2,M=4,sharding=optimizer,sequence,no_pipeline_overlap,"
            "no_data_overlap");
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

TEST(StepOfRow, TakesPartsOfTheCopies) {
  ModernRow row = Row();
  row.tensor = row.pipeline = 1;
  row.sharding = "8";
  EXPECT_EQ(ConfigOf(row),
            "interleaved:P=1,T=1,D=16,V=8,b=2,M=2,sharding=fully,shards=8,state=2+2,"
            "layout=3+2+2+2+2+2+2+3,gathers_each,no_pipeline_overlap");
  row.sharding = "1";
  EXPECT_EQ(ConfigOf(row), "1f1b:P=1,T=1,D=16,V=0,b=2,M=2,state=2+2,no_pipeline_overlap");
  // torchtitan's number counts no ranks of context parallelism.
  row.group = "titan";
  row.context = 2;
  EXPECT_EQ(ConfigOf(row),
            "interleaved:P=1,T=1,D=8,V=8,b=2,M=4,C=2,sharding=fully,shards=2,state=2+4+cast,"
            "layout=3+2+2+2+2+2+2+3,gathers_each,no_pipeline_overlap");
}

TEST(StepOfRow, AssumesAMicroBatchWhereASystemHasADefault) {
  ModernRow row = Row();
  row.micro_batch = 0;
  EXPECT_THAT(StepOfRow(row, {Llama()}, Machines()), testing::Not(IsOk()));
  row.group = "titan";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep step, StepOfRow(row, {Llama()}, Machines()));
  EXPECT_TRUE(step.assumed);
  EXPECT_EQ(step.config.micro_batch_size, 1);
  EXPECT_EQ(step.config.micro_batches, 16);
}

// Two thirds of the products, and no sums of gradients; frozen weights keep 2 bytes.
TEST(StepOfRow, TrainsAdaptersAlone) {
  ModernRow row = Row();
  row.tokens = 4096;
  ModernModel large = Llama();
  large.hidden = large.heads * 1024;
  large.heads = 64;
  large.kv_heads = 8;
  large.feed_forward = 28672;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep whole, StepOfRow(row, {large}, Machines()));
  row.id = "dgxc-x-lora-y";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep step, StepOfRow(row, {large}, Machines()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction all, Predict(whole));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction adapters, Predict(step));
  EXPECT_LT(adapters.step_time, all.step_time);
  EXPECT_LT(adapters.largest_device, all.largest_device);
  EXPECT_GT(adapters.largest_device, Bytes(2 * (BuildGpt(step.model)->num_parameters() / 2 / 2)));
}

// What a run that prints nothing must have recomputed to fit.
TEST(StepOfRow, InfersRecomputation) {
  ModernRow row = Row();
  ModernModel model = Llama();
  model.vocabulary = 512;
  const auto step_of = [&] { return *StepOfRow(row, {model}, Machines()); };
  row.recompute = "";
  EXPECT_FALSE(step_of().inferred);  // it fits
  EXPECT_EQ(step_of().config.recompute, Recompute::kNone);
  row.group = "mbridge";
  row.tensor = 1;
  row.gpus = 8;
  row.pipeline = 2;
  row.tokens = 32768;
  row.batch = 8;
  // The least that is too large.
  for (row.micro_batch = 1; !step_of().inferred; row.micro_batch *= 2) {
    row.batch = 16 * row.micro_batch;
  }
  const ModernStep some = step_of();
  EXPECT_TRUE(some.inferred);
  EXPECT_EQ(some.config.recompute, Recompute::kBlocks);
  EXPECT_TRUE(Predict(some)->fits);
  ModernStep fewer = some;
  if (--fewer.config.rebuilt_blocks == 0) fewer.config.recompute = Recompute::kNone;
  EXPECT_FALSE(Predict(fewer)->fits);
  row.recompute = "none";  // printed, and so taken
  EXPECT_FALSE(step_of().inferred);
  EXPECT_FALSE(Predict(step_of())->fits);
}

// Bytes of a weight and of its gradient.
TEST(StepOfRow, TakesTheStateOfItsSystem) {
  const auto state = [](const char* group, const char* gpu, const char* precision,
                        const char* system = "") {
    ModernRow row = Row();
    row.group = group;
    row.gpu = gpu;
    row.precision = precision;
    row.system = system;
    return StateNumbersName(StateNumbersOf(row));
  };
  EXPECT_EQ(state("mlm", "H100", "BF16"), "2+4");
  EXPECT_EQ(state("mbridge", "H100", "FP8"), "2+2");
  EXPECT_EQ(state("mbridge", "GB200", "FP8"), "1+2");
  EXPECT_EQ(state("mbridge", "GB200", "MXFP8"), "2+2");
  EXPECT_EQ(state("dgxc", "H100", "BF16", "DGX Cloud recipe 25.02 (NeMo)"), "2+2");
  EXPECT_EQ(state("dgxc", "H100", "BF16", "DGX Cloud recipe 25.02 (MaxText)"), "2+2+cast");
  EXPECT_EQ(state("titan", "H100", "BF16"), "2+4+cast");
  EXPECT_EQ(state("nanotron", "H100", "BF16"), "4+4");
}

TEST(StepOfRow, RecomputesNamedModules) {
  ModernRow row = Row();
  row.recompute = "selective:core_attn+layernorm";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep step, StepOfRow(row, {Llama()}, Machines()));
  EXPECT_THAT(step.recomputed, testing::ElementsAre("core_attn", "layernorm"));
  EXPECT_THAT(Predict(step), IsOk());
  row.recompute = "selective:mhc";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep other, StepOfRow(row, {Llama()}, Machines()));
  EXPECT_THAT(Predict(other).status().message(), testing::HasSubstr("mhc"));
}

TEST(StepOfRow, DividesExpertsAsTheSystemDoes) {
  ModernModel m = Llama();
  m.experts = 8;
  m.chosen_experts = 2;
  m.expert_width = 704;
  ModernRow row = Row();
  row.expert = 4;
  const auto config = [&] {
    const auto step = StepOfRow(row, {m}, Machines());
    EXPECT_THAT(step, IsOk());
    EXPECT_THAT(Predict(*step), IsOk());
    return step->config.ToString();
  };
  EXPECT_EQ(
      config(),
      "1f1b:P=2,T=2,D=4,V=0,b=2,M=8,E=4,sharding=optimizer,state=2+2,sequence,layout=Et*4|t*4L,"
      "no_pipeline_overlap,tensor_overlap");
  row.group = "mbridge";
  EXPECT_THAT(config(), testing::AllOf(testing::HasSubstr("whole_experts"),
                                       testing::HasSubstr("tensor_overlap")));
}

TEST(StepOfRow, RowsBesideProductsWhereTheSystemHasThem) {
  ModernRow row = Row();
  row.group = "titan";
  row.tokens = 16384;  // so that the device takes longer than the host
  const auto step = [&] { return StepOfRow(row, {Llama()}, Machines()).value(); };
  const ModernStep waited = step();
  EXPECT_FALSE(waited.config.overlap_tensor);
  row.kernels = "torch.compile; async TP";
  EXPECT_TRUE(step().config.overlap_tensor);
  EXPECT_LT(Predict(step())->step_time, Predict(waited)->step_time);
  row.tensor = 1;
  EXPECT_FALSE(step().config.overlap_tensor);
}

TEST(ModelOf, Windows) {
  ModernModel m = Llama();
  m.attention = "gqa swiglu (sliding window 4096 in v0.1)";
  PIPELAB_ASSERT_OK_AND_ASSIGN(GptConfig c, ModelOf(m, Row()));
  EXPECT_THAT(c.windows, testing::ElementsAre(4096));
  m.attention = "gqa; every other layer sliding window 128; sinks; biases";
  PIPELAB_ASSERT_OK_AND_ASSIGN(c, ModelOf(m, Row()));
  EXPECT_THAT(c.windows, testing::ElementsAre(128, 0));
}

TEST(ModelOf, LatentAttention) {
  ModernModel m = Llama();
  m.attention = "mla: q_lora 1536 kv_lora 512 nope 128 rope 64 v 128; 1 MTP layer unless told";
  m.experts = 64;
  m.chosen_experts = 6;
  m.shared_experts = 2;
  m.expert_width = 1408;
  m.dense_layers = 1;
  ModernRow row = Row();
  PIPELAB_ASSERT_OK_AND_ASSIGN(GptConfig c, ModelOf(m, row));
  EXPECT_EQ(c.latent.query_rank, 1536);
  EXPECT_EQ(c.latent.rank, 512);
  EXPECT_EQ(c.latent.nope_size, 128);
  EXPECT_EQ(c.latent.rope_size, 64);
  EXPECT_EQ(c.latent.value_size, 128);
  EXPECT_EQ(c.experts.experts, 64);
  EXPECT_EQ(c.experts.shared, 2);
  EXPECT_EQ(c.expert_feed_forward, 1408);
  EXPECT_EQ(c.dense_blocks, 1);
  EXPECT_EQ(c.layers, 8);
  EXPECT_EQ(c.further_tokens, 1);
  row.notes = "w/o MTP; GA=32";
  m.attention = "mla: no q_lora, kv_lora 512 nope 128 rope 64 v 128";
  PIPELAB_ASSERT_OK_AND_ASSIGN(c, ModelOf(m, row));
  EXPECT_EQ(c.latent.query_rank, 0);
  EXPECT_EQ(c.layers, 8);
}

// 6 flops of each parameter of a product and token, and attention.
TEST(SecondsFromFlops, CountsAsTheSourceDoes) {
  ModernRow row = Row();
  row.step_seconds.reset();
  row.tflops = 100;
  EXPECT_FALSE(SecondsFromFlops(Llama(), row).has_value());
  const double block = 1024.0 * (2 * 1024 + 2 * 256 + 3 * 2816), tokens = 64 * 1024;
  const auto expected = [&](double attention) {
    return 6 * tokens * (8 * (block + attention) + 1024.0 * 32001) / (100e12 * 16);
  };
  row.group = "mlm";
  EXPECT_NEAR(*SecondsFromFlops(Llama(), row), expected(2 * 1024.0 * 1024), 1e-9);
  row.group = "mbridge";
  EXPECT_NEAR(*SecondsFromFlops(Llama(), row), expected(1024.0 * 1024), 1e-9);
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
  EXPECT_EQ(why([](R* r, M*) { r->precision = "NVFP4"; }), "precision NVFP4 on H100");
  EXPECT_EQ(why([](R* r, M*) {
              r->id = "dgxc-llama-lora-8g";
              r->sharding = "FULL_SHARD";
            }),
            "adapters beside sharded weights");
  EXPECT_EQ(why([](R* r, M*) { r->kernels = "cpu_offloading=40"; }), "activations on the host");
  EXPECT_EQ(why([](R*, M* m) { m->attention = "hybrid: pattern MEME"; }), "Mamba layers");
  EXPECT_EQ(why([](R*, M* m) { m->attention = "compressed sparse attention: 1"; }),
            "compressed sparse attention");
  EXPECT_EQ(why([](R*, M* m) { m->attention = "linear: 1"; }), "attention \"linear\"");
  EXPECT_EQ(why([](R* r, M*) { r->micro_batch = 0; }), "batch or micro-batch not printed");
  EXPECT_EQ(why([](R* r, M*) { r->step_seconds.reset(); }), "no time printed");
  EXPECT_EQ(why([](R* r, M*) { r->gpus = 15; }), "grid that is not the GPUs");
  EXPECT_EQ(why([](R* r, M*) { r->batch = 65; }), "batch that the grid does not divide");
  EXPECT_EQ(why([](R* r, M*) {
              r->tensor = 8;
              r->pipeline = 1;
            }),
            "more devices than heads of keys");
  EXPECT_EQ(why([](R* r, M*) { r->sharding = "8"; }), "shards that do not divide the copies");
  EXPECT_EQ(why([](R* r, M*) { r->sharding = "DDP"; }), "sharding \"DDP\"");
  EXPECT_EQ(why([](R* r, M*) { r->recompute = "selective layer"; }),
            "recomputation \"selective layer\"");
}

}  // namespace
}  // namespace pipelab
