#include "experiments/study/study_flags.h"

#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "experiments/flags/flags.h"
#include "experiments/study/study_flags_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, study_flags_test_size, "small", "of this file's study");
STUDY_FLAG(std::vector<std::string>, study_flags_test_names, std::vector<std::string>({"a", "b"}),
           "of this file's study");

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

TEST(StudyFlags, AreOptionsOnceTheirStudyIsChosen) {
  EXPECT_EQ(absl::GetFlag(one_study::FLAGS_study_flags_test_size), 4);
  EXPECT_THAT(ResolvedFlags(), Not(Contains(Key("study_flags_test_size"))));
  EXPECT_FALSE(ParseFlags({"--study_flags_test_size=large"}).ok());

  RegisterStudyFlags("experiments/no_study.cc");
  RegisterStudyFlags(__FILE__);
  RegisterStudyFlags(__FILE__);
  SetFlagDefaults({{"study_flags_test_names", "c"}});
  EXPECT_THAT(ParseFlags({"--study_flags_test_size=large"}), IsOk());
  EXPECT_EQ(absl::GetFlag(FLAGS_study_flags_test_size), "large");
  EXPECT_THAT(ResolvedFlags(), Contains(Pair("study_flags_test_size", "large")));
  EXPECT_THAT(ResolvedFlags(), Contains(Pair("study_flags_test_names", "c")));
  EXPECT_EQ(absl::FindCommandLineFlag("study_flags_test_size")->Help(), "of this file's study");
  EXPECT_EQ(absl::GetFlag(one_study::FLAGS_study_flags_test_size), 4);
}

}  // namespace
}  // namespace pipelab
