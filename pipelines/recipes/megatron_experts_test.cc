// Experts, latent attention and windows in Megatron-LM's options and torchtitan's keys.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/recipes/deepspeed_json.h"
#include "pipelines/recipes/layer_pattern.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/torchtitan_toml.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMixtral[] =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --seq-length 4096 "
    "--max-position-embeddings 4096 --position-embedding-type rope --rotary-base 1000000 "
    "--normalization RMSNorm --swiglu --disable-bias-linear "
    "--untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 "
    "--vocab-size 32000 --bf16 --micro-batch-size 1 --global-batch-size 256 "
    "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm "
    "--moe-token-dispatcher-type alltoall ";

// DeepSeek-V3 of Megatron-LM's users, without its head for further tokens.
constexpr char kDeepSeek[] =
    "--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 "
    "--kv-channels 128 --seq-length 4096 --max-position-embeddings 4096 "
    "--position-embedding-type rope --rotary-base 10000 --normalization RMSNorm --swiglu "
    "--disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 "
    "--attention-dropout 0 --vocab-size 129280 --make-vocab-size-divisible-by 1 --bf16 "
    "--micro-batch-size 1 --global-batch-size 256 --multi-latent-attention --q-lora-rank 1536 "
    "--kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 "
    "--qk-layernorm --num-experts 256 --moe-layer-freq '([0]*3+[1]*58)' "
    "--moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --moe-router-topk 8 "
    "--moe-router-score-function sigmoid --moe-router-topk-scaling-factor 2.5 "
    "--moe-router-num-groups 8 --moe-router-group-topk 4 "
    "--moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 1e-4 --moe-grouped-gemm "
    "--moe-token-dispatcher-type alltoall ";

absl::StatusOr<Recipe> ReadExperts(absl::string_view model, absl::string_view more,
                                   int64_t devices = 64) {
  return ReadMegatronFlags(absl::StrCat(model, more), "--flags=f", devices);
}

std::string ModelRefusal(absl::string_view model, absl::string_view more) {
  const auto recipe = ReadExperts(model, more);
  return recipe.ok() ? "accepted: " + recipe->config.ToString()
                     : std::string(recipe.status().message());
}

TEST(ReadMegatronFlags, ExpertsAreThePublishedOnes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe mixtral, ReadExperts(kMixtral, ""));
  EXPECT_EQ(BuildGpt(mixtral.model)->num_parameters(), 46702792704);
  EXPECT_THAT(mixtral.assumptions, IsEmpty());
  EXPECT_TRUE(mixtral.model.experts.normalized);
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe deepseek,
      ReadExperts(kDeepSeek,
                  "--pipeline-model-parallel-size 2 --expert-model-parallel-size 32 "
                  "--pipeline-model-parallel-layout 'Et*31|t*30L'"));
  EXPECT_EQ(BuildGpt(deepseek.model)->num_parameters(), 671026404352);
  EXPECT_EQ(ModelText(deepseek.model),
            "61 layers, hidden 7168, 128 heads, feed-forward 18432 (SwiGLU), 129280 words, 4096 "
            "tokens, latent attention of 512 (queries 1536), 256 experts of 2048 (8 chosen, 1 "
            "shared) behind 3 dense layers");
  EXPECT_THAT(deepseek.assumptions, IsEmpty());
  EXPECT_EQ(deepseek.config.experts, 32);
  EXPECT_EQ(deepseek.model.experts.balance, 1e-4);
  EXPECT_EQ(deepseek.model.experts.nodes, 8);
  EXPECT_EQ(deepseek.model.experts.scale, 2.5);
}

// gpt-oss: products of attention, router and experts have biases, and each head a sink.
TEST(ReadMegatronFlags, BiasesAndSinks) {
  const std::string sizes =
      "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
      "--max-position-embeddings 1024 --vocab-size 50257 --bf16 --micro-batch-size 1 "
      "--global-batch-size 32 --swiglu --num-experts 8 --moe-router-topk 2 "
      "--moe-ffn-hidden-size 1024 --moe-grouped-gemm --moe-token-dispatcher-type alltoall ";
  const auto count = [&](const char* more) {
    const absl::StatusOr<Recipe> r = ReadExperts(sizes, more, /*devices=*/4);
    EXPECT_THAT(r, IsOk());
    return r.ok() ? BuildGpt(r->model)->num_parameters() : 0;
  };
  constexpr int64_t c = 1024, f = 1024, experts = 8, heads = 16;
  const int64_t weights = 4 * c * c + c * experts + experts * 3 * c * f;
  const int64_t biases = 3 * c + c + experts + experts * (2 * f + c), norms = 2 * 2 * c;
  const int64_t rest = 50304 * c + 1024 * c + 2 * c;  // one table of padded words, positions, norm
  EXPECT_EQ(count("--softmax-type learnable"), 8 * (weights + biases + norms + heads) + rest);
  EXPECT_EQ(count("--softmax-type vanilla"), 8 * (weights + biases + norms) + rest);
  EXPECT_EQ(count(""), count("--softmax-type off-by-one"));
  EXPECT_EQ(count("--softmax-type learnable --disable-bias-linear"),
            8 * (weights + norms + heads) + rest);
  EXPECT_THAT(ModelRefusal(sizes, "--softmax-type plain"),
              HasSubstr("must be vanilla, off-by-one, learnable"));
  EXPECT_THAT(ModelRefusal(sizes, "--moe-shared-expert-intermediate-size 1024"),
              HasSubstr("shared experts have no biases; nearest: --disable-bias-linear"));
  EXPECT_THAT(ModelRefusal(kDeepSeek, "--softmax-type learnable"),
              HasSubstr("latent attention has no sinks here; nearest: vanilla"));
}

// With the words as the published weights have them, nothing else is read into the model.
TEST(ReadMegatronFlags, AssumesByName) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r, ReadExperts(kMixtral,
                                  "--moe-token-dispatcher-type alltoall --moe-aux-loss-coeff "
                                  "0.01 --moe-expert-capacity-factor 1.5 --qk-layernorm "
                                  "--moe-shared-expert-overlap"));
  EXPECT_THAT(r.assumptions,
              ElementsAre(HasSubstr("aux_loss: the balancing loss is one for each sample"),
                          HasSubstr("rows are those of an even load")));
  EXPECT_THAT(r.not_priced, ElementsAre(HasSubstr("--moe-shared-expert-overlap: exchanges")));
  EXPECT_TRUE(r.model.query_key_norms);
}

// How rows go to experts, and what runs beside that, is priced as the engine prices it.
TEST(ReadMegatronFlags, ExchangesOfExperts) {
  const std::string eight = "--expert-model-parallel-size 8 ";
  const std::string stages =
      eight + "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 ";
  const std::string overlap = "--overlap-moe-expert-parallel-comm ";
  const auto exchanges = [&](absl::string_view more, absl::string_view model = kMixtral) {
    const auto r = ReadExperts(model, more);
    if (!r.ok()) return std::string(r.status().message());
    const StepConfig& c = r->config;
    return absl::StrCat(DispatchName(c.dispatch), " ", ExchangesName(c.exchanges), " ",
                        absl::StrJoin(r->not_priced, "; "));
  };
  EXPECT_EQ(exchanges(eight), "rows waited ");
  for (const char* flex :
       {"--moe-token-dispatcher-type flex", "--moe-token-dispatcher-type flex --moe-enable-deepep",
        "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep",
        "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep"}) {
    EXPECT_EQ(exchanges(eight + flex), "once_per_node waited ") << flex;
    EXPECT_EQ(exchanges(flex), "rows waited ") << flex;  // all experts are on each device
  }
  EXPECT_THAT(exchanges(eight + "--moe-token-dispatcher-type flex --moe-enable-deepep "
                                "--moe-flex-dispatcher-backend hybridep"),
              HasSubstr("give one of them"));
  EXPECT_EQ(exchanges(eight + "--moe-token-dispatcher-type allgather"),
            "rows waited --moe-token-dispatcher-type allgather: rows of experts are exchanged by "
            "all-to-all");
  EXPECT_THAT(exchanges(eight + "--moe-enable-deepep"),
              HasSubstr("requires --moe-token-dispatcher-type flex"));
  EXPECT_EQ(exchanges(eight + overlap), "rows beside ");
  EXPECT_EQ(exchanges(stages + overlap), "rows beside ");
  EXPECT_EQ(exchanges(stages + overlap + "--delay-wgrad-compute"), "rows beside_delayed ");
  EXPECT_EQ(exchanges(eight + "--delay-wgrad-compute"),
            "rows waited --delay-wgrad-compute: without --overlap-moe-expert-parallel-comm no "
            "weight gradient is delayed");
  EXPECT_THAT(exchanges(overlap), HasSubstr("requires experts over several devices"));
  EXPECT_THAT(exchanges(eight + "--pipeline-model-parallel-size 2 " + overlap),
              HasSubstr("nearest: --num-virtual-stages-per-pipeline-rank 2"));
  EXPECT_THAT(exchanges(eight + overlap +
                        "--recompute-granularity full --recompute-method uniform "
                        "--recompute-num-layers 1"),
              HasSubstr("nearest: selective"));
}

TEST(ReadMegatronFlags, SetsOfCopiesDivideTheOptimizer) {
  const auto shards = [](absl::string_view more, absl::string_view model = kMixtral) {
    const auto r = ReadExperts(model, absl::StrCat("--num-distributed-optimizer-instances ", more));
    if (!r.ok()) return std::string(r.status().message());
    return absl::StrCat(ShardingName(r->config.sharding), " ", r->config.shards);
  };
  EXPECT_EQ(shards("4 --use-distributed-optimizer"), "optimizer 16");
  EXPECT_EQ(shards("2 --use-distributed-optimizer --context-parallel-size 2 "
                   "--pipeline-model-parallel-size 4"),
            "optimizer 8");
  EXPECT_EQ(shards("8 --use-distributed-optimizer --expert-model-parallel-size 8"), "optimizer 8");
  EXPECT_EQ(shards("1 --use-distributed-optimizer"), "optimizer 0");
  EXPECT_EQ(shards("64 --use-distributed-optimizer"), "replicated 0");
  EXPECT_EQ(shards("4 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params"),
            "fully 16");
  EXPECT_THAT(shards("4"), HasSubstr("requires --use-distributed-optimizer"));
  EXPECT_THAT(shards("3 --use-distributed-optimizer"),
              HasSubstr("must divide the 64 ranks with the same weights; nearest: "
                        "--num-distributed-optimizer-instances 2"));
  EXPECT_THAT(shards("16 --use-distributed-optimizer --expert-model-parallel-size 8"),
              HasSubstr("the 8 ranks with the same weights of experts"));
}

TEST(ReadMegatronFlags, ExpertsOfAGroupAreSplitOrWhole) {
  const std::string degrees =
      "--tensor-model-parallel-size 4 --sequence-parallel --expert-model-parallel-size 8 ";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe split, ReadExperts(kMixtral, degrees));
  EXPECT_THAT(split.config.ToString(), HasSubstr("T=4,D=16,V=0,b=1,M=16,E=8,state=2+4,sequence"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe whole,
                               ReadExperts(kMixtral, degrees + "--expert-tensor-parallel-size 1"));
  EXPECT_TRUE(whole.config.whole_experts);
}

TEST(ReadMegatronFlags, Windows) {
  const auto windows = [](absl::string_view more) {
    const auto r = ReadExperts(kMixtral, more);
    return r.ok() ? r->model.windows : std::vector<int64_t>{-1};
  };
  EXPECT_THAT(windows("--window-size 1023,0"), ElementsAre(1024));
  EXPECT_THAT(windows("--window-size '(127, 0)' --window-attn-skip-freq 2"), ElementsAre(128, 0));
  EXPECT_THAT(windows("--window-size -1,0"), IsEmpty());
  const std::vector<int64_t> layers =
      windows("--window-size 1023,0 --window-attn-skip-freq '([0]*2+[1]*6)*4'");
  ASSERT_EQ(layers.size(), 32);
  EXPECT_EQ(layers[9], 0);
  EXPECT_EQ(layers[10], 1024);
}

TEST(MegatronSettings, ModelsWithExpertsReadBackOverAGrid) {
  int read = 0;
  for (const char* model : {kMixtral, kDeepSeek}) {
    const bool latent = model == kDeepSeek;
    for (const char* experts :
         {"", "--expert-model-parallel-size 2", "--expert-model-parallel-size 8",
          "--expert-model-parallel-size 8 --tensor-model-parallel-size 2 --sequence-parallel",
          // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
          "--expert-model-parallel-size 8 --tensor-model-parallel-size 2 --sequence-parallel "
          "--expert-tensor-parallel-size 1"}) {
      for (const char* router :
           {"", "--moe-router-score-function softmax --moe-router-pre-softmax",
            "--moe-router-score-function sigmoid --moe-router-num-groups 4 "
            "--moe-router-group-topk 2 --moe-router-topk-scaling-factor 1.5",
            "--moe-shared-expert-intermediate-size 28672 --moe-ffn-hidden-size 14336",
            "--moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 0.001 "
            "--moe-expert-capacity-factor 1.25",
            "--moe-token-dispatcher-type flex --moe-enable-deepep --use-distributed-optimizer "
            "--num-distributed-optimizer-instances 2"}) {
        for (const char* attention :
             {"", "--qk-layernorm", "--window-size 511,0",
              "--window-size 511,0 --window-attn-skip-freq 4", "--position-embedding-type none",
              "--softmax-type learnable"}) {
          const bool sinks = absl::StrContains(attention, "softmax");
          if (latent && (sinks || absl::StrContains(attention, "window"))) continue;
          const std::string text = absl::StrCat(experts, " ", router, " ", attention);
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadExperts(model, text));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings s, MegatronSettings(r));
          EXPECT_THAT(s.notes(), IsEmpty()) << text;
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again, ReadMegatronFlags(s.Text(), "f", 64));
          EXPECT_EQ(again.config, r.config) << text << "\n" << s.Text();
          // A list of windows for each layer stands for every N-th.
          PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph before, BuildGpt(r.model));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph after, BuildGpt(again.model));
          ASSERT_EQ(before.layers.size(), after.layers.size());
          for (size_t i = 0; i < before.layers.size(); ++i) {
            EXPECT_EQ(before.layers[i].kind, after.layers[i].kind);
            EXPECT_EQ(before.layers[i].attributes, after.layers[i].attributes) << text;
          }
          EXPECT_EQ(before.num_parameters(), after.num_parameters());
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings twice, MegatronSettings(again));
          EXPECT_EQ(twice.Text(), s.Text());
          ++read;
        }
      }
    }
  }
  EXPECT_EQ(read, 270);
}

TEST(MegatronSettings, ExchangesReadBack) {
  for (const char* more :
       {"--overlap-moe-expert-parallel-comm",
        "--overlap-moe-expert-parallel-comm --delay-wgrad-compute",
        "--moe-token-dispatcher-type flex --overlap-moe-expert-parallel-comm "
        "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const Recipe r,
        ReadExperts(kMixtral, absl::StrCat("--expert-model-parallel-size 8 ", more)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again,
                                 ReadMegatronFlags(MegatronSettings(r)->Text(), "f", 64));
    EXPECT_EQ(again.config, r.config);
    EXPECT_NE(again.config.exchanges, Exchanges::kWaited);
  }
}

// One block more with the norms and the matrix in front of it and the norm behind it, in the stage
// of the loss, whether the layout says so or there is none.
TEST(ReadMegatronFlags, HeadsForFurtherTokens) {
  const std::string gpt =
      "--hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings "
      "1024 --vocab-size 50257 --bf16 --micro-batch-size 1 --global-batch-size 32 --num-layers 8 "
      "--pipeline-model-parallel-size 4 ";
  constexpr int64_t c = 1024, block = 12 * c * c + 13 * c, more = 2 * 2 * c + 2 * c * c + 2 * c;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe none, ReadExperts(gpt, "", 4));
  EXPECT_EQ(none.config.layout, "5+4+4+5");
  const int64_t without = BuildGpt(none.model)->num_parameters();
  for (const auto& [options, heads, layout] : {
           std::make_tuple("--mtp-num-layers 1 --pipeline-model-parallel-layout Et*2|t*2|t*2|t*2mL",
                           1, "5+4+4+9"),
           std::make_tuple("--mtp-num-layers 1", 1, "5+4+4+9"),
           std::make_tuple("--mtp-num-layers 2 --pipeline-model-parallel-layout Et*3|t*3|t*2|mmL",
                           2, "7+6+4+9"),
           std::make_tuple("--mtp-num-layers 0", 0, "5+4+4+5"),
       }) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadExperts(gpt, options, 4));
    EXPECT_EQ(r.config.layout, layout);
    EXPECT_EQ(BuildGpt(r.model)->num_parameters(), without + heads * (block + more)) << options;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings s, MegatronSettings(r));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again, ReadMegatronFlags(s.Text(), "f", 4));
    EXPECT_EQ(again.config, r.config) << s.Text();
    EXPECT_EQ(again.model.further_tokens, heads);
  }
  EXPECT_THAT(ModelRefusal(gpt, "--pipeline-model-parallel-layout Et*2|t*2|t*2|t*2mL"),
              HasSubstr("has 1 heads for further tokens (m); nearest: --mtp-num-layers 1"));
  EXPECT_THAT(
      ModelRefusal(gpt, "--mtp-num-layers 1 --pipeline-model-parallel-layout Et*2|t*2|t*2|t*2L"),
      HasSubstr("has 0 heads for further tokens (m); nearest: with m in front of L"));
  EXPECT_THAT(
      ModelRefusal(gpt, "--mtp-num-layers 1 --pipeline-model-parallel-layout Et*2|t*2|t*4m|L"),
      HasSubstr("are with the loss here"));
  // DeepSeek-V3's, of a latent attention and all experts.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe deepseek, ReadExperts(kDeepSeek, "--mtp-num-layers 1"));
  constexpr int64_t d = 7168, q = 1536, kv = 512, heads = 128;
  constexpr int64_t latent =
      d + d * q + q + q * heads * 192 + d * (kv + 64) + kv + kv * heads * 256 + heads * 128 * d;
  constexpr int64_t experts = d + d * 256 + int64_t{257} * 3 * d * 2048;
  EXPECT_EQ(BuildGpt(deepseek.model)->num_parameters(),
            671026404352 + 2 * d + 2 * d * d + latent + experts + d);
}

TEST(MegatronSettings, RefusesOfExpertsByName) {
  const auto refusal = [](absl::string_view model, const auto& change) {
    Recipe r = ReadExperts(model, "").value();
    change(&r);
    const auto s = MegatronSettings(r);
    return s.ok() ? "accepted" : std::string(s.status().message());
  };
  EXPECT_THAT(refusal(kMixtral, [](Recipe* r) { r->config.tensor = 2; }),
              HasSubstr("T=2: with experts Megatron-LM needs sequence parallelism; add sequence"));
  EXPECT_THAT(refusal(kMixtral,
                      [](Recipe* r) {
                        r->model.windows = {128, 256};
                      }),
              HasSubstr("windows of 128 and 256: Megatron-LM has one size of windows"));
  EXPECT_THAT(refusal(kMixtral, [](Recipe* r) { r->model.positions = Positions::kLearned; }),
              HasSubstr("a table or rotary ones, not both"));
  EXPECT_THAT(refusal(kDeepSeek, [](Recipe* r) { r->model.experts.normalized = false; }),
              HasSubstr("shares of the chosen sigmoids"));
  EXPECT_EQ(refusal(kMixtral, [](Recipe* r) { r->model.windows = {4096}; }), "accepted");
}

TEST(LayerPattern, IsAListOfPython) {
  using Layers = std::vector<bool>;
  EXPECT_EQ(*ParseLayerPattern("([1]*3+[0]*1)*2", 8), Layers({1, 1, 1, 0, 1, 1, 1, 0}));
  EXPECT_EQ(*ParseLayerPattern("[0,1]+2*[1]", 4), Layers({0, 1, 1, 1}));
  EXPECT_EQ(FormatLayerPattern({false, true, true}), "([0]*1+[1]*2)");
  for (const char* wrong : {"", "[", "[2]", "[0]*", "2*", "([0]", "[0]]", "[0]*9999999999999999999",
                            "[0][1]", "((((((((((((((((((((([0])))))))))))))))))))))", "[0]*1"}) {
    EXPECT_THAT(ParseLayerPattern(wrong, 2),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 layers")))
        << wrong;
  }
  for (int bits = 0; bits < 64; ++bits) {
    Layers layers;
    for (int i = 0; i < 6; ++i) layers.push_back((bits >> i) & 1);
    EXPECT_EQ(*ParseLayerPattern(FormatLayerPattern(layers), 6), layers);
  }
}

absl::StatusOr<Recipe> ReadToml(absl::string_view model, absl::string_view parallelism) {
  return ReadTorchtitanToml(
      absl::StrCat("[model]\n", model, "\n[training]\nlocal_batch_size = 8\nseq_len = 4096\n",
                   "[parallelism]\n", parallelism, "\n[activation_checkpoint]\nmode = \"full\"\n"),
      "--toml=t", 64);
}

TEST(ReadTorchtitanToml, FlavorsAreThePublishedOnes) {
  const auto parameters = [](absl::string_view name, absl::string_view flavor) {
    const auto r = ReadToml(absl::StrCat("name = \"", name, "\"\nflavor = \"", flavor, "\""), "");
    return r.ok() ? BuildGpt(r->model)->num_parameters() : -1;
  };
  EXPECT_EQ(parameters("qwen3", "0.6B"), 596049920);
  EXPECT_EQ(parameters("qwen3", "30B-A3B"), 30532122624);
  EXPECT_EQ(parameters("qwen3", "235B-A22B"), 235093634560);
  EXPECT_EQ(parameters("deepseek_v3", "16B"), 15706484224);    // DeepSeek-V2-Lite
  EXPECT_EQ(parameters("deepseek_v3", "236B"), 235741434880);  // DeepSeek-V2
  EXPECT_EQ(parameters("deepseek_v3", "671B"), 671026404352);
}

TEST(TorchtitanSettings, ExpertsReadBackOverAGrid) {
  int read = 0;
  for (const char* model :
       {"name = \"qwen3\"\nflavor = \"30B-A3B\"", "name = \"deepseek_v3\"\nflavor = \"16B\"",
        "name = \"deepseek_v3\"\nflavor = \"671B\""}) {
    for (const char* parallelism :
         {"expert_parallel_degree = 1", "expert_parallel_degree = 64",
          "expert_parallel_degree = 16\npipeline_parallel_degree = 2\n"
          "pipeline_parallel_schedule = \"Interleaved1F1B\"",
          "expert_parallel_degree = 8\ntensor_parallel_degree = 4",
          "expert_parallel_degree = 8\ntensor_parallel_degree = 4\n"
          "expert_tensor_parallel_degree = 4",
          "expert_parallel_degree = 8\ncontext_parallel_degree = 2",
          "expert_parallel_degree = 8\ndata_parallel_replicate_degree = 2"}) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, ReadToml(model, parallelism));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings s, TorchtitanSettings(r));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again, ReadTorchtitanToml(s.Text(), "t", 64));
      EXPECT_EQ(again.config, r.config) << s.Text();
      EXPECT_EQ(ModelText(again.model), ModelText(r.model));
      ++read;
    }
  }
  EXPECT_EQ(read, 21);
}

TEST(TorchtitanSettings, RefusesExpertsByName) {
  const auto refusal = [](absl::string_view parallelism, absl::string_view flavor = "16B") {
    const auto r =
        ReadToml(absl::StrCat("name = \"deepseek_v3\"\nflavor = \"", flavor, "\""), parallelism);
    return r.ok() ? "accepted" : std::string(r.status().message());
  };
  EXPECT_THAT(refusal("expert_parallel_degree = 3"), HasSubstr("64 experts; nearest: 2"));
  EXPECT_THAT(refusal("expert_parallel_degree = 2\ntensor_parallel_degree = 4"),
              HasSubstr("must be 4 times a divisor of the 16 of data_parallel_shard_degree; "
                        "nearest: 4"));
  EXPECT_THAT(refusal("expert_parallel_degree = 8\ntensor_parallel_degree = 4\n"
                      "expert_tensor_parallel_degree = 2"),
              HasSubstr("expert_tensor_parallel_degree: 2: must be 1 or"));
  EXPECT_THAT(refusal("", "16"), HasSubstr("must be debugmodel, 16B, 236B, 671B"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      Recipe r, ReadToml("name = \"deepseek_v3\"\nflavor = \"16B\"", "expert_parallel_degree = 8"));
  r.config.sharding = Sharding::kReplicated;
  EXPECT_THAT(TorchtitanSettings(r), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("E=8: torchtitan divides experts over")));
  r.config.sharding = Sharding::kOptimizer;
  r.config.scheme = "1f1b";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DeepSpeedConfig d, DeepSpeedJson(r));
  EXPECT_THAT(d.notes, testing::Contains(HasSubstr("MoE(num_experts=64, ep_size=8, k=6)")));
  r.config.shards = 8;
  EXPECT_THAT(DeepSpeedJson(r), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("shards=8: DeepSpeed has sets of copies")));
  r.config.sharding = Sharding::kFully;
  EXPECT_THAT(DeepSpeedJson(r), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("takes ZeRO-2 at most with experts")));
  r.model.experts = ExpertChoice();
  r.config.experts = 1;
  EXPECT_EQ(DeepSpeedJson(r)->json["zero_optimization"]["mics_shard_size"], 8);
}

TEST(ReadMegatronFlags, AnyBlocksMayHaveExperts) {
  const int64_t all = BuildGpt(ReadExperts(kMixtral, "")->model)->num_parameters();
  constexpr int64_t more = 7 * int64_t{3} * 4096 * 14336 + 8 * 4096;  // of a block with experts
  for (const auto& [pattern, dense] :
       {std::make_pair("1", 0), std::make_pair("2", 16), std::make_pair("'([0]*3+[1]*29)'", 3),
        std::make_pair("'([0,1]*15+[1,1])'", 15), std::make_pair("'([1]*30+[0]*2)'", 2)}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r,
                                 ReadExperts(kMixtral, absl::StrCat("--moe-layer-freq ", pattern)));
    EXPECT_EQ(BuildGpt(r.model)->num_parameters(), all - dense * more) << pattern;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings s, MegatronSettings(r));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again, ReadMegatronFlags(s.Text(), "f", 64));
    EXPECT_EQ(again.config, r.config) << s.Text();
    EXPECT_EQ(again.model.expert_blocks, r.model.expert_blocks);
    EXPECT_EQ(again.model.dense_blocks, r.model.dense_blocks);
  }
}

TEST(ReadMegatronFlags, SaysTheNearestOfExperts) {
  EXPECT_THAT(ModelRefusal(kMixtral, "--expert-model-parallel-size 3"),
              HasSubstr("must divide --num-experts 8; nearest: --expert-model-parallel-size 2"));
  EXPECT_THAT(ModelRefusal(kMixtral,
                           "--num-experts 64 --pipeline-model-parallel-size 4 "
                           "--expert-model-parallel-size 32"),
              HasSubstr("must divide the 16 devices of a pipeline stage that have the same part of "
                        "them; nearest: --expert-model-parallel-size 16"));
  EXPECT_THAT(ModelRefusal(kMixtral, "--tensor-model-parallel-size 2"),
              HasSubstr("with experts requires --sequence-parallel"));
  EXPECT_THAT(ModelRefusal(kMixtral, "--moe-layer-freq '([0]*32)'"),
              HasSubstr("no layer has experts"));
  EXPECT_THAT(ModelRefusal(kMixtral, "--moe-layer-freq '([0]*3+[1]*28)'"),
              HasSubstr("has 31 numbers"));
  EXPECT_THAT(ModelRefusal(kMixtral, "--moe-router-topk 1"),
              HasSubstr("requires --moe-router-pre-softmax"));
  EXPECT_THAT(ModelRefusal(kMixtral, "--moe-router-num-groups 3 --moe-router-group-topk 1"),
              HasSubstr("must divide --num-experts 8; nearest: --moe-router-num-groups 2"));
  EXPECT_THAT(ModelRefusal(kMixtral, "--moe-router-num-groups 8 --moe-router-group-topk 1"),
              HasSubstr("fewer than --moe-router-topk 2; nearest: --moe-router-group-topk 2"));
  EXPECT_EQ(
      ModelRefusal(kDeepSeek, "--context-parallel-size 2 --cp-comm-type a2a"),
      "--flags=f: --cp-comm-type a2a: heads of latent attention (--multi-latent-attention) are "
      "not exchanged; nearest: p2p");
  EXPECT_THAT(ModelRefusal(kDeepSeek, "--window-size 127,0"), HasSubstr("has no windows here"));
  EXPECT_THAT(ModelRefusal(kDeepSeek, "--add-qkv-bias"),
              HasSubstr("nearest: without --add-qkv-bias"));
}

}  // namespace
}  // namespace pipelab
