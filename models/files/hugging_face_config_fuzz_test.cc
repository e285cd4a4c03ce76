// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/files/model_file.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(HuggingFaceConfigFuzz, TwentyThousandMutations) {
  const std::string llama =
      R"({"model_type":"llama","hidden_size":8,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("num_key_value_heads":2,"head_dim":4,"intermediate_size":12,"vocab_size":9,)"
      R"("max_position_embeddings":6,"rope_theta":500000.0,"sliding_window":null})";
  const std::string gpt2 =
      R"({"model_type":"gpt2","n_embd":8,"n_layer":2,"n_head":2,"n_positions":6,"vocab_size":9})";
  const std::string mistral =
      R"({"model_type":"mistral","hidden_size":8,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("intermediate_size":12,"vocab_size":9,"max_position_embeddings":6,"sliding_window":3,)"
      R"("layer_types":["full_attention","sliding_attention"]})";
  const std::string deepseek =
      R"({"model_type":"deepseek_v3","hidden_size":8,"num_hidden_layers":2,"vocab_size":9,)"
      R"("num_attention_heads":2,"q_lora_rank":5,"kv_lora_rank":6,"qk_nope_head_dim":3,)"
      R"("qk_rope_head_dim":4,"v_head_dim":5,"intermediate_size":12,"moe_intermediate_size":7,)"
      R"("n_routed_experts":4,"num_experts_per_tok":2,"n_shared_experts":1,)"
      R"("first_k_dense_replace":1,"max_position_embeddings":6,"routed_scaling_factor":2.5})";
  const std::string vit =
      R"({"model_type":"vit","hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,)"
      R"("intermediate_size":12,"image_size":8,"patch_size":4,"id2label":{"0":"a","1":"b"}})";
  ASSERT_TRUE(ParseModel(llama, "f", "f").ok());
  ASSERT_TRUE(ParseModel(deepseek, "f", "f").ok());
  ASSERT_TRUE(ParseModel(vit, "f", "f").ok());
  ASSERT_TRUE(ParseModel(mistral, "f", "f").ok());
  ASSERT_TRUE(ParseModel(gpt2, "f", "f").ok());
  RunMutations({llama, mistral, gpt2, deepseek, vit}, 20000);
}

}  // namespace
}  // namespace pipelab
