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
  ASSERT_TRUE(ParseModel(llama, "f", "f").ok());
  ASSERT_TRUE(ParseModel(mistral, "f", "f").ok());
  ASSERT_TRUE(ParseModel(gpt2, "f", "f").ok());
  RunMutations({llama, mistral, gpt2}, 20000);
}

}  // namespace
}  // namespace pipelab
