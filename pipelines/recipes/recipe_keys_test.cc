// That recipes say all that a configuration can: each of its keys has words in a system that are
// read and written, or a reason why it has none, and each option that is known to be read is.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/recipes/deepspeed_json.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/megatron_option_tables.h"
#include "pipelines/recipes/torchtitan_toml.h"
#include "pipelines/step/step_fields.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kGpus = 64;
constexpr char kFlagsOfModel[] =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --seq-length 4096 "
    "--max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm "
    "--swiglu --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 "
    "--attention-dropout 0 --vocab-size 32000 --bf16 --overlap-grad-reduce --micro-batch-size 1 "
    "--global-batch-size 256 ";
#define PIPELAB_FLAGS_OF_EXPERTS "--num-experts 8 --expert-model-parallel-size 8 "
#define PIPELAB_FLAGS_OF_STAGES \
  "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "

// What says a key in each system, and what a configuration would have where none does.
struct Key {
  const char *key, *flags, *toml;
  const char *sample = "", *why_none = "";
};
constexpr char kNoLanguageModel[] = "of other models than language models";
constexpr char kOfOtherSchemes[] = "of schemes that no such system runs";
constexpr Key kKeys[] = {
    {"P", "--pipeline-model-parallel-size 4", "pipeline_parallel_degree = 4"},
    {"T", "--tensor-model-parallel-size 2", "tensor_parallel_degree = 2"},
    {"D", "--micro-batch-size 1", "data_parallel_shard_degree = 64"},
    {"V", PIPELAB_FLAGS_OF_STAGES,
     "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\""},
    {"b", "--micro-batch-size 2", "pipeline_parallel_degree = 1"},
    {"M", "--global-batch-size 512", "pipeline_parallel_degree = 4"},
    {"C", "--context-parallel-size 2", "context_parallel_degree = 2"},
    {"context_exchange", "--context-parallel-size 2 --cp-comm-type p2p",
     "context_parallel_degree = 2\ncontext_parallel_rotate_method = \"alltoall\""},
    {"E", PIPELAB_FLAGS_OF_EXPERTS, "expert_parallel_degree = 8"},
    {"whole_experts",
     PIPELAB_FLAGS_OF_EXPERTS
     "--tensor-model-parallel-size 2 --sequence-parallel --expert-tensor-parallel-size 1",
     "expert_parallel_degree = 8\ntensor_parallel_degree = 2"},
    {"dispatch", PIPELAB_FLAGS_OF_EXPERTS "--moe-token-dispatcher-type flex", "", "once_per_node"},
    {"exchanges", PIPELAB_FLAGS_OF_EXPERTS "--overlap-moe-expert-parallel-comm", "", "beside"},
    {"sharding", "--use-distributed-optimizer", "pipeline_parallel_degree = 1"},
    {"shards", "--use-distributed-optimizer --num-distributed-optimizer-instances 4",
     "data_parallel_replicate_degree = 4"},
    {"state", "--grad-reduce-in-bf16", "pipeline_parallel_degree = 1"},
    {"recompute",
     "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
     "[activation_checkpoint]\nmode = \"full\""},
    {"modules", "--recompute-granularity selective --recompute-modules mlp",
     "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\""},
    {"rebuilt", "--recompute-granularity full --recompute-method block --recompute-num-layers 3",
     "", "3"},
    {"rebuilt_every", "", "[activation_checkpoint]\nmode = \"selective\"", "2"},
    {"rebuilt_together",
     "--recompute-granularity full --recompute-method uniform --recompute-num-layers 5", "", "5"},
    {"early_recompute", "", "", "1", "of recompute=full, which no such system has"},
    {"published", "",
     "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"ZBVZeroBubble\"", "on"},
    {"split_head", "",
     "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"ZBVZeroBubble\"", "on"},
    {"sequence", "--tensor-model-parallel-size 2 --sequence-parallel",
     "tensor_parallel_degree = 2"},
    {"batch_norm", "", "", "own", kNoLanguageModel},
    {"local_heads", "", "", "convolution", kNoLanguageModel},
    {"cut", "", "", "", "is written as the layout that it makes"},
    {"layout", "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*17|t*15L'",
     "pipeline_parallel_degree = 2"},
    {"group", PIPELAB_FLAGS_OF_STAGES "--microbatch-group-size-per-virtual-pipeline-stage 8", "",
     "8"},
    {"replicas", "", "", "2", kOfOtherSchemes},
    {"slices", "", "", "2", kOfOtherSchemes},
    {"slice_exchange", "", "", "on", kOfOtherSchemes},
    {"vocabulary_barriers", "", "", "1", kOfOtherSchemes},
    {"vocabulary_exchange", "", "", "collectives", kOfOtherSchemes},
    {"update", "", "", "2", kOfOtherSchemes},
    {"concatenation", "", "", "forward_doubling", kOfOtherSchemes},
    {"gathers_each", "--use-torch-fsdp2", "pipeline_parallel_degree = 1"},
    {"no_pipeline_overlap", "--pipeline-model-parallel-size 4", "pipeline_parallel_degree = 4"},
    {"steady_overlap", PIPELAB_FLAGS_OF_STAGES, "", "on"},
    {"no_data_overlap", "--no-overlap-grad-reduce-is-the-default", "", "on"},
    {"tensor_overlap", "--tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap", "",
     "on"},
    {"whole_messages", "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2", "", "on"},
    {"ranks", "--use-tp-pp-dp-mapping", "", "tp-pp-dp"},
    {"execution", "", "", "step_passes", "is how Megatron-LM of 2022 ran, not an option"},
    {"model", "", "", "", "is the recipe's own"},
    {"cluster", "", "", "", "is the command's"},
    {"dtype", "", "", "", "is the recipe's type"},
};

const StepField& FieldOf(absl::string_view key) {
  return *absl::c_find_if(StepFields(), [&](const StepField& f) { return f.key == key; });
}

std::string FlagsOf(const Key& key) {
  std::string base = kFlagsOfModel;
  if (absl::string_view(key.key) == "no_data_overlap") {
    const absl::string_view overlap = "--overlap-grad-reduce ";
    base.erase(base.find(std::string(overlap)), overlap.size());
  }
  const bool words = absl::StrContains(key.flags, "no-overlap-grad-reduce-is");
  return absl::StrCat(base, words ? "" : key.flags);
}

std::string TomlOf(const Key& key) {
  const bool experts = absl::StrContains(key.toml, "expert_parallel");
  const bool checkpoint = absl::StartsWith(key.toml, "[");
  return absl::StrCat(
      "[model]\n",
      experts ? "name = \"qwen3\"\nflavor = \"30B-A3B\"\n" : "name = \"llama3\"\nflavor = \"8B\"\n",
      "[training]\nlocal_batch_size = 8\nseq_len = 4096\n", checkpoint ? "" : "[parallelism]\n",
      key.toml, checkpoint ? "" : "\n[activation_checkpoint]\nmode = \"none\"", "\n");
}

// The recipe has the key, writes it, and what is written reads back to the same.
template <typename Reader, typename Writer>
void ReadsAndWrites(const Key& key, const std::string& text, const Reader& read,
                    const Writer& write) {
  SCOPED_TRACE(absl::StrCat(key.key, ": ", text));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, read(text, "f", kGpus));
  EXPECT_NE(FieldOf(key.key).get(r.config), FieldOf(key.key).get(StepConfig()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Settings settings, write(r));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe again, read(settings.Text(), "again", kGpus));
  EXPECT_EQ(again.config, r.config) << settings.Text();
}

TEST(RecipeKeys, EachHasWordsOrAReason) {
  std::set<absl::string_view> keys;
  for (const Key& key : kKeys) {
    keys.insert(key.key);
    const bool flags = *key.flags != 0, toml = *key.toml != 0;
    EXPECT_NE(flags || toml, *key.why_none != 0) << key.key;
    // D, b and M always stand in a recipe; here they are others than a configuration's defaults.
    if (flags && !absl::c_linear_search(std::vector<std::string>{"b", "M"}, key.key)) {
      const auto read = [](const auto&... of) { return ReadMegatronFlags(of...); };
      ReadsAndWrites(key, FlagsOf(key), read, MegatronSettings);
    }
    if (toml) ReadsAndWrites(key, TomlOf(key), ReadTorchtitanToml, TorchtitanSettings);
  }
  for (const StepField& f : StepFields()) {
    EXPECT_EQ(keys.count(f.key), 1) << f.key << ": give the words that recipes have for it";
  }
  EXPECT_EQ(keys.size(), StepFields().size());
}

// What a system has no words for is refused by name where it is written.
TEST(RecipeKeys, NoneIsLostInSilence) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe flags,
      ReadMegatronFlags(absl::StrCat(kFlagsOfModel, "--pipeline-model-parallel-size 4"), "f",
                        kGpus));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe toml,
      ReadTorchtitanToml(TomlOf({"P", "", "pipeline_parallel_degree = 1"}), "f", kGpus));
  for (const Key& key : kKeys) {
    if (*key.sample == 0) continue;
    const std::string named = absl::StrCat(key.key, "=", key.sample);
    const auto lost = [&](Recipe recipe, const auto& write) {
      EXPECT_THAT(FieldOf(key.key).set(key.sample, &recipe.config), IsOk()) << named;
      const auto written = write(recipe);
      return written.ok() ? "lost: " + named : std::string(written.status().message());
    };
    // These have notes or follow from others in the system at hand.
    const std::set<absl::string_view> noted = {"no_data_overlap", "steady_overlap",
                                               "whole_messages"};
    if (noted.count(key.key) > 0) continue;
    if (*key.flags == 0) {
      EXPECT_THAT(lost(flags, MegatronSettings), testing::HasSubstr(named));
    }
    if (*key.toml == 0) {
      EXPECT_THAT(lost(toml, TorchtitanSettings), testing::HasSubstr(named));
    }
    if (absl::string_view(key.key) == "group") continue;  // not without stages of its own
    EXPECT_THAT(lost(flags, DeepSpeedJson), testing::HasSubstr(named));
  }
}

// Every option of the table of those that are read is asked for in one of these.
TEST(RecipeKeys, EachOptionIsRead) {
  std::set<std::string> read;
  std::vector<std::string> texts;
  for (const Key& key : kKeys) {
    if (*key.flags != 0) texts.push_back(FlagsOf(key));
  }
  const std::string experts = absl::StrCat(kFlagsOfModel, PIPELAB_FLAGS_OF_EXPERTS);
  for (const char* more :
       {"--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split "
        "--num-layers 30 --pipeline-model-parallel-size 4",
        "--decoder-first-pipeline-num-layers 10 --decoder-last-pipeline-num-layers 10 "
        "--pipeline-model-parallel-size 4",
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 "
        "--no-overlap-p2p-communication",
        "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
        "--overlap-p2p-communication-warmup-flush",
        "--accumulate-allreduce-grads-in-fp32 --add-qkv-bias --attention-backend unfused "
        "--use-flash-attn --cross-entropy-loss-fusion --cross-entropy-fusion-impl native "
        "--kv-channels 128 --qk-layernorm "
        "--fp8-format hybrid --fp8-recipe delayed --rotary-base 10000 "
        "--use-rotary-position-embeddings --window-size 127,0 --window-attn-skip-freq 2 "
        "--make-vocab-size-divisible-by 1 --recompute-activations --optimizer sgd "
        "--sgd-momentum 0.9 --tokenizer-type NullTokenizer",
        "--mtp-num-layers 1 --softmax-type learnable", "--padded-vocab-size 32000",
        "--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward",
        "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads "
        "--overlap-param-gather"}) {
    texts.push_back(absl::StrCat(kFlagsOfModel, more));
  }
  for (const char* more :
       {"--moe-aux-loss-coeff 0.1 --moe-router-load-balancing-type seq_aux_loss "
        "--moe-expert-capacity-factor 1 --moe-ffn-hidden-size 14336 --moe-grouped-gemm "
        "--moe-layer-freq 1 --moe-router-topk 2 --moe-router-pre-softmax "
        "--moe-router-score-function softmax --moe-router-topk-scaling-factor 1.5 "
        "--moe-router-num-groups 2 --moe-router-group-topk 1 "
        "--moe-shared-expert-intermediate-size 14336 --moe-layer-recompute",
        "--moe-token-dispatcher-type flex --moe-enable-deepep "
        "--moe-flex-dispatcher-backend deepep",
        "--overlap-moe-expert-parallel-comm --delay-wgrad-compute --deterministic-mode",
        "--fp8-format e4m3 --moe-router-fusion --use-transformer-engine-op-fuser --cuda-graph-impl "
        "transformer_engine --cuda-graph-scope attn moe_router moe_preprocess",
        "--enable-cuda-graph", "--external-cuda-graph"}) {
    texts.push_back(experts + more);
  }
  std::string latent =
      absl::StrCat(kFlagsOfModel,
                   "--multi-latent-attention --kv-lora-rank 512 --q-lora-rank 1536 "
                   "--qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 "
                   "--qk-layernorm");
  const absl::string_view groups = "--group-query-attention --num-query-groups 8 ";
  latent.erase(latent.find(std::string(groups)), groups.size());
  texts.push_back(latent);
  std::string other = kFlagsOfModel;
  for (const auto& [from, to] :
       {std::make_pair("--swiglu", "--quick-geglu"),
        std::make_pair("--bf16", "--fp16 --nnodes 8 --nproc-per-node 8")}) {
    other.replace(other.find(from), std::string(from).size(), to);
  }
  texts.push_back(other);
  other.replace(other.find("--quick-geglu"), 13, "--squared-relu");
  texts.push_back(other);
  for (const std::string& text : texts) {
    const auto recipe = ReadMegatronFlags(text, "f", absl::StrContains(text, "nnodes") ? 0 : kGpus);
    ASSERT_THAT(recipe, IsOk()) << text;
    for (const auto& [name, is_switch] : kRead) {
      const std::string option = absl::StrCat("--", name);
      const bool given = absl::StrContains(absl::StrCat(text, " "), absl::StrCat(option, " "));
      if (given && !absl::c_linear_search(recipe->passed_over, option)) read.insert(option);
    }
  }
  for (const auto& [name, is_switch] : kRead) {
    EXPECT_EQ(read.count(absl::StrCat("--", name)), 1) << name << " is known, and nobody reads it";
  }
}

}  // namespace
}  // namespace pipelab
