#include "models/zoo/gnmt.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// An LSTM on inputs of width n: 4 h (n + h + 1). The encoder has two on h and one on 2 h, the
// decoder one on h and the others on 2 h.
int64_t GnmtParameters(const GnmtConfig& c) {
  const int64_t h = c.hidden, v = c.vocabulary, l = c.layers;
  const int64_t narrow = 4 * h * (2 * h + 1), wide = 4 * h * (3 * h + 1);
  const int64_t encoder = 2 * narrow + wide + (l - 2) * narrow;
  const int64_t decoder = narrow + (l - 1) * wide;
  return 2 * v * h + encoder + decoder + 2 * h * h + h + h * v + v;
}

TEST(Gnmt, ParameterCountsFollowTheClosedForm) {
  for (int64_t layers : {2, 3, 8}) {
    GnmtConfig c;
    c.layers = layers;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildGnmt(c));
    EXPECT_EQ(g.num_parameters(), GnmtParameters(c)) << layers;
  }
}

TEST(Gnmt, FlopsOfAnLstmFollowTheClosedForm) {
  GnmtConfig c;
  c.hidden = 10;
  c.source_tokens = 7;
  c.vocabulary = 5;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildGnmt(c));
  ASSERT_EQ(g.layers[4].name, "encoder/lstm1");
  EXPECT_EQ(g.layers[4].costs(3).forward.value(), 2.0 * 3 * 7 * 4 * 10 * (20 + 10));
  EXPECT_EQ(g.layers[4].costs(3).output, Bytes(4 * 3 * 7 * 10));
}

// The first decoder layer and every later one read what attention makes; the encoder's end has one
// reader.
TEST(Gnmt, AttentionFeedsEveryLaterLayer) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildGnmt(GnmtConfig()));
  const auto consumers = Consumers(g);
  std::map<std::string, size_t> readers;
  for (size_t i = 0; i < g.layers.size(); ++i) {
    readers[g.layers[i].name] = consumers[i].size();
  }
  EXPECT_EQ(readers["attention"], 7);
  EXPECT_EQ(readers["encoder/lstm7/add"], 1);
  EXPECT_EQ(readers["decoder/lstm0"], 2);
}

TEST(Gnmt, BadConfigurationsNameFieldAndValue) {
  GnmtConfig c;
  c.hidden = 0;
  EXPECT_THAT(BuildGnmt(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--hidden=0")));
  c = GnmtConfig();
  c.layers = 1;
  EXPECT_THAT(BuildGnmt(c), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("--layers=1: must be from 2 to ")));
}

}  // namespace
}  // namespace pipelab
