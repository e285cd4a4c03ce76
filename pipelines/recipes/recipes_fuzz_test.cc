// 5,000 damaged inputs of each kind from one seed.
#include <string>

#include "gtest/gtest.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/torchtitan_toml.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(RecipesFuzz, MegatronFlags) {
  const std::string flags =
      "L=8\nA=(--num-layers $L --hidden-size 64 --num-attention-heads 8 --seq-length 32)\n"
      "train.py ${A[@]} --max-position-embeddings 32 --vocab-size 100 --swiglu \\\n"
      " --micro-batch-size 1 --global-batch-size 256 --pipeline-model-parallel-size 4 "
      "--pipeline-model-parallel-layout 'E|t*2|(t|)*4tt|L' --tensor-model-parallel-size 2 "
      "--sequence-parallel --use-distributed-optimizer --lr ${LR:-1e-4} # --fp16\n";
  ASSERT_TRUE(ReadMegatronFlags(flags, "f", 64).ok());
  const std::string experts =
      "--num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 32 --swiglu "
      "--disable-bias-linear --max-position-embeddings 32 --vocab-size 100 --micro-batch-size 1 "
      "--multi-latent-attention --q-lora-rank 16 --kv-lora-rank 8 --qk-head-dim 8 "
      "--qk-pos-emb-head-dim 4 --v-head-dim 8 --num-experts 8 --moe-layer-freq '([0]*1+[1]*3)' "
      "--moe-ffn-hidden-size 32 --moe-shared-expert-intermediate-size 64 --moe-router-topk 2 "
      "--moe-router-score-function sigmoid --moe-router-num-groups 4 --moe-router-group-topk 2 "
      "--moe-aux-loss-coeff 1e-3 --expert-model-parallel-size 4 --tensor-model-parallel-size 2 "
      "--sequence-parallel --expert-tensor-parallel-size 1\n";
  const std::string windows =
      "--num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 32 --swiglu "
      "--max-position-embeddings 32 --vocab-size 100 --micro-batch-size 1 --window-size 7,0 "
      "--window-attn-skip-freq '[1]+[0,1,1]' --qk-layernorm --rotary-base 100\n";
  ASSERT_TRUE(ReadMegatronFlags(experts, "f", 64).ok());
  ASSERT_TRUE(ReadMegatronFlags(windows, "f", 64).ok());
  RunMutations({flags, experts, windows}, 5000);
}

TEST(RecipesFuzz, Scripts) {
  const std::string script = R"(#!/bin/bash
SIZE=${1:-small}; declare -A W=([small]=64 [large]=128)
case "$SIZE" in small|tiny) L=$((2**3 - 4)) ;; [0-9]*) L=${SIZE%B} ;; *) exit 1 ;; esac
if [ -z "$TP" ] && [[ $L -gt 2 || ! -f x ]]; then TP=2; elif ((L < 9)); then TP=1; fi
function args() { local n=$1; A+=(--num-attention-heads $n "${@:2}"); }
args 8 --swiglu; for i in {1..2} x; do O="$O --lr $i"; done
while [ $# -gt 0 ]; do shift; done; cd $DIR || exit 1
M="--num-layers $L --hidden-size ${W[$SIZE]} \
  --seq-length 32 --vocab-size 100" # it's all
cat <<E
$(no)
E
srun -l bash -c "torchrun --nnodes=1 pretrain_gpt.py $M $O ${A[*]} --save $DIR \
  --max-position-embeddings 32 --micro-batch-size 1 ${D:+--bf16} >log" 2>&1 | tee x &
)";
  ASSERT_TRUE(ReadMegatronFlags(script, "f", 64, {"", "DIR=/x,D=1"}).ok())
      << ReadMegatronFlags(script, "f", 64, {"", "DIR=/x,D=1"}).status();
  RunMutations({script}, 5000);
}

TEST(RecipesFuzz, TorchtitanToml) {
  const std::string toml =
      "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\nconverters = [\"float8\"]\n"
      "[training]\nlocal_batch_size = 4\nseq_len = 64\n"
      "[parallelism]\npipeline_parallel_degree = 2\ntensor_parallel_degree = 4\n"
      "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
      "module_fqns_per_model_part = [[\"tok_embeddings\"], [\"layers.0\", \"layers.1\"], "
      "[\"layers.2\", \"layers.3\", \"layers.4\"], [\"layers.5\", \"norm\", \"output\"]]\n"
      "[activation_checkpoint]\nmode = \"full\"\n";
  ASSERT_TRUE(ReadTorchtitanToml(toml, "f", 64).ok());
  const std::string experts =
      "[model]\nname = \"deepseek_v3\"\nflavor = \"debugmodel\"\n"
      "[training]\nlocal_batch_size = 4\nseq_len = 64\n"
      "[parallelism]\ntensor_parallel_degree = 4\nexpert_parallel_degree = 8\n"
      "expert_tensor_parallel_degree = 1\n[activation_checkpoint]\nmode = \"full\"\n";
  ASSERT_TRUE(ReadTorchtitanToml(experts, "f", 64).ok());
  RunMutations({toml, experts}, 5000);
}

}  // namespace
}  // namespace pipelab
