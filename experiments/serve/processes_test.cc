// The processes behind the server when they are killed or stopped, and what the server leaves.
#include <dirent.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/serve/serve_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 1 where /proc says "4 (name) S 1 ..."; 0: it has ended.
pid_t ParentOf(const std::string& process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
  std::string text;
  std::getline(file, text, '\0');  // a process that ends meanwhile is a fault of the stream
  const std::vector<std::string> fields = absl::StrSplit(text.substr(text.rfind(')') + 1), ' ');
  pid_t parent = 0;
  return fields.size() > 2 && fields[1] != "Z" && absl::SimpleAtoi(fields[2], &parent) ? parent : 0;
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && ParentOf(entry->d_name) == parent) {
      children.push_back(pid);
    }
  }
  closedir(folder);
  return children;
}

// Waits for a child that is not `other`; 0: none comes.
pid_t ChildOf(pid_t parent, pid_t other = 0) {
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  while (absl::Now() < give_up) {
    const std::vector<pid_t> children = ChildrenOf(parent);
    if (children.size() == 1 && children[0] != other) return children[0];
    absl::SleepFor(absl::Milliseconds(1));
  }
  return 0;
}

int StatusOfSimulate(const TestServer& server) {
  RawClient client(server.port());
  client.Send(PostText(server.host(), "/api/simulate", R"({"words": ["1f1b:P=4,M=8"]})"));
  return client.Read().status;
}

TEST(ProcessesTest, TheOneThatForksIsStartedAgain) {
  TestServer server((ServeLimits()));
  const pid_t keeper = ChildOf(getpid());
  int failures = 0;
  pid_t forks = ChildOf(keeper);
  for (const int signal : {SIGKILL, SIGSTOP, SIGTERM, SIGKILL}) {
    ASSERT_GT(forks, 0);
    kill(forks, signal);
    ++failures;
    forks = ChildOf(keeper, forks);
    EXPECT_EQ(StatusOfSimulate(server), 200) << signal;
    EXPECT_EQ(server.pool().counts().restarted, failures);
  }
  // It takes the place of the one that starts it.
  kill(keeper, SIGKILL);
  while (ParentOf(absl::StrCat(keeper)) != 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(StatusOfSimulate(server), 200);
  const pid_t next = ChildOf(forks);
  ASSERT_GT(next, 0);
  kill(next, SIGKILL);
  EXPECT_GT(ChildOf(forks, next), 0);
  EXPECT_EQ(StatusOfSimulate(server), 200);
}

// The next request starts both again, whatever happened to them.
TEST(ProcessesTest, BothProcessesMayEndOrStopAtOnce) {
  ServeLimits limits;
  limits.command_time = absl::Seconds(1);
  TestServer server(limits);
  pid_t keeper = ChildOf(getpid());
  int failures = 0;
  for (const int signal : {SIGKILL, SIGSTOP, SIGKILL}) {
    ASSERT_GT(keeper, 0);
    const pid_t forks = ChildOf(keeper);
    kill(keeper, SIGSTOP);  // it starts nothing now
    kill(forks, signal);
    kill(keeper, signal);
    for (const pid_t one : {forks, keeper}) {
      while (signal == SIGKILL && ParentOf(absl::StrCat(one)) != 0) {
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
    RawClient client(server.port());
    client.Send(PostText(server.host(), "/api/simulate", R"({"words": ["1f1b:P=4,M=8"]})"));
    const HttpAnswer answer = client.Read(absl::Seconds(5));
    EXPECT_EQ(answer.status, signal == SIGKILL ? 200 : 503) << signal;
    if (signal == SIGSTOP) {
      EXPECT_THAT(answer.body, HasSubstr("no process is free; try again soon"));
    }
    EXPECT_EQ(StatusOfSimulate(server), 200) << signal;
    EXPECT_EQ(server.pool().counts().restarted, ++failures);
    EXPECT_EQ(ParentOf(absl::StrCat(forks)), 0);  // also where it was stopped
    keeper = ChildOf(getpid(), keeper);
  }
}

TEST(ProcessesTest, ACommandThatIsStoppedEndsWithItsTime) {
  ServeLimits limits;
  limits.command_time = absl::Seconds(1);
  limits.longest_search = absl::Seconds(1);
  TestServer server(limits);
  const pid_t forks = ChildOf(ChildOf(getpid()));
  RawClient client(server.port());
  client.Send(PostText(server.host(), "/api/synthesize",
                       R"({"words": ["1f1b:P=8,M=32"], "options": {"memory": 6,
       "time_limit": "1s", "p2p_latency": 0.2, "forward": "1.1,1.3,1.2,1.7,1,1.45,1.05,1.3"}})"));
  const pid_t command = ChildOf(forks);
  ASSERT_GT(command, 0);
  kill(command, SIGSTOP);
  EXPECT_THAT(client.ReadAll(), HasSubstr("took longer than 2s"));
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  while (!ChildrenOf(forks).empty() && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_THAT(ChildrenOf(forks), IsEmpty());
  EXPECT_EQ(server.pool().counts().timed_out, 1);
}

TEST(ProcessesTest, NothingIsLeftHoweverTheServerEnds) {
  for (const char* ending : {"HUP 0", "TERM 0", "INT 0", "KILL 137"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string folder,
                                 MakeTemporaryDirectory(testing::TempDir() + "/ends-"));
    const std::vector<std::string> words = absl::StrSplit(ending, ' ');
    ProcessOptions options;
    options.environment = {{"TMPDIR", folder}};
    const auto result =
        RunProcess({"bash", "-c",
                    absl::StrCat("set -m; experiments/pipelab serve --port=0 >", folder,
                                 "/out & "
                                 "until grep -q serving ",
                                 folder,
                                 "/out; do sleep 0.05; done; sleep 0.2; "
                                 "ls ",
                                 folder, "; kill -", words[0],
                                 " $!; wait $!; echo ended $?; "
                                 "for i in $(seq 200); do ls ",
                                 folder,
                                 " | grep -q serve- || break; "
                                 "sleep 0.05; done; ls ",
                                 folder, " | grep -c serve-")},
                   options);
    ASSERT_THAT(result, IsOk());
    EXPECT_THAT(result->output, HasSubstr("pipelab-serve-")) << ending;
    EXPECT_THAT(result->output, HasSubstr(absl::StrCat("ended ", words[1], "\n0\n"))) << ending;
  }
}

}  // namespace
}  // namespace pipelab
