#include "experiments/study/study_main.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(int, steps, 100, "of the study");
ABSL_FLAG(int, width, 8, "of the study");
ABSL_FLAG(int, seed, 7, "of the study");
ABSL_FLAG(std::string, rows, "", "a file");

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StudyMainTest : public testing::Test {
 protected:
  StudyMainTest() {
    info_.name = "sample_study";
    info_.title = "A sample";
    info_.summary = "Counts steps.";
    info_.defaults = {{"width", "16"}};
    info_.quick = {{"steps", "5"}, {"width", "2"}};
    info_.quick_leaves_out = "95 of 100 steps";
    info_.unrecorded = {"rows"};
    out_ = JoinPath(testing::TempDir(), "study_main_test");
    EXPECT_TRUE(RemoveTree(out_).ok());
  }

  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), {"sample_study", "--out", out_});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return RunStudyMain(static_cast<int>(words.size()), argv.data(), info_, [this](StudyRun* run) {
      steps_ = absl::GetFlag(FLAGS_steps);
      if (steps_ < 0) return absl::InvalidArgumentError("--steps: must not be negative");
      PIPELAB_RETURN_IF_ERROR(run->Begin());
      Table t("steps", "Steps");
      t.AddKey("what");
      t.AddColumn({"steps", "steps", "", "", Origin::kComputed, 0});
      t.AddRow({Label("steps"), Computed(steps_)});
      run->report().AddTable(std::move(t));
      run->FailAtEnd(at_end_);
      run->FailAtEnd(absl::InternalError("a later one"));
      return during_;
    });
  }

  std::string File(const std::string& name) {
    return ReadFile(JoinPath(out_, name)).value_or("none");
  }

  absl::FlagSaver saver_;
  StudyInfo info_;
  std::string out_;
  int steps_ = 0;
  absl::Status during_, at_end_ = absl::FailedPreconditionError("told at the end");
};

TEST_F(StudyMainTest, WritesSettingsSeedAndTheCommandThatDoesItAgain) {
  EXPECT_EQ(Run({"--steps=3", "--rows=secret.csv"}), 1);  // FailAtEnd
  const std::string config = File("config.json");
  EXPECT_THAT(config, HasSubstr("tools/bazel run //experiments:sample_study -- --steps=3\""));
  EXPECT_THAT(config, HasSubstr("\"seed\": 7"));
  EXPECT_THAT(config, HasSubstr("\"width\": \"16\""));
  EXPECT_THAT(config, Not(HasSubstr("secret")));
  EXPECT_THAT(config, Not(HasSubstr(out_)));
  EXPECT_THAT(File("deterministic.csv"), HasSubstr("steps,what=steps,steps,,3"));
}

TEST_F(StudyMainTest, QuickTakesSmallerValuesWhereTheUserSaysNothing) {
  EXPECT_EQ(Run({"--quick", "--width=4"}), 1);
  EXPECT_EQ(steps_, 5);
  EXPECT_THAT(File("config.json"), HasSubstr("sample_study -- --quick --width=4\""));
  EXPECT_THAT(File("config.json"), HasSubstr("\"steps\": \"5\""));
  EXPECT_THAT(File("report.md"), HasSubstr("--quick leaves out 95 of 100 steps."));
}

TEST_F(StudyMainTest, WrongOptionsAndFailuresLeaveNothing) {
  EXPECT_EQ(Run({"word"}), 2);
  EXPECT_EQ(Run({"--steps=-1"}), 2);
  EXPECT_EQ(Run({"--step=1"}), 2);
  during_ = absl::UnavailableError("no data");
  EXPECT_EQ(Run({"--steps=1"}), 1);
  EXPECT_EQ(File("config.json"), "none");
}

}  // namespace
}  // namespace pipelab
