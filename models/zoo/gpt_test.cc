#include "models/zoo/gpt.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

GptConfig SmallGpt() {
  GptConfig c;
  c.layers = 3;
  c.hidden = 24;
  c.heads = 4;
  c.tokens = 10;
  c.vocabulary = 17;
  return c;
}

// L blocks of width C, T positions, V words: 12 L C^2 of matrices, 13 L C of biases and norms, the
// tables.
int64_t GptParameters(int64_t l, int64_t c, int64_t t, int64_t v, bool tied) {
  return 12 * l * c * c + 13 * l * c + 2 * c + t * c + (tied ? 1 : 2) * v * c;
}

TEST(Gpt, ParameterCountsFollowTheClosedForm) {
  for (bool tied : {false, true}) {
    GptConfig c = SmallGpt();
    c.tied_embeddings = tied;
    PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildGpt(c));
    EXPECT_EQ(g.num_parameters(), GptParameters(3, 24, 10, 17, tied));
    EXPECT_EQ(g.layers.size(), 8);
  }
}

TEST(Gpt, SizesOfLatentAttentionAreChecked) {
  GptConfig c = LlamaConfig(2, 24, 5, 30, 10, 20);  // heads need not divide the hidden size
  c.latent = {0, 12, 6, 4, 8};
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildGpt(c));
  EXPECT_EQ(g.layers[1].kind, "gpt_latent_attention");
  EXPECT_EQ(CheckTensorParallel(g, {5, false}), absl::OkStatus());
  EXPECT_THAT(CheckTensorParallel(g, {2, false}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must divide the 5 heads")));
  GptConfig odd = c;
  odd.latent.rope_size = 3;
  EXPECT_THAT(BuildGpt(odd), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("--latent.rope_size=3: must be even")));
  c.kv_heads = 1;
  EXPECT_THAT(BuildGpt(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kv_heads")));
}

// Each device of a group has its heads' sinks and its columns' biases; the bias of what comes out
// of an expert is whole on all of its devices.
TEST(Gpt, BiasesOfExpertsAndSinks) {
  GptConfig c = LlamaConfig(2, 24, 4, 32, 10, 20);
  c.experts.experts = 8;
  c.experts.chosen = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph without, BuildGpt(c));
  c.biases = Biases::kAll;
  c.sinks = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph with, BuildGpt(c));
  const int64_t attention = 3 * 24 + 24 + 4, experts = 8 + 8 * (2 * 32 + 24);
  EXPECT_EQ(with.num_parameters() - without.num_parameters(), 2 * (attention + experts));
  const auto on_device = [&](int layer, TensorParallel split) {
    int64_t more = 0;
    for (const ParameterSpec& p : with.layers[layer].parameters) more += p.size_on(split);
    for (const ParameterSpec& p : without.layers[layer].parameters) more -= p.size_on(split);
    return more;
  };
  EXPECT_EQ(on_device(1, {2, false}), 3 * 24 / 2 + 24 + 4 / 2);
  EXPECT_EQ(on_device(2, {2, false}), 8 + 8 * (2 * 32 / 2 + 24));
  TensorParallel divided;
  divided.experts = 4;
  EXPECT_EQ(on_device(2, divided), 8 + 8 / 4 * (2 * 32 + 24));
  // Gradients of sinks and biases are read, and nothing else changes.
  EXPECT_EQ(with.layers[2].costs(3).forward, without.layers[2].costs(3).forward);
  EXPECT_EQ(with.layers[1].operations(3, TokenSlice()).backward_weight.size(),
            without.layers[1].operations(3, TokenSlice()).backward_weight.size() + 1);
  EXPECT_EQ(with.layers[2].operations(3, TokenSlice()).backward_weight.size(),
            without.layers[2].operations(3, TokenSlice()).backward_weight.size() + 3);
  c.latent = {0, 12, 6, 4, 8};
  EXPECT_THAT(BuildGpt(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sinks")));
}

// Each has the norms of states and tokens, the matrix that takes both, a block, and a head of its
// own but for its table.
TEST(Gpt, HeadsForFurtherTokens) {
  const int64_t c = 24, block = 4 * c * c + 3 * c * 32 + 2 * c;
  for (const bool tied : {false, true}) {
    for (const int64_t further : {0, 1, 3}) {
      GptConfig config = LlamaConfig(2, c, 4, 32, 10, 20);
      config.tied_embeddings = tied;
      config.further_tokens = further;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildGpt(config));
      EXPECT_EQ(g.num_parameters(), (tied ? 1 : 2) * 20 * c + 2 * block + c +
                                        further * (2 * c + 2 * c * c + block + c));
      ASSERT_EQ(g.layers.size(), 6 + 4 * further);
      EXPECT_EQ(g.layers.back().inputs[0], 4);
      if (further == 0) continue;
      const LayerSpec& head = g.layers.back();
      EXPECT_EQ(g.layers[5].kind, "further_token");
      EXPECT_EQ(g.layers[5].inputs[0], 4);
      EXPECT_EQ(g.layers[5].parameters[0].tie, g.layers[0].parameters[0].tie);
      EXPECT_EQ(g.layers[8].kind, head.kind);
      EXPECT_EQ(g.layers[8].parameters[1].tie, head.parameters[1].tie);
      // The same logits once more, and a product of twice the width.
      EXPECT_EQ(g.layers[8].costs(3).forward, head.costs(3).forward);
      EXPECT_EQ(g.layers[5].costs(3).forward.value(), 2.0 * 3 * 10 * 2 * c * c);
      EXPECT_EQ(CheckTensorParallel(g, {2, true}), absl::OkStatus());
      if (further < 2) continue;
      EXPECT_EQ(g.layers[9].inputs[0], 7);  // the states of the one before
    }
  }
  // A further token's block is of the kind of the last one.
  GptConfig experts = LlamaConfig(2, c, 4, 32, 10, 20);
  experts.experts.experts = 4;
  experts.experts.chosen = 2;
  experts.dense_blocks = 1;
  experts.further_tokens = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildGpt(experts));
  EXPECT_EQ(g.layers[7].kind, "gpt_experts");
  experts.further_tokens = 17;
  EXPECT_THAT(BuildGpt(experts), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("--further_tokens=17: must be from 1 to 16")));
}

TEST(Gpt, PublishedSizesAllocateNothing) {
  GptConfig c;  // the 52B model of breadth-first pipeline parallelism
  c.layers = 64;
  c.hidden = 8192;
  c.heads = 64;
  c.tokens = 1024;
  c.vocabulary = 51200;
  c.tied_embeddings = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph big, BuildGpt(c));
  EXPECT_EQ(big.num_parameters(), GptParameters(64, 8192, 1024, 51200, true));
  EXPECT_EQ(big.num_parameters(), 51'974'258'688);
  c.layers = 12;  // GPT-2 small: 124,439,808 as everybody's framework counts it
  c.hidden = 768;
  c.heads = 12;
  c.vocabulary = 50257;
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph gpt2, BuildGpt(c));
  EXPECT_EQ(gpt2.num_parameters(), 124'439'808);
}

TEST(Gpt, FlopsOfABlockFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildGpt(SmallGpt()));
  const double samples = 5, t = 10, c = 24;
  // T = 10 fits in one block of query rows, so all T^2 scores are computed.
  const LayerCosts attention = g.layers[1].costs(5), mlp = g.layers[2].costs(5);
  EXPECT_EQ(attention.forward.value(), samples * (8 * t * c * c + 4 * t * t * c));
  EXPECT_EQ(attention.backward_input.value(), samples * (8 * t * c * c + 10 * t * t * c));
  EXPECT_EQ(attention.backward_weight.value(), samples * 8 * t * c * c);
  EXPECT_EQ(mlp.forward.value(), samples * 16 * t * c * c);
  EXPECT_EQ(mlp.backward_input.value(), mlp.forward.value());
  EXPECT_EQ(g.layers[7].costs(5).forward.value(), samples * 2 * t * c * 17);
}

TEST(Gpt, StartsAsGpt2) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildGpt(SmallGpt()));
  for (const LayerSpec& layer : g.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      const std::string last = p.name.substr(p.name.rfind('/') + 1);
      if (last == "gamma") {
        EXPECT_EQ(p.init, InitKind::kOnes) << p.name;
      } else if (last == "beta" || last[0] == 'b') {
        EXPECT_EQ(p.init, InitKind::kZeros) << p.name;
      } else {
        EXPECT_EQ(p.init, InitKind::kNormal) << p.name;
        EXPECT_DOUBLE_EQ(p.stddev, last == "wo" || last == "w2" ? 0.02 / std::sqrt(6.0) : 0.02)
            << p.name;
      }
    }
  }
}

// Three products of the feed-forward, and no parameters but matrices and gammas.
TEST(Gpt, Llama) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g,
                               BuildGpt(LlamaConfig(3, 24, 2, 20, /*tokens=*/10, 17)));
  const int64_t c = 24, f = 20, words = 17;
  EXPECT_EQ(g.num_parameters(), 3 * (4 * c * c + 3 * c * f + 2 * c) + c + 2 * words * c);
  EXPECT_EQ(g.layers[2].costs(5).forward.value(), 5 * 10 * 6.0 * c * f);
  for (const LayerSpec& layer : g.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      EXPECT_TRUE(p.shape.size() == 2 || p.init == InitKind::kOnes) << p.name;
    }
  }
}

// Behind the dense blocks: the router, and three products for each expert.
TEST(Gpt, Experts) {
  GptConfig config = LlamaConfig(3, 24, 2, 20, /*tokens=*/10, 17);
  config.dense_blocks = 1;
  config.expert_feed_forward = 7;
  config.experts.experts = 5;
  config.experts.chosen = 2;
  config.experts.shared = 1;
  config.query_key_norms = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildGpt(config));
  const int64_t c = 24, f = 20, e = 7, words = 17, head = 12;
  EXPECT_EQ(g.layers[2].name, "block0/mlp");
  EXPECT_EQ(g.layers[4].name, "block1/experts");
  EXPECT_EQ(g.num_parameters(), 3 * (4 * c * c + 2 * c + 2 * head) + 3 * c * f +
                                    2 * (5 * c + 6 * 3 * c * e) + c + 2 * words * c);
  // The products are of two experts and the shared one.
  EXPECT_EQ(g.layers[4].costs(5).forward.value(), 5 * 10 * 2.0 * (5 * c + 3 * 3 * c * e));
}

TEST(Gpt, BadConfigurationsNameFieldAndValue) {
  const auto expect = [](const GptConfig& c, const char* what) {
    EXPECT_THAT(BuildGpt(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  GptConfig c = SmallGpt();
  c.heads = 5;
  expect(c, "--heads=5: heads must divide --hidden=24");
  c = SmallGpt();
  c.layers = 0;
  expect(c, "--layers=0: must be from 1 to 4096");
  c = SmallGpt();
  c.hidden = -1;
  expect(c, "--hidden=-1: ");
  c = SmallGpt();
  c.heads = 0;
  expect(c, "--heads=0: must be from 1 to 24");
  c = SmallGpt();
  c.tokens = 0;
  expect(c, "--tokens=0: ");
  c = SmallGpt();
  c.vocabulary = 0;
  expect(c, "--vocabulary=0: ");
  c = SmallGpt();
  c.mlp_ratio = 0;
  expect(c, "--mlp_ratio=0: ");
  c = SmallGpt();
  c.dropout = 1;
  expect(c, "--dropout=1: ");
  c.dropout = 0.999999999;  // 1 as a float
  expect(c, "--dropout=1: ");
  c.dropout = -0.1;
  expect(c, "--dropout=-0.1: ");
  c.dropout = std::nan("");
  expect(c, "--dropout=nan: ");
  c = LlamaConfig(1, 24, 2, 8, 4, 9);
  c.experts.experts = 3;
  expect(c, "--chosen=0: must be from 1 to 3");
  c.experts.chosen = 4;
  expect(c, "--chosen=4: must be from 1 to 3");
  c.experts.chosen = 2;
  c.dense_blocks = 2;
  expect(c, "2 dense blocks");
  c.dense_blocks = 0;
  c.biases = Biases::kAll;
  c.experts.shared = 1;
  expect(c, "--experts=3: they have gates, and shared ones no biases");
  c = LlamaConfig(1, 6, 2, 8, 4, 9);
  expect(c, "--rotary_base=10000: heads of 3 numbers; must be at least 0, and even heads");
  c = SmallGpt();
  c.biases = Biases::kNone;
  expect(c, "biases: a GELU has them");
  c = SmallGpt();
  c.kv_heads = c.heads + 1;
  expect(c, "--kv_heads=5: must divide --heads=4");
  c = SmallGpt();
  c.head_size = -1;
  expect(c, "--head_size=-1: must be from 1 to ");
  c = SmallGpt();
  c.layers = int64_t{1} << 40;
  expect(c, "--layers=1099511627776: ");
  c = SmallGpt();
  c.hidden = int64_t{1} << 40;
  expect(c, "--hidden=1099511627776: ");
}

}  // namespace
}  // namespace pipelab
