#include "pipelines/recipes/torchtitan_toml.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/recipes/deepspeed_json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Toml {
  std::string model = "flavor = \"8B\"", training = "local_batch_size = 8", parallelism;
  std::string checkpoint = "mode = \"none\"";

  std::string Text() const {
    return absl::StrCat("[job]\ndescription = \"a run\"\n[model]\n", model, "\n[training]\n",
                        training, "\nseq_len = 8192\n[parallelism]\n", parallelism,
                        "\n[activation_checkpoint]\n", checkpoint, "\n");
  }
};

absl::StatusOr<Recipe> ReadTomlText(const Toml& toml, int64_t devices = 64) {
  return ReadTorchtitanToml(toml.Text(), "--toml=t", devices);
}

std::string TomlRefusal(const Toml& toml, int64_t devices = 64) {
  const auto recipe = ReadTomlText(toml, devices);
  return recipe.ok() ? "accepted: " + recipe->config.ToString()
                     : std::string(recipe.status().message());
}

Toml WithParallelism(std::string text) {
  Toml toml;
  toml.parallelism = std::move(text);
  return toml;
}

TEST(ReadTorchtitanToml, RecomputesOperationsOrEveryFewthLayer) {
  const auto recompute = [](absl::string_view mode) {
    Toml toml;
    toml.checkpoint = std::string(mode);
    const auto r = ReadTomlText(toml);
    if (!r.ok()) return std::string(r.status().message());
    EXPECT_TRUE(TorchtitanSettings(*r).ok());
    const auto again = ReadTorchtitanToml(TorchtitanSettings(*r)->Text(), "t", 64);
    EXPECT_EQ(again->config, r->config) << mode;
    return absl::StrCat(RecomputeName(r->config.recompute), " ", r->config.modules, " ",
                        r->config.rebuilt_every, " ", r->not_priced.size());
  };
  const std::string selective = "mode = \"selective\"\nselective_ac_option = ";
  EXPECT_EQ(recompute("mode = \"none\""), "none  1 0");
  EXPECT_EQ(recompute("mode = \"full\""), "blocks  1 0");
  EXPECT_EQ(recompute(""), "blocks  2 0");  // the defaults
  EXPECT_EQ(recompute(selective + "\"op\""), "selective every_second_product 1 0");
  EXPECT_EQ(recompute(selective + "\"3\""), "blocks  3 0");
  EXPECT_EQ(recompute(selective + "4"), "blocks  4 0");
  EXPECT_EQ(recompute(selective + "1"), "blocks  1 0");
  EXPECT_EQ(recompute("mode = \"memory_budget\""), "selective every_second_product 1 1");
  EXPECT_THAT(recompute(selective + "0"), HasSubstr("must be \"op\" or a whole number"));
}

TEST(ReadTorchtitanToml, FsdpOfABlockAtATimeIsTheDefault) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadTomlText({}));
  EXPECT_EQ(r.config.scheme, "interleaved");
  EXPECT_EQ(r.config.virtual_stages, 32);
  EXPECT_EQ(r.config.data, 64);
  EXPECT_EQ(r.config.micro_batch_size, 8);
  EXPECT_EQ(r.config.micro_batches, 1);
  EXPECT_EQ(r.config.sharding, Sharding::kFully);
  EXPECT_EQ(BuildGpt(r.model)->num_parameters(), 8030261248);
  EXPECT_EQ(r.type, NumberType::kBf16);
  EXPECT_EQ(StateNumbersName(r.config.state), "2+4+cast");
  EXPECT_THAT(r.passed_over, testing::ElementsAre("job.description"));
}

TEST(ReadTorchtitanToml, ListsWhatItDoesNotKnow) {
  Toml toml = WithParallelism("new_degree = 2\nenable_async_tensor_parallel = true");
  toml.training = "local_batch_size = 1\nenable_cpu_offload = true\nsteps = 9";
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r, ReadTorchtitanToml(absl::StrCat(toml.Text(),
                                                      "[new]\nkey = 1\n[optimizer]\nlr = 1\nname = "
                                                      "\"SGD\"\n[quantize.linear.float8]\nx = 1\n"),
                                         "t", 64));
  EXPECT_THAT(r.unknown,
              testing::UnorderedElementsAre("parallelism.new_degree: unknown", "[new]: unknown"));
  EXPECT_THAT(r.not_priced,
              testing::ElementsAre("optimizer.name: the optimizer is Adam",
                                   "quantize.linear: numbers are those of model.converters",
                                   HasSubstr("training.enable_cpu_offload: all stays"),
                                   HasSubstr("enable_async_tensor_parallel")));
  EXPECT_THAT(r.passed_over,
              testing::UnorderedElementsAre("job.description", "optimizer.lr", "training.steps"));
  toml.training = "local_batch_size = 1\nstep = 2";
  for (int i = 10; i < 42; ++i) absl::StrAppend(&toml.training, "\na", i, " = 1");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe first, ReadTomlText(toml));
  EXPECT_THAT(first.unknown, testing::Contains("training.step: unknown"));  // behind 32 others
}

TEST(ReadTorchtitanToml, PipelinesAreDividedAsTorchtitanDoes) {
  const auto layout = [](const Toml& toml) {
    const auto r = ReadTomlText(toml);
    return r.ok() ? absl::StrCat(r->config.scheme, " ", FormatMegatronLayout(r->stages))
                  : std::string(r.status().message());
  };
  // 34 counted layers on four stages: 9, 9, 8, 8.
  EXPECT_EQ(layout(WithParallelism("pipeline_parallel_degree = 4")), "1f1b Et*8|t*9|t*8|t*7L");
  EXPECT_EQ(layout(WithParallelism("pipeline_parallel_degree = 4\n"
                                   "pipeline_parallel_schedule = \"Interleaved1F1B\"")),
            "interleaved Et*4|t*5|(t*4|)*5t*3L");
  EXPECT_EQ(layout(WithParallelism("pipeline_parallel_degree = 2\n"
                                   "pipeline_parallel_layers_per_stage = 6\n"
                                   "pipeline_parallel_schedule = \"interleavedzerobubble\"")),
            "interleaved_zb1p Et*5|(t*6|)*3t*5|t*4L");
  EXPECT_EQ(layout(WithParallelism("pipeline_parallel_degree = 4\n"
                                   "pipeline_parallel_schedule = \"ZBVZeroBubble\"")),
            "zbv Et*4|t*5|(t*4|)*5t*3L");
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      Recipe zero_bubble,
      ReadTomlText(WithParallelism("pipeline_parallel_degree = 4\n"
                                   "pipeline_parallel_schedule = \"ZBVZeroBubble\"")));
  EXPECT_TRUE(zero_bubble.config.split_head && zero_bubble.config.published_order);
  zero_bubble.config.published_order = false;
  EXPECT_THAT(TorchtitanSettings(zero_bubble),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("has one order whatever passes take; add published")));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r,
      ReadTomlText(WithParallelism("pipeline_parallel_degree = 4\ntensor_parallel_degree = 8\n"
                                   "pipeline_parallel_microbatch_size = 2")));
  EXPECT_EQ(
      r.config.ToString(),
      "1f1b:P=4,T=8,D=2,V=0,b=2,M=4,sharding=gradients,state=2+4+cast,sequence,layout=17+18+16+15,"
      "no_pipeline_overlap");
}

TEST(ReadTorchtitanToml, ShardsWithinGroupsOfCopies) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r,
                               ReadTomlText(WithParallelism("data_parallel_replicate_degree = 2")));
  EXPECT_EQ(r.config.data, 64);
  EXPECT_EQ(r.config.shards, 32);
}

TEST(ReadTorchtitanToml, SaysTheNearestThatWouldDo) {
  EXPECT_THAT(TomlRefusal(WithParallelism("context_parallel_degree = 3")),
              HasSubstr("parallelism.context_parallel_degree: 3: seq_len = "));
  EXPECT_THAT(TomlRefusal(WithParallelism("tensor_parallel_degree = 3")),
              HasSubstr("must divide the 8 heads of keys; nearest: 2"));
  EXPECT_THAT(
      TomlRefusal(WithParallelism("tensor_paralel_degree = 2\npipeline_parallel_degree = 64")),
      HasSubstr("; besides, parallelism.tensor_paralel_degree: unknown; did you mean "
                "tensor_parallel_degree?"));
  EXPECT_THAT(TomlRefusal(WithParallelism("data_parallel_shard_degree = 8")),
              HasSubstr("8 GPUs by its degrees, which must be the 64 there are"));
  EXPECT_THAT(TomlRefusal(WithParallelism("pipeline_parallel_degree = 4\n"
                                          "pipeline_parallel_schedule = \"1F1b2\"")),
              HasSubstr("did you mean 1F1B?"));
  EXPECT_THAT(TomlRefusal(WithParallelism("pipeline_parallel_degree = 2\n"
                                          "pipeline_parallel_layers_per_stage = 4")),
              HasSubstr("4: 9 stages, which 2 devices do not divide; nearest: 3"));
  EXPECT_THAT(TomlRefusal(WithParallelism("pipeline_parallel_degree = 64")),
              HasSubstr("64 stages are too many for 32 layers; nearest: 34"));
  Toml toml;
  toml.checkpoint = "mode = \"selective\"\nselective_ac_option = \"ops\"";
  EXPECT_THAT(TomlRefusal(toml), HasSubstr("\"ops\": must be \"op\" or a whole number"));
  toml = WithParallelism("pipeline_parallel_degree = 4");
  toml.training = "local_batch_size = 8\nglobal_batch_size = 256";
  EXPECT_THAT(TomlRefusal(toml),
              HasSubstr("2 passes of the pipeline make a step, and here one does; "
                        "nearest: local_batch_size = 16"));
  toml = {};
  toml.model = "flavor = \"7B\"";
  EXPECT_THAT(TomlRefusal(toml),
              HasSubstr("model.flavor: \"7B\": must be debugmodel, 8B, 70B, 405B"));
  EXPECT_THAT(TomlRefusal({}, 0),
              HasSubstr("--devices: missing; --toml=t: data_parallel_shard_degree"));
}

TEST(TorchtitanSettings, ReadBackOverAGrid) {
  int read = 0;
  for (const char* pipeline :
       {"", "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"GPipe\"",
        "pipeline_parallel_degree = 4\npipeline_parallel_microbatch_size = 2",
        "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\"",
        "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"LoopedBFS\"\n"
        "pipeline_parallel_layers_per_stage = 3",
        "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"ZBVZeroBubble\"",
        "pipeline_parallel_degree = 2\nmodule_fqns_per_model_part = [[\"tok_embeddings\", "
        "\"layers.0\", \"layers.1\"], [\"layers.2\", \"layers.3\", \"layers.4\", \"layers.5\", "
        "\"norm\", \"output\"]]"}) {
    for (const char* data :
         {"", "data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = ",
          "data_parallel_replicate_degree = 2", "fsdp_reshard_after_forward = \"never\"",
          "fsdp_reshard_after_forward = \"always\""}) {
      for (const char* tensor :
           {"", "tensor_parallel_degree = 4",
            "tensor_parallel_degree = 4\ncontext_parallel_degree = 2",
            "context_parallel_degree = 8\ncontext_parallel_rotate_method = \"alltoall\""}) {
        for (const char* mode : {"mode = \"none\"", "mode = \"full\""}) {
          const int pipelines = pipeline[0] == 0 ? 1 : pipeline[27] - '0';
          const bool replicates = absl::EndsWith(data, "= ");
          const int group = tensor[0] == 0 ? 1 : absl::StrContains(tensor, "context") ? 8 : 4;
          Toml toml = WithParallelism(
              absl::StrCat(pipeline, "\n", data,
                           replicates ? absl::StrCat(64 / pipelines / group) : "", "\n", tensor));
          toml.model =
              absl::StrCat("converters = \"float8\"\nflavor = \"",
                           absl::StrContains(pipeline, "layers.0") ? "debugmodel" : "8B", "\"");
          toml.checkpoint = mode;
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadTomlText(toml));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings s, TorchtitanSettings(r));
          EXPECT_THAT(s.notes(), ElementsAre()) << toml.Text();
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again, ReadTorchtitanToml(s.Text(), "t", 64));
          EXPECT_EQ(again.config, r.config) << toml.Text() << "\n" << s.Text();
          EXPECT_EQ(ModelText(again.model), ModelText(r.model));
          EXPECT_EQ(again.type, r.type);
          ++read;
        }
      }
    }
  }
  EXPECT_EQ(read, 280);
}

TEST(TorchtitanSettings, RefusesByName) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r,
                               ReadTomlText(WithParallelism("pipeline_parallel_degree = 4")));
  const auto refusal = [&](const auto& change) {
    Recipe other = r;
    change(&other);
    const auto s = TorchtitanSettings(other);
    return s.ok() ? "accepted" : std::string(s.status().message());
  };
  EXPECT_THAT(refusal([](Recipe* o) { o->config.scheme = "chimera"; }),
              HasSubstr("scheme=chimera"));
  EXPECT_THAT(refusal([](Recipe* o) { o->config.sharding = Sharding::kOptimizer; }),
              HasSubstr("sharding=gradients would do"));
  EXPECT_THAT(refusal([](Recipe* o) {
                o->config.context = 2;
                o->config.context_exchange = ContextExchange::kHeads;
              }),
              HasSubstr("context_exchange=ring would do"));
  EXPECT_THAT(refusal([](Recipe* o) { o->model.layers = 33; }), HasSubstr("no model of 33 layers"));
  EXPECT_THAT(refusal([](Recipe* o) { o->model.dropout = 0.1; }), HasSubstr("no model of 32"));
  EXPECT_THAT(refusal([](Recipe* o) { o->config.tensor = 2; }), HasSubstr("add sequence"));
  EXPECT_THAT(refusal([](Recipe* o) { o->type = NumberType::kFp16; }), HasSubstr("dtype=fp16"));
}

TEST(DeepSpeedJson, HasBatchZeroAndPipeline) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Recipe r,
                               ReadTomlText(WithParallelism("pipeline_parallel_degree = 4")));
  r.config.sharding = Sharding::kOptimizer;
  EXPECT_THAT(DeepSpeedJson(r),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("equal ones would do, with a P that divides 32")));
  ASSERT_THAT(SetStages(StagesOfTransformers({8, 8, 8, 8}), &r), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DeepSpeedConfig d, DeepSpeedJson(r));
  EXPECT_EQ(d.json, nlohmann::json::parse(R"({"bf16": {"enabled": true},
      "gradient_accumulation_steps": 8, "train_batch_size": 128,
      "train_micro_batch_size_per_gpu": 1,
      "pipeline": {"activation_checkpoint_interval": 0, "stages": 4},
      "zero_optimization": {"overlap_comm": true, "stage": 1}})"));
  EXPECT_THAT(d.notes, ElementsAre(HasSubstr("PipelineModule(num_stages=4)")));
  r.config.sharding = Sharding::kFully;
  EXPECT_THAT(DeepSpeedJson(r),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes ZeRO-1 at most")));
  r.config.scheme = "zbv";
  EXPECT_THAT(DeepSpeedJson(r),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("scheme=1f1b would do")));
}

}  // namespace
}  // namespace pipelab
