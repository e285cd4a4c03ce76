// RunProcess: exit codes, streams, limits.
#include "tools/base/process.h"

#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

ProcessResult Shell(const std::string& script, const ProcessOptions& options = {}) {
  auto result = RunProcess({"sh", "-c", script}, options);
  EXPECT_THAT(result, IsOk());
  return *result;
}

TEST(RunProcess, CollectsBothStreamsAndTheCode) {
  const ProcessResult r = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(r.output, "out\n");
  EXPECT_EQ(r.error, "err\n");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(Shell("kill -9 $$").exit_code, 128 + 9);
}

TEST(RunProcess, ArgumentsAreNotReadByAShell) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(ProcessResult r, RunProcess({"echo", "$HOME; `x` *", "a b"}));
  EXPECT_EQ(r.output, "$HOME; `x` * a b\n");
}

TEST(RunProcess, DirectoryEnvironmentAndEmptyInput) {
  setenv("PIPELAB_TEST_A", "inherited", 1);
  setenv("PIPELAB_TEST_B", "old", 1);
  ProcessOptions options;
  options.directory = "/";
  options.environment = {{"PIPELAB_TEST_B", "new"}};
  EXPECT_EQ(Shell("pwd; echo $PIPELAB_TEST_A $PIPELAB_TEST_B; cat", options).output,
            "/\ninherited new\n");
}

TEST(RunProcess, NamesWhatIsMissing) {
  EXPECT_THAT(RunProcess({"no-such-program-here"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no-such-program-here")));
  ProcessOptions options;
  options.directory = "/no/such/folder";
  EXPECT_THAT(RunProcess({"true"}, options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/folder")));
  EXPECT_FALSE(RunProcess({}).ok());
}

// More than a pipe holds, so a reader that stops would hang the writer.
TEST(RunProcess, OutputIsBounded) {
  ProcessOptions options;
  options.output_limit = 1000;
  const ProcessResult r = Shell("head -c 3000000 /dev/zero; echo end >&2", options);
  EXPECT_EQ(r.output, std::string(1000, '\0'));
  EXPECT_EQ(r.error, "end\n");
}

TEST(RunProcess, DoesNotWaitForAChildLeftBehind) {
  const absl::Time start = absl::Now();
  const ProcessResult r = Shell("sleep 30 & echo $!");
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  int pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(LastLine(r.output), &pid));
  kill(pid, SIGKILL);
}

TEST(RunProcess, KillsTheWholeGroupAtTheLimit) {
  const std::string file = testing::TempDir() + "/child.pid";
  ProcessOptions options;
  options.timeout = absl::Milliseconds(500);
  const absl::Time start = absl::Now();
  EXPECT_THAT(RunProcess({"sh", "-c", "sleep 60 & echo $! > \"$0\"; wait", file}, options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("'sh' was stopped after")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  PIPELAB_ASSERT_OK_AND_ASSIGN(ProcessResult read, RunProcess({"cat", file}));
  int pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(LastLine(read.output), &pid));
  // Gone, or a zombie that nobody has collected: state Z.
  const ProcessResult state =
      Shell("cat /proc/" + std::to_string(pid) + "/stat 2>/dev/null || true");
  EXPECT_TRUE(state.output.empty() || state.output.find(") Z ") != std::string::npos)
      << state.output;
}

TEST(LastLine, SkipsBlankLines) {
  EXPECT_EQ(LastLine("a\nb \n\n"), "b");
  EXPECT_EQ(LastLine(""), "");
}

}  // namespace
}  // namespace pipelab
