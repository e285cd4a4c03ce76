#include "pipelines/recipes/megatron_flags.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Llama-3 8B's shape, as Megatron-LM's users write it.
constexpr char kLlama[] =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --seq-length 8192 "
    "--max-position-embeddings 8192 --position-embedding-type rope --rotary-base 500000 "
    "--normalization RMSNorm --swiglu --disable-bias-linear "
    "--untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 "
    "--vocab-size 128256 --bf16 --micro-batch-size 1 --global-batch-size 128 ";

absl::StatusOr<Recipe> ReadWithFlags(absl::string_view more, int64_t devices = 64) {
  return ReadMegatronFlags(absl::StrCat(kLlama, more), "--flags=f", devices);
}

std::string FlagsRefusal(absl::string_view more, int64_t devices = 64) {
  const auto recipe = ReadWithFlags(more, devices);
  return recipe.ok() ? "accepted: " + recipe->config.ToString()
                     : std::string(recipe.status().message());
}

TEST(ReadMegatronFlags, ModelIsLlamas) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadWithFlags(""));
  GptConfig llama = LlamaConfig(32, 4096, 32, 14336, 8192, 128256);
  llama.kv_heads = 8;
  llama.rotary_base = 500000;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph ours, BuildGpt(r.model));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph published, BuildGpt(llama));
  EXPECT_EQ(ours.num_parameters(), published.num_parameters());
  EXPECT_EQ(ours.num_parameters(), 8030261248);  // the published weights
  EXPECT_EQ(ModelText(r.model),
            "32 layers, hidden 4096, 32 heads (8 of keys and values), feed-forward 14336 (SwiGLU), "
            "128256 words, 8192 tokens");
  EXPECT_EQ(r.config.ToString(),
            "1f1b:P=1,T=1,D=64,V=0,b=1,M=2,state=2+4,no_pipeline_overlap,no_data_overlap");
  EXPECT_EQ(r.type, NumberType::kBf16);
  EXPECT_EQ(r.attention, AttentionImplementation::kFused);
}

// GPT-3 175B of Megatron-LM's examples: what it leaves to defaults.
TEST(ReadMegatronFlags, DefaultsAreMegatrons) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadMegatronFlags(R"(
GPUS_PER_NODE=8
NUM_NODES=128
ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES --master_addr localhost)
GPT=(
    --num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048
    --max-position-embeddings 2048 --attention-backend auto # or flash
)
RUN=(--micro-batch-size 1 --global-batch-size 1536 --rampup-batch-size 16 16 5859375 --fp16
    --lr 6.0e-5 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16
    --vocab-file $VOCAB --merge-file $MERGES --tokenizer-type GPT2BPETokenizer)
)",
                                                                 "--flags=f", 0));
  EXPECT_EQ(r.config.ToString(),
            "1f1b:P=16,T=8,D=8,V=0,b=1,M=192,state=2+2,layout=13+12+12+12+12+12+12+12+12+12+12+12+"
            "12+12+12+13,"
            "no_pipeline_overlap,no_data_overlap,whole_messages");
  EXPECT_EQ(r.model.feed_forward, 4 * 12288);
  EXPECT_EQ(r.model.vocabulary, 51200);  // 50257 in units of 128 x 8
  EXPECT_TRUE(r.model.tied_embeddings);
  EXPECT_EQ(r.model.dropout, 0.1);
  EXPECT_EQ(r.model.positions, Positions::kLearned);
  EXPECT_EQ(r.model.biases, Biases::kAll);
  EXPECT_EQ(r.type, NumberType::kFp16);
  EXPECT_THAT(r.not_priced,
              ElementsAre("--rampup-batch-size 16 16 5859375: the step is one of the full batch"));
  EXPECT_THAT(r.passed_over, ElementsAre("--lr", "--master-addr", "--merge-file", "--vocab-file"));
  EXPECT_THAT(r.unknown, ElementsAre());
}

TEST(ReadMegatronFlags, SwiGlusDefaultWidthIsInUnitsOf64) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r,
      ReadMegatronFlags(
          "--num-layers 2 --hidden-size 4096 --num-attention-heads 32 --seq-length 64 "
          "--max-position-embeddings 64 --swiglu --micro-batch-size 1 "
          "--vocab-size 1000 --tokenizer-type NullTokenizer",
          "f", 2));
  EXPECT_EQ(r.model.feed_forward, 10880);  // int(4 * 4096 * 2 / 3 / 64) * 64
  EXPECT_EQ(r.model.vocabulary, 1024);     // 1001 words
  EXPECT_EQ(r.config.batch(), 2);          // a micro-batch of each copy
  EXPECT_EQ(r.type, NumberType::kFp32);
}

// Bytes of a weight and of its gradient.
TEST(ReadMegatronFlags, State) {
  const auto state = [](absl::string_view numbers) {
    const auto r = ReadMegatronFlags(
        absl::StrCat("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                     "--max-position-embeddings 64 --micro-batch-size 1 --vocab-size 1000 ",
                     numbers),
        "f", 2);
    return r.ok() ? StateNumbersName(r->config.state) : std::string(r.status().message());
  };
  EXPECT_EQ(state(""), "4+4");
  EXPECT_EQ(state("--bf16"), "2+4");
  EXPECT_EQ(state("--bf16 --fp8-format hybrid"), "2+4");
  EXPECT_EQ(state("--bf16 --accumulate-allreduce-grads-in-fp32"), "2+4");
  EXPECT_EQ(state("--bf16 --grad-reduce-in-bf16"), "2+2");
  EXPECT_EQ(state("--fp16"), "2+2");
  EXPECT_EQ(state("--fp16 --accumulate-allreduce-grads-in-fp32"), "2+4");
  EXPECT_EQ(state("--fp16 --grad-reduce-in-bf16"), "f: --grad-reduce-in-bf16: requires --bf16");
  EXPECT_THAT(state("--bf16 --grad-reduce-in-bf16 --accumulate-allreduce-grads-in-fp32"),
              HasSubstr("not with --accumulate-allreduce-grads-in-fp32; give one of them"));
}

TEST(ReadMegatronFlags, DividesStagesAsMegatronDoes) {
  const auto layout = [](absl::string_view more) {
    const auto r = ReadWithFlags(more);
    return r.ok() ? absl::StrCat(r->config.scheme, " ", FormatMegatronLayout(r->stages))
                  : std::string(r.status().message());
  };
  const std::string four = "--pipeline-model-parallel-size 4 ";
  EXPECT_EQ(layout(four), "1f1b Et*8|(t*8|)*2t*8L");
  EXPECT_EQ(layout(four + "--num-layers-per-virtual-pipeline-stage 2 --global-batch-size 256"),
            "interleaved Et*2|(t*2|)*14t*2L");
  EXPECT_EQ(layout(four + "--num-virtual-stages-per-pipeline-rank 2 --global-batch-size 256"),
            "interleaved Et*4|(t*4|)*6t*4L");
  EXPECT_EQ(layout(four + "--decoder-first-pipeline-num-layers 6 "
                          "--decoder-last-pipeline-num-layers 6"),
            "1f1b Et*6|(t*10|)*2t*6L");
  EXPECT_EQ(layout(four + "--decoder-first-pipeline-num-layers 4 --num-layers 40 "
                          "--num-virtual-stages-per-pipeline-rank 2 --global-batch-size 256"),
            "interleaved Et*2|(t*6|)*3t*2|(t*6|)*2t*6L");
  EXPECT_EQ(layout(four + "--num-layers 30 --account-for-embedding-in-pipeline-split "
                          "--account-for-loss-in-pipeline-split"),
            "1f1b Et*7|(t*8|)*2t*7L");
  EXPECT_EQ(layout(four + "--pipeline-model-parallel-layout 'Et*7|(t*9|)*2t*7L'"),
            "1f1b Et*7|(t*9|)*2t*7L");
  EXPECT_EQ(layout(four + "--global-batch-size 256 --pipeline-model-parallel-layout "
                          "E|(t*5|)*6t*2L"),
            "interleaved E|(t*5|)*6t*2L");
}

TEST(ReadMegatronFlags, Parallelism) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r,
      ReadWithFlags(
          "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --sequence-parallel "
          "--num-virtual-stages-per-pipeline-rank 4 --use-distributed-optimizer "
          "--overlap-grad-reduce --overlap-param-gather --use-tp-pp-dp-mapping "
          "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 "
          "--fp8-format hybrid"));
  EXPECT_EQ(
      r.config.ToString(),
      "interleaved:P=2,T=4,D=8,V=4,b=1,M=16,sharding=optimizer,state=2+4,recompute=blocks,sequence,"
      "layout=9+8+8+8+8+8+8+9,steady_overlap,ranks=tp-pp-dp");
  EXPECT_EQ(r.type, NumberType::kFp8);
  EXPECT_THAT(r.not_priced, ElementsAre(HasSubstr("--overlap-param-gather: gathers")));
}

TEST(ReadMegatronFlags, ContextParallelism) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r, ReadWithFlags("--context-parallel-size 4 --pipeline-model-parallel-size 2"));
  EXPECT_EQ(r.config.context, 4);
  EXPECT_EQ(r.config.devices(), ReadWithFlags("")->config.devices());
  EXPECT_EQ(r.config.context_exchange, ContextExchange::kRing);  // p2p, by default
  EXPECT_THAT(r.assumptions, ElementsAre());
  const std::string written = MegatronSettings(r)->Text();
  EXPECT_THAT(written, HasSubstr("--context-parallel-size 4"));
  EXPECT_THAT(written, HasSubstr("--cp-comm-type p2p"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe all, ReadWithFlags("--context-parallel-size 4 --cp-comm-type all_gather"));
  EXPECT_EQ(all.config.context_exchange, ContextExchange::kGather);
  EXPECT_THAT(MegatronSettings(all)->Text(), HasSubstr("--cp-comm-type all_gather"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe heads,
                               ReadWithFlags("--context-parallel-size 4 --cp-comm-type a2a"));
  EXPECT_THAT(heads.not_priced, ElementsAre());
  EXPECT_EQ(heads.config.context_exchange, ContextExchange::kHeads);
  EXPECT_THAT(MegatronSettings(heads)->Text(), HasSubstr("--cp-comm-type a2a"));
  Recipe latent = heads;
  latent.model.latent.rank = 512;
  EXPECT_THAT(MegatronSettings(latent).status().message(),
              HasSubstr("context_exchange=ring would do"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe both,
                               ReadWithFlags("--context-parallel-size 4 --cp-comm-type a2a+p2p"));
  EXPECT_THAT(both.not_priced,
              ElementsAre(HasSubstr("--cp-comm-type a2a+p2p: keys and values are")));
}

// Ranks that divide a sample's tokens have the same weights, and divide the optimizer's state.
TEST(ReadMegatronFlags, ShardsOverAllThatHaveTheSameWeights) {
  const auto sharding = [](absl::string_view more, int64_t devices) {
    const auto r = ReadWithFlags(more, devices);
    return r.ok() ? std::string(ShardingName(r->config.sharding)) : "";
  };
  const std::string optimizer = "--use-distributed-optimizer ";
  EXPECT_EQ(sharding(optimizer + "--context-parallel-size 8", 8), "optimizer");
  EXPECT_EQ(sharding(optimizer + "--context-parallel-size 2 --pipeline-model-parallel-size 4", 8),
            "optimizer");
  EXPECT_EQ(sharding(optimizer + "--context-parallel-size 2 --tensor-model-parallel-size 4", 8),
            "optimizer");
  EXPECT_EQ(sharding(optimizer + "--context-parallel-size 2", 8), "optimizer");
  EXPECT_EQ(sharding(optimizer + "--tensor-model-parallel-size 8", 8), "replicated");
  EXPECT_EQ(sharding("--use-torch-fsdp2 --context-parallel-size 8", 8), "fully");
  EXPECT_EQ(sharding("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads "
                     "--context-parallel-size 8",
                     8),
            "gradients");
  EXPECT_EQ(sharding("--context-parallel-size 8", 8), "replicated");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r,
                               ReadWithFlags(optimizer + "--context-parallel-size 8", 8));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again,
                               ReadMegatronFlags(MegatronSettings(r)->Text(), "f", 8));
  EXPECT_EQ(again.config, r.config);
}

TEST(ReadMegatronFlags, RecomputationDependsOnTheAttention) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe fused, ReadWithFlags("--recompute-activations"));
  EXPECT_EQ(fused.config.recompute, Recompute::kSelective);  // it takes time, and saves nothing
  EXPECT_EQ(fused.config.modules, "core_attn");
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe scores, ReadWithFlags("--recompute-activations --attention-backend unfused"));
  EXPECT_EQ(scores.config.recompute, Recompute::kSelective);
  EXPECT_EQ(scores.config.modules, "");
  const std::string block =
      "--recompute-granularity full --recompute-method block "
      "--pipeline-model-parallel-size 4 --recompute-num-layers ";
  EXPECT_THAT(FlagsRefusal(block + "8"), HasSubstr("accepted: 1f1b:P=4,T=1,D=16,V=0,b=1,M=8,"
                                                   "state=2+4,recompute=blocks"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe some, ReadWithFlags(block + "3"));
  EXPECT_EQ(some.config.recompute, Recompute::kBlocks);
  EXPECT_EQ(some.config.rebuilt_blocks, 3);
}

TEST(ReadMegatronFlags, RecomputesModules) {
  const auto modules = [](absl::string_view more) {
    const auto r = ReadWithFlags(absl::StrCat("--recompute-granularity selective ", more));
    if (!r.ok()) return std::string(r.status().message());
    return absl::StrCat(RecomputeName(r->config.recompute), " ", r->config.modules, " ",
                        absl::StrJoin(r->not_priced, "; "));
  };
  EXPECT_EQ(modules(""), "selective core_attn ");
  EXPECT_EQ(modules("--recompute-modules mlp"), "selective mlp ");
  EXPECT_EQ(modules("--recompute-modules mlp core_attn layernorm"),
            "selective core_attn+layernorm+mlp ");
  EXPECT_EQ(modules("--recompute-modules moe moe_act shared_experts mla_up_proj"),
            "selective mla_up_proj+moe+moe_act+shared_experts ");
  EXPECT_EQ(modules("--attention-backend unfused --recompute-modules core_attn layernorm"),
            "selective core_attn+layernorm ");
  EXPECT_EQ(modules("--moe-layer-recompute"), "selective core_attn+moe ");
  // One that is not known, and the name of another system's way.
  EXPECT_EQ(modules("--recompute-modules mhc layernorm"),
            "selective layernorm --recompute-modules mhc: is kept, and not rebuilt");
  EXPECT_EQ(modules("--recompute-modules every_second_product"),
            "none  --recompute-modules every_second_product: is kept, and not rebuilt");
  EXPECT_THAT(modules("--recompute-method uniform"), HasSubstr("not with selective"));
}

// A group of layers keeps its first one's input; a stage has no more than it has.
TEST(ReadMegatronFlags, RebuildsGroupsOfLayers) {
  const std::string uniform =
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers ";
  const auto together = [&](absl::string_view more) {
    const auto r = ReadWithFlags(absl::StrCat(uniform, more));
    return r.ok() ? r->config.rebuilt_together : -1;
  };
  EXPECT_EQ(together("1"), 1);
  EXPECT_EQ(together("5"), 5);
  EXPECT_EQ(together("4 --pipeline-model-parallel-size 4"), 4);
  EXPECT_EQ(together("32 --pipeline-model-parallel-size 4"), 8);
  EXPECT_EQ(together("5000"), -1);
}

// Unfused, it is a pass over the logits for each line of its code.
TEST(ReadMegatronFlags, LossIsFusedWhereAskedFor) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe lines, ReadWithFlags(""));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe fused, ReadWithFlags("--cross-entropy-loss-fusion"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe in_place,
      ReadWithFlags("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"));
  EXPECT_EQ(lines.loss, LossImplementation::kUnfused);
  EXPECT_EQ(fused.loss, LossImplementation::kFused);
  EXPECT_EQ(in_place.loss, LossImplementation::kTransformerEngine);
  EXPECT_THAT(in_place.not_priced, testing::IsEmpty());
  EXPECT_THAT(in_place.unknown, testing::IsEmpty());
  const auto launches = [](const Recipe& r) {
    return RecipeGraph(r)->layers.back().operations(1, TokenSlice()).forward.size();
  };
  EXPECT_GT(launches(lines), launches(fused));
}

// All options that are not known are listed at once, with the nearest that is; the step is priced.
TEST(ReadMegatronFlags, ListsWhatItDoesNotKnow) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r, ReadWithFlags("--brand-new-thing 3 --tensor-model-parallel 8 --fast --lr 1 "
                                    "--fast --optimizer-cpu-offload --fp8-recipe mxfp8 "
                                    "--fp8-format e4m3 --main-grads-dtype fp32 "
                                    "--exp-avg-dtype bf16 --cpu-offloading-num-layers 0"));
  EXPECT_THAT(r.unknown, ElementsAre("--brand-new-thing 3: unknown", "--fast: unknown",
                                     "--tensor-model-parallel 8: unknown; did you mean "
                                     "--tensor-model-parallel-size?"));
  EXPECT_THAT(r.not_priced,
              ElementsAre("--fp8-recipe mxfp8: products and casts are those of tensorwise",
                          "--exp-avg-dtype bf16: the optimizer's values have 4 bytes",
                          "--optimizer-cpu-offload: the optimizer's values stay on the device"));
  EXPECT_THAT(r.passed_over,  // the harmless values, too
              ElementsAre("--cpu-offloading-num-layers", "--lr", "--main-grads-dtype"));
  std::string many;
  for (int i = 10; i < 43; ++i) absl::StrAppend(&many, " --lrs", i);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe first, ReadWithFlags("--num-layer 2" + many));
  ASSERT_EQ(first.unknown.size(), 34);
  EXPECT_EQ(first.unknown[32], "--lrs42: unknown");  // and the nearest of the first ones alone
  EXPECT_EQ(first.unknown[33], "--num-layer 2: unknown");
  // Where the recipe cannot be read, that may be why.
  EXPECT_EQ(
      std::string(ReadMegatronFlags("--num-layer 32 --hidden-size 64", "f", 8).status().message()),
      "f: --num-layers: missing; besides, --num-layer 32: unknown; did you mean "
      "--num-layers?");
}

TEST(ReadMegatronFlags, FsdpGathersBlockByBlock) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadWithFlags("--use-torch-fsdp2"));
  EXPECT_EQ(r.config.scheme, "interleaved");
  EXPECT_EQ(r.config.virtual_stages, 32);
  EXPECT_EQ(r.config.sharding, Sharding::kFully);
  EXPECT_EQ(r.config.residency, Residency::kMicroBatch);
}

// The model is given, so the message has a layout for it, which is read in its place.
TEST(ReadMegatronFlags, GivesALayoutWhereLayersDoNotDivide) {
  EXPECT_EQ(FlagsRefusal("--num-layers 30 --pipeline-model-parallel-size 4"),
            "--flags=f: --num-layers 30: 30 layers do not divide among 4 stages; nearest: "
            "--pipeline-model-parallel-layout 'Et*7|(t*8|)*2t*7L'");
  EXPECT_THAT(FlagsRefusal("--num-layers 30 --pipeline-model-parallel-size 4 "
                           "--account-for-loss-in-pipeline-split"),
              HasSubstr("t*7L', without --account-for-loss-in-pipeline-split"));
  EXPECT_THAT(FlagsRefusal("--num-layers 2 --pipeline-model-parallel-size 8"),
              HasSubstr("nearest: --pipeline-model-parallel-size 4"));
  EXPECT_THAT(FlagsRefusal("--num-layers 6 --pipeline-model-parallel-size 4 "
                           "--num-virtual-stages-per-pipeline-rank 3"),
              HasSubstr("nearest: --num-virtual-stages-per-pipeline-rank 2"));
  int read = 0;
  for (const int64_t layers : {3, 5, 6, 7, 13, 30, 31, 61, 126}) {
    for (const int pipeline : {2, 4, 8, 16}) {
      for (const int each : {1, 2, 3}) {
        const std::string stages =
            absl::StrCat("--num-layers ", layers, " --pipeline-model-parallel-size ", pipeline,
                         " --global-batch-size 1024");
        const std::string refused = FlagsRefusal(absl::StrCat(
            stages,
            each > 1 ? absl::StrCat(" --num-virtual-stages-per-pipeline-rank ", each) : ""));
        const size_t begin = refused.find("--pipeline-model-parallel-layout");
        if (begin == std::string::npos) continue;
        const std::string layout = refused.substr(begin, refused.find(", without") - begin);
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r,
                                     ReadWithFlags(absl::StrCat(stages, " ", layout)));
        EXPECT_EQ(r.stages.size(), pipeline * each) << layout;
        ++read;
      }
    }
  }
  EXPECT_GT(read, 60);
}

TEST(ReadMegatronFlags, SaysTheNearestThatWouldDo) {
  EXPECT_EQ(
      FlagsRefusal("--global-batch-size 100"),
      "--flags=f: --global-batch-size 100: must be a multiple of --micro-batch-size 1 times 64 "
      "data-parallel copies; nearest: --global-batch-size 128");
  EXPECT_THAT(FlagsRefusal("--tensor-model-parallel-size 3"),
              HasSubstr("must divide --num-attention-heads 32; nearest: "
                        "--tensor-model-parallel-size 2"));
  EXPECT_THAT(FlagsRefusal("--tensor-model-parallel-size 16"),
              HasSubstr("must divide --num-query-groups 8; nearest: "
                        "--tensor-model-parallel-size 8"));
  EXPECT_THAT(FlagsRefusal("--context-parallel-size 3"),
              HasSubstr("equal parts; nearest: --seq-length"));
  EXPECT_THAT(FlagsRefusal("--num-layers $LAYERS"),
              HasSubstr("a variable that the text does not set"));
  EXPECT_THAT(FlagsRefusal("", 0), HasSubstr("--devices: missing"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe launched,
      ReadMegatronFlags(absl::StrCat("torchrun --nproc_per_node 8 --nnodes 2 train.py ", kLlama),
                        "f", 0));
  EXPECT_EQ(launched.config.data, 16);
  EXPECT_THAT(FlagsRefusal("--pipeline-model-parallel-size 3 --num-layers 33", 64),
              HasSubstr("must divide all 64; nearest: --devices=63"));
}

// As a shell would launch it: neither another array, nor another branch, nor another command.
TEST(ReadMegatronFlags, ReadsAScriptAsAShellWould) {
  const std::string rest =
      "--hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 "
      "--vocab-size 1000 --micro-batch-size 1 --global-batch-size 8 --bf16 ";
  const auto layers = [&](absl::string_view script, const ScriptChoice& choice = {}) {
    const auto r = ReadMegatronFlags(script, "f", 4, choice);
    return r.ok() ? absl::StrCat(r->model.layers, "x", r->config.pipeline)
                  : std::string(r.status().message());
  };
  EXPECT_EQ(
      layers(absl::StrCat("ARGS=\"--num-layers 8\n  ", rest, "\"\ntorchrun pretrain_gpt.py $ARGS")),
      "8x1");
  EXPECT_EQ(layers(absl::StrCat("A=(--num-layers 80)\nB=(--num-layers 8 "
                                "--pipeline-model-parallel-size 4)\ntorchrun pretrain_gpt.py "
                                "${A[@]} ",
                                rest)),
            "80x1");
  EXPECT_EQ(layers(absl::StrCat("ray stop --force\nsrun --nodes=1 --gpus 4 python pretrain_gpt.py "
                                "--num-layers 8 ",
                                rest)),
            "8x1");
  const std::string sized = absl::StrCat(
      "case $1 in small) N=8 ;; large) N=80 ;; esac\n"
      "torchrun --nproc-per-node $GPUS pretrain_gpt.py --save $DIR --num-layers $N ",
      rest);
  EXPECT_THAT(layers(sized), HasSubstr("f:1: 'case $1' decides about options of the launch"));
  EXPECT_EQ(layers(sized, {"", "1=large"}), "80x1");
  // The number of GPUs counts where no other is given.
  EXPECT_THAT(ReadMegatronFlags(sized, "f", 0, {"", "1=large"}).status().message(),
              HasSubstr("--nproc-per-node $GPUS: a variable that the text does not set; give "
                        "--set=GPUS=..."));
}

// What Megatron-LM's options say, in the other direction.
TEST(MegatronSettings, ReadBackOverAGrid) {
  int read = 0;
  for (const char* parallelism :
       {"", "--tensor-model-parallel-size 2",
        "--tensor-model-parallel-size 8 --sequence-parallel --tp-comm-overlap",
        "--tensor-model-parallel-size 2 --context-parallel-size 4 --cp-comm-type all_gather",
        "--context-parallel-size 2 --cp-comm-type p2p",
        "--context-parallel-size 2 --cp-comm-type a2a",
        "--use-tp-pp-dp-mapping --tensor-model-parallel-size 2 --sequence-parallel"}) {
    for (const char* stages :
         {"", "--pipeline-model-parallel-size 4",
          "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 4",
          "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4 "
          "--no-overlap-p2p-communication",
          "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*7|(t*9|)*2t*7L'",
          "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
          "'E|t*16|t*15|tL' --microbatch-group-size-per-virtual-pipeline-stage 4 "
          "--overlap-p2p-communication-warmup-flush"}) {
      for (const char* sharding :
           {"", "--use-distributed-optimizer", "--overlap-grad-reduce",
            "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"}) {
        for (const char* rest :
             {"",
              "--recompute-granularity full --recompute-method uniform "
              "--recompute-num-layers 1 --fp8-format hybrid",
              "--recompute-activations --attention-backend unfused --add-qkv-bias",
              "--recompute-granularity selective --recompute-modules mlp layernorm core_attn",
              "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
              "--optimizer sgd --micro-batch-size 2 --normalization LayerNorm --kv-channels 64 "
              "--grad-reduce-in-bf16 --cross-entropy-loss-fusion",
              "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"}) {
          const std::string text = absl::StrCat(parallelism, " ", stages, " ", sharding, " ", rest,
                                                " --global-batch-size 1024");
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadWithFlags(text));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings s, MegatronSettings(r));
          EXPECT_THAT(s.notes(), ElementsAre()) << text;
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again, ReadMegatronFlags(s.Text(), "f", 64));
          EXPECT_EQ(again.config, r.config) << text << "\n" << s.Text();
          EXPECT_EQ(ModelText(again.model), ModelText(r.model));
          EXPECT_EQ(BuildGpt(again.model)->num_parameters(), BuildGpt(r.model)->num_parameters());
          EXPECT_EQ(again.type, r.type);
          EXPECT_EQ(again.attention, r.attention);
          EXPECT_EQ(again.loss, r.loss);
          EXPECT_EQ(again.optimizer_tensors, r.optimizer_tensors);
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings twice, MegatronSettings(again));
          EXPECT_EQ(twice.Text(), s.Text());
          ++read;
        }
      }
    }
  }
  EXPECT_EQ(read, 1176);
}

TEST(MegatronSettings, RefusesByName) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadWithFlags("--pipeline-model-parallel-size 4"));
  const auto refusal = [&](const auto& change) {
    Recipe other = r;
    change(&other.config);
    const auto s = MegatronSettings(other);
    return s.ok() ? "accepted" : std::string(s.status().message());
  };
  EXPECT_THAT(refusal([](StepConfig* c) { c->scheme = "zbv"; }),
              HasSubstr("scheme=zbv: Megatron-LM runs 1F1B and interleaved stages alone"));
  EXPECT_THAT(refusal([](StepConfig* c) { c->sharding = Sharding::kFully; }),
              HasSubstr("sharding=fully: Megatron-LM's FSDP has no pipeline"));
  EXPECT_THAT(refusal([](StepConfig* c) { c->recompute = Recompute::kFull; }),
              HasSubstr("recompute=blocks would do"));
  EXPECT_THAT(refusal([](StepConfig* c) { c->ranks = RankOrder::kTensorDataMirrored; }),
              HasSubstr("ranks=tp-dp-mirror"));
  EXPECT_THAT(refusal([](StepConfig* c) { c->slices = 4; }), HasSubstr("slices=4"));
  EXPECT_THAT(refusal([](StepConfig* c) {
                c->recompute = Recompute::kSelective;
                c->modules = "every_second_product";
              }),
              HasSubstr("Megatron-LM rebuilds no single products"));
  EXPECT_THAT(refusal([](StepConfig* c) {
                c->recompute = Recompute::kBlocks;
                c->rebuilt_every = 2;
              }),
              HasSubstr("rebuilt_every=2: Megatron-LM is not told of it"));
  EXPECT_THAT(refusal([](StepConfig* c) {
                c->recompute = Recompute::kBlocks;
                c->rebuilt_blocks = c->rebuilt_together = 2;
              }),
              HasSubstr("or all in groups"));
}

TEST(ChangesBetween, NamesWhatIsNewAndWhatGoes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe before,
      ReadWithFlags("--pipeline-model-parallel-size 4 --recompute-granularity full "
                    "--recompute-method uniform "
                    "--recompute-num-layers 1"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe after,
                               ReadWithFlags("--pipeline-model-parallel-size 2 "
                                             "--pipeline-model-parallel-layout 'Et*17|t*15L'"));
  EXPECT_EQ(
      ChangesBetween(*MegatronSettings(before), *MegatronSettings(after)),
      "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*17|t*15L' without "
      "--recompute-granularity --recompute-method --recompute-num-layers");
  EXPECT_EQ(ChangesBetween(*MegatronSettings(after), *MegatronSettings(after)), "");
}

}  // namespace
}  // namespace pipelab
