// Summaries of generated data say so, and have the sizes and the baselines.
#include "models/data/summaries.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Summary, OfEachKindOfData) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text, Summary(SyntheticCorpus(60000, 1)));
  EXPECT_THAT(text, AllOf(StartsWith("synthetic: "), HasSubstr("nats/byte")));
  EXPECT_THAT(Summary(SyntheticImages(100, 20, 1)),
              AllOf(StartsWith("synthetic: 100 images for training, 20 held out, 28 x 28 x 1"),
                    HasSubstr("held-out accuracy 0.")));
  EXPECT_THAT(Summary(SyntheticTranslations(200, 1)),
              AllOf(StartsWith("synthetic: "), HasSubstr("3 locales"), HasSubstr("dictionary")));
  EXPECT_THAT(Summary(SyntheticRatings(20, 30, 1000, 1)),
              AllOf(StartsWith("synthetic: 1000 ratings of 30 films in 4 genres by 20 users"),
                    HasSubstr("held-out AUC 0.")));
  EXPECT_THAT(Summary(SyntheticDescriptors(60, 1)),
              AllOf(StartsWith("synthetic: 60 compounds, 35 descriptors (a 6, b 20, c 9)"),
                    HasSubstr("held-out R2 ")));
  EXPECT_THAT(Summary(SyntheticEmoji(90, 30, 1)),
              AllOf(StartsWith("synthetic: 90 emoji for training, 30 held out, in 9 groups"),
                    HasSubstr("always \"group ")));
}

}  // namespace
}  // namespace pipelab
