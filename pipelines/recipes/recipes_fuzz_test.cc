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
  RunMutations({flags}, 5000);
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
  RunMutations({toml}, 5000);
}

}  // namespace
}  // namespace pipelab
