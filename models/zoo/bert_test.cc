#include "models/zoo/bert.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

BertConfig SmallBert() {
  BertConfig c;
  c.layers = 3;
  c.hidden = 24;
  c.heads = 4;
  c.tokens = 10;
  c.vocabulary = 17;
  return c;
}

// 12 L C^2 of matrices and 13 L C of biases and norms; tables; the norm, the dense layer, the head.
TEST(Bert, ParameterCountsFollowTheClosedForm) {
  const int64_t l = 3, c = 24, t = 10, v = 17;
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildBert(SmallBert()));
  const int64_t ends = (v + t) * c + 2 * c + (c * c + c) + 2 * c + v * c + v;
  EXPECT_EQ(g.num_parameters(), 12 * l * c * c + 13 * l * c + ends);
  EXPECT_EQ(g.layers.size(), 2 * 3 + 4);
  BertConfig wide = SmallBert();
  wide.feed_forward = 100;
  PIPELAB_ASSERT_OK_AND_ASSIGN(g, BuildBert(wide));
  EXPECT_EQ(g.num_parameters(), l * (4 * c * c + 2 * c * 100 + 9 * c + 100) + ends);
}

// As in the paper: a norm behind the embedding and each half block, none in front; and a tied table
// has a bias.
TEST(Bert, NormsMayBeBehindHalfBlocks) {
  BertConfig c = SmallBert();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph front, BuildBert(c));
  c.post_norms = c.tied_embeddings = true;
  c.token_types = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph behind, BuildBert(c));
  EXPECT_EQ(behind.layers.size(), 4 * 3 + 4);
  EXPECT_EQ(behind.num_parameters(), front.num_parameters() + 2 * 24 - 17 * 24);
  EXPECT_EQ(behind.layers[2].parameters[0].name, "block0/attention/wqkv");
  EXPECT_EQ(behind.layers[2].costs(1).kept,
            front.layers[1].costs(1).kept - Bytes(2 * 4 * c.tokens));
}

// Every token sees every other: all T^2 scores of a head, however many blocks.
TEST(Bert, FlopsOfAttentionAreThoseOfTheWholeSquare) {
  for (int64_t tokens : {10, 130}) {
    BertConfig config = SmallBert();
    config.tokens = tokens;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildBert(config));
    const double samples = 5, t = static_cast<double>(tokens), c = 24;
    const LayerCosts attention = g.layers[1].costs(5);
    EXPECT_EQ(attention.forward.value(), samples * (8 * t * c * c + 4 * t * t * c));
    EXPECT_EQ(attention.backward_input.value(), samples * (8 * t * c * c + 10 * t * t * c));
    EXPECT_EQ(attention.backward_weight.value(), samples * 8 * t * c * c);
    EXPECT_EQ(attention.output, Bytes(4 * 5 * tokens * 24));
  }
}

TEST(Bert, ReadsLengthsWherePadded) {
  BertConfig c = SmallBert();
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph g, BuildBert(c));
  EXPECT_TRUE(g.layers[1].data.empty());
  c.padded = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(g, BuildBert(c));
  ASSERT_EQ(g.layers[1].data.size(), 1);
  EXPECT_EQ(g.layers[1].data[0], (DataField{"tokens_length", FieldType::kId, {1}, 11}));
  EXPECT_TRUE(g.layers.back().data[0].padded);
  EXPECT_THAT(CheckTakesSlices(g),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("block0/attention")));
}

TEST(Bert, BadConfigurationsNameFieldAndValue) {
  const auto expect = [](BertConfig c, const char* what) {
    EXPECT_THAT(BuildBert(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  BertConfig c = SmallBert();
  c.heads = 5;
  expect(c, "--heads=5: heads must divide --hidden=24");
  c = SmallBert();
  c.feed_forward = -1;
  expect(c, "--feed_forward=-1: ");
  c = SmallBert();
  c.head_norm_epsilon = 0;
  expect(c, "--head_norm_epsilon=0: must be from 1e-15 to 1");
  c = SmallBert();
  c.dropout = 1;
  expect(c, "--dropout=1: ");
}

}  // namespace
}  // namespace pipelab
