#include "experiments/flags/flags.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "experiments/flags/flag_scope.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

ABSL_FLAG(int, test_count, 4, "a count");
ABSL_FLAG(bool, test_switch, false, "a switch");
ABSL_FLAG(std::string, test_name, "x", "a name");
ABSL_FLAG(int, virtual_stages, 0, "a count");
ABSL_FLAG(int, large_devices, 0, "a count");

namespace pipelab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Words = std::vector<std::string>;

TEST(Flags, FormsOfAnOption) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      auto rest, ParseFlags(Words{"run", "--test_count=7", "--test_switch", "--test_name", "abc",
                                  "--", "--not_a_flag"}));
  EXPECT_THAT(rest, ElementsAre("run", "--not_a_flag"));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 7);
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_switch));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_name), "abc");
  EXPECT_THAT(ParseFlags(Words{"--notest_switch"}), IsOk());
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_switch));
  EXPECT_EQ(ResolvedFlags()["test_count"], "7");
}

TEST(Flags, ErrorsNameTheOptionAndTheValue) {
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ParseFlags(Words{"--test_count=many"}),
              StatusIs(kInvalid, AllOf(HasSubstr("--test_count=many"), HasSubstr("whole number"))));
  EXPECT_THAT(ParseFlags(Words{"--device=4"}),
              StatusIs(kInvalid, HasSubstr("--device: unknown option")));
  EXPECT_THAT(ParseFlags(Words{"--test_name"}), StatusIs(kInvalid, HasSubstr("value is missing")));
  EXPECT_THAT(ParseFlags(Words{"--notest_count"}), StatusIs(kInvalid, HasSubstr("unknown option")));
}

TEST(Flags, FormerNamesAreTakenWithAWarning) {
  const auto parse = [](const Words& words) {
    std::vector<std::string> all = {"p"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> args;
    for (std::string& word : all) args.push_back(word.data());
    testing::internal::CaptureStderr();
    const int code = RunMain(static_cast<int>(args.size()), args.data(), "t", "s",
                             [](auto&) { return absl::OkStatus(); });
    return std::make_pair(code, testing::internal::GetCapturedStderr());
  };
  EXPECT_THAT(
      parse({"--chunks=3"}),
      Pair(0, "warning: --chunks is now --virtual_stages; the old name goes away in 0.7\n"));
  EXPECT_EQ(absl::GetFlag(FLAGS_virtual_stages), 3);
  EXPECT_TRUE(FlagWasSet("virtual_stages"));
  EXPECT_THAT(parse({"--chunks=3", "--chunks", "4"}), Pair(0, testing::StartsWith("warning: ")));
  EXPECT_EQ(absl::GetFlag(FLAGS_virtual_stages), 4);
  EXPECT_THAT(parse({"--large_gpus=8"}), Pair(0, HasSubstr("is now --large_devices;")));
  EXPECT_EQ(absl::GetFlag(FLAGS_large_devices), 8);
  EXPECT_THAT(parse({"--virtual_stages=2"}), Pair(0, ""));
  EXPECT_THAT(parse({"--virtual_stages=2", "--chunks=2"}),
              Pair(2,
                   "--virtual_stages and --chunks: two names of one option; give "
                   "--virtual_stages alone\n"));
  EXPECT_THAT(ParseFlags(Words{"--hop=1"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                     "--hop: unknown option; --help lists them"));
}

TEST(Flags, ProgramsHaveDefaultsOfTheirOwn) {
  SetFlagDefaults({{"test_count", "31"}, {"test_switch", "true"}});
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 31);
  ASSERT_THAT(ParseFlags(Words{"--test_count=32"}), IsOk());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 32);
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_switch));
  EXPECT_DEATH(SetFlagDefaults({{"test_counts", "31"}}), "test_counts");
}

TEST(Flags, AreAsBeforeBehindAScope) {
  ASSERT_THAT(ParseFlags(Words{"--test_count=5"}), IsOk());
  const std::string name = absl::GetFlag(FLAGS_test_name);
  const int devices = absl::GetFlag(FLAGS_large_devices);
  const bool named = FlagWasSet("test_name");
  {
    const FlagScope scope;
    EXPECT_FALSE(FlagWasSet("test_count"));
    ASSERT_THAT(ParseFlags(Words{"--test_count=6", "--test_name=a,b"}), IsOk());
    absl::SetFlag(&FLAGS_large_devices, devices + 3);
  }
  EXPECT_TRUE(FlagWasSet("test_count"));
  EXPECT_EQ(FlagWasSet("test_name"), named);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 5);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_name), name);
  EXPECT_EQ(absl::GetFlag(FLAGS_large_devices), devices);
}

TEST(Flags, ExitCodes) {
  std::string program = "p", good = "--test_count=1", bad = "--test_count=1.5";
  char* args[] = {program.data(), good.data()};
  char* wrong[] = {program.data(), bad.data()};
  EXPECT_EXIT(std::exit(RunMain(2, args, "t", "s", [](auto&) { return absl::OkStatus(); })),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      std::exit(RunMain(2, args, "t", "s", [](auto&) { return absl::InternalError("disk"); })),
      testing::ExitedWithCode(1), "disk");
  EXPECT_EXIT(std::exit(RunMain(2, wrong, "t", "s", [](auto&) { return absl::OkStatus(); })),
              testing::ExitedWithCode(2), "--test_count=1.5");
}

TEST(Flags, ErrorsAreShort) {
  testing::internal::CaptureStderr();
  PrintError(absl::InvalidArgumentError("--test_name=" + std::string(1 << 20, '\n') + ": empty"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(testing::SizeIs(4102), testing::StartsWith("--test_name=\\n"),
                    HasSubstr(" ... "), testing::EndsWith("\\n: empty\n")));
}

}  // namespace
}  // namespace pipelab
