// Studies that are quick enough, run again: their deterministic columns are the committed ones.
//
//   bazel run //experiments:all -- --quick --update      writes those of all studies
#include <string>

#include "experiments/all/run_studies.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(ReferenceTest, QuickStudiesHaveTheCommittedColumns) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string list, ReadFile("experiments/results/rerun.txt"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto studies, ParseStudyPrograms(list, "rerun.txt"));
  ASSERT_FALSE(studies.empty());
  RunStudiesOptions options;
  options.quick = true;
  options.out = testing::TempDir();
  for (const StudyProgram& study : studies) {
    SCOPED_TRACE(study.name);
    const StudyOutcome outcome = RunStudy(study, options);
    EXPECT_EQ(outcome.failure, "");
    ASSERT_TRUE(outcome.result.has_value());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string reference,
                                 ReadFile(JoinPath("experiments/results", study.name + ".csv")));
    EXPECT_EQ(CompareLines(reference, outcome.result->deterministic), "equal");
    // And twice the same.
    const StudyOutcome again = RunStudy(study, options);
    ASSERT_TRUE(again.result.has_value());
    EXPECT_EQ(again.result->deterministic, outcome.result->deterministic);
  }
}

}  // namespace
}  // namespace pipelab
