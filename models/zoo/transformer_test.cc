#include "models/zoo/transformer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TransformerConfig SmallTransformer() {
  TransformerConfig c;
  c.layers = 2;
  c.hidden = 24;
  c.heads = 4;
  c.feed_forward = 50;
  c.source_tokens = 10;
  c.target_tokens = 7;
  c.vocabulary = 17;
  return c;
}

// Width C, inner width F, heads W wide together: an attention has 4 C W of matrices and 3 W + 3 C
// of biases and norm, an MLP 2 C F and F + 3 C.
int64_t TransformerParameters(const TransformerConfig& t, int64_t w) {
  const int64_t c = t.hidden, f = t.feed_forward;
  const int64_t attention = 4 * c * w + 3 * w + 3 * c, mlp = 2 * c * f + f + 3 * c;
  const int64_t positions =
      t.positions == Positions::kLearned ? (t.source_tokens + t.target_tokens) * c : 0;
  const int64_t tables = (t.shared_embedding ? 2 : 3) * t.vocabulary * c;
  return t.layers * (3 * attention + 2 * mlp) + positions + tables + 4 * c;
}

TEST(Transformer, ParameterCountsFollowTheClosedForm) {
  TransformerConfig c = SmallTransformer();
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildTransformer(c));
  EXPECT_EQ(g.num_parameters(), TransformerParameters(c, 24));
  c.shared_embedding = true;
  c.positions = Positions::kSinusoidal;
  c.head_size = 5;
  PIPELAB_ASSERT_OK_AND_ASSIGN(g, BuildTransformer(c));
  EXPECT_EQ(g.num_parameters(), TransformerParameters(c, 20));
  c = TransformerLha(24, 8192, 16);
  PIPELAB_ASSERT_OK_AND_ASSIGN(g, BuildTransformer(c));
  EXPECT_EQ(g.num_parameters(), TransformerParameters(c, 1024));
  c = TransformerLha(12, 16384, 32);
  PIPELAB_ASSERT_OK_AND_ASSIGN(g, BuildTransformer(c));
  EXPECT_EQ(g.num_parameters(), TransformerParameters(c, 2048));
}

TEST(Transformer, EveryDecoderLayerReadsTheEncoder) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildTransformer(SmallTransformer()));
  ASSERT_EQ(g.layers.size(), 1 + 2 * 2 + 1 + 1 + 3 * 2 + 1);
  EXPECT_EQ(g.layers[5].name, "encoder/norm");
  EXPECT_THAT(g.layers[6].inputs, ElementsAre());  // decoder/embedding
  EXPECT_EQ(g.layers[8].name, "decoder/block0/cross");
  EXPECT_THAT(g.layers[8].inputs, ElementsAre(7, 5));
  EXPECT_THAT(g.layers[11].inputs, ElementsAre(10, 5));
  EXPECT_THAT(Consumers(g)[5], ElementsAre(8, 11));
  EXPECT_EQ(LossLayer(g), 13);
}

TEST(Transformer, FlopsOfCrossAttentionFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildTransformer(SmallTransformer()));
  const double samples = 5, s = 10, t = 7, c = 24;
  const LayerCosts cross = g.layers[8].costs(5);
  EXPECT_EQ(cross.forward.value(), samples * (4 * t * c * c + 4 * s * c * c + 4 * t * s * c));
  EXPECT_EQ(cross.backward_input.value(),
            samples * (4 * t * c * c + 4 * s * c * c + 10 * t * s * c));
  EXPECT_EQ(cross.backward_weight.value(), samples * (4 * t * c * c + 4 * s * c * c));
  EXPECT_EQ(cross.output, Bytes(4 * 5 * 7 * 24));
  // The encoder sees all, the decoder up to itself: one block of 7 rows computes its square.
  EXPECT_EQ(g.layers[1].costs(5).forward.value(), samples * (8 * s * c * c + 4 * s * s * c));
  EXPECT_EQ(g.layers[7].costs(5).forward.value(), samples * (8 * t * c * c + 4 * t * t * c));
}

TEST(Transformer, BadConfigurationsNameFieldAndValue) {
  const auto expect = [](TransformerConfig c, const char* what) {
    EXPECT_THAT(BuildTransformer(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  TransformerConfig c = SmallTransformer();
  c.heads = 5;
  expect(c, "--heads=5: heads must divide --hidden=24");
  c = SmallTransformer();
  c.source_tokens = 0;
  expect(c, "--source_tokens=0: ");
  c = SmallTransformer();
  c.target_tokens = 0;
  expect(c, "--target_tokens=0: ");
  c = SmallTransformer();
  c.head_size = -1;
  expect(c, "--head_size=-1: ");
}

}  // namespace
}  // namespace pipelab
