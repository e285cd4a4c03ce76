// Two coordinators as processes: on one address, with one checkpoint or log, and one that was
// thought dead.
#include <glob.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/checkpoint/training_state.h"
#include "pipelines/swarm/swarm_log.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

std::string FileOf(const std::string& name) { return JoinPath(::testing::TempDir(), name); }
std::string AddressOf(int number) {  // below the ports that the system deals
  return absl::StrCat("127.0.0.1:", 10'000 + getpid() * 31 % 2000 * 10 + number);
}
std::string TextOf(const std::string& file) {
  const auto text = ReadFile(file);
  return text.ok() ? *text : "";
}

// Training, with peers of its own.
std::vector<std::string> Words(const std::string& address, const std::string& checkpoint,
                               const std::string& log) {
  return {"experiments/pipelab",
          "swarm",
          "coordinate",
          "--local_peers=3",
          "--context=16",
          "--hidden=16",
          "--micro_batches=4",
          "--checkpoint_every=4",
          "--steps=80",
          "--least_pass_ms=4",
          absl::StrCat("--token_file=", FileOf("token")),
          absl::StrCat("--listen=", address),
          absl::StrCat("--checkpoint=", checkpoint),
          absl::StrCat("--log=", log)};
}

// Its number is in a file before it begins.
class Running {
 public:
  Running(const std::string& name, const std::vector<std::string>& words) {
    std::vector<std::string> all = {"sh", "-c", "echo $$ >\"$0\"; exec \"$@\"", FileOf(name)};
    all.insert(all.end(), words.begin(), words.end());
    thread_ = std::thread([this, all] {
      const auto ran = RunProcess(all);
      EXPECT_THAT(ran, IsOk());
      if (ran.ok()) result_ = *ran;
    });
    while (!absl::SimpleAtoi(TextOf(FileOf(name)), &process_)) absl::SleepFor(kLook);
  }
  ~Running() {
    if (!thread_.joinable()) return;
    Signal(SIGKILL);
    thread_.join();
  }
  void Signal(int signal) const { kill(process_, signal); }
  ProcessResult End() {
    thread_.join();
    return result_;
  }
  int process() const { return process_; }

  static constexpr absl::Duration kLook = absl::Milliseconds(20);

 private:
  int process_ = 0;
  ProcessResult result_;
  std::thread thread_;
};

// How often the log has the words, once that is at least `count`.
void AwaitWords(const std::string& log, const std::string& words, size_t count) {
  for (int i = 0; i < 3000; ++i, absl::SleepFor(Running::kLook)) {
    const std::vector<std::string> parts = absl::StrSplit(TextOf(log), words);
    if (parts.size() > count) return;
  }
  FAIL() << "no " << words << " in:\n" << TextOf(log);
}

// As on another machine, which shares the disk and not /tmp.
void TakeLocksFrom(int process) {
  glob_t found;
  ASSERT_EQ(glob("/tmp/pipelab-*.lock", 0, nullptr, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    if (TextOf(found.gl_pathv[i]) == absl::StrCat(process)) unlink(found.gl_pathv[i]);
  }
  globfree(&found);
}

TEST(CoordinatorsTest, ASecondOneIsRefusedWhileTheFirstLives) {
  const std::string checkpoint = FileOf("one.safetensors"), log = FileOf("one.log");
  const std::string same = FileOf("./one.safetensors");  // by another name
  const Running first("first", Words(AddressOf(0), checkpoint, log));
  AwaitWords(log, "step step=0 ", 1);
  const auto refused = [](const std::vector<std::string>& words, const std::string& why) {
    const auto ran = RunProcess(words);
    ASSERT_THAT(ran, IsOk());
    EXPECT_EQ(ran->exit_code, 1);
    EXPECT_EQ(ran->error, why + "\n");
  };
  const std::string lives = absl::StrCat(": process ", first.process(),
                                         " writes it; wait until it ends, or give another path");
  for (const bool stopped : {false, true}) {
    if (stopped) first.Signal(SIGSTOP);
    refused(Words(AddressOf(0), FileOf("other.safetensors"), FileOf("other.log")),
            absl::StrCat("--listen=", AddressOf(0),
                         ": cannot be listened on; give an address of this host that no process "
                         "has"));
    refused(Words(AddressOf(1), same, FileOf("other.log")),
            absl::StrCat("--checkpoint=", same, lives));
    refused(Words(AddressOf(1), FileOf("other.safetensors"), log),
            absl::StrCat("--log=", log, lives));
  }
  first.Signal(SIGCONT);
  AwaitWords(log, " step=12 ", 2);  // it goes on
  EXPECT_THAT(CheckSwarmLog(TextOf(log)), IsOk());
}

TEST(CoordinatorsTest, OneThatComesBackTakesNothingBack) {
  const std::string checkpoint = FileOf("two.safetensors"), log = FileOf("two.log");
  Running first("back", Words(AddressOf(0), checkpoint, log));
  AwaitWords(log, "save step=", 1);
  first.Signal(SIGSTOP);
  TakeLocksFrom(first.process());
  Running second("over", Words(AddressOf(1), checkpoint, log));
  AwaitWords(log, "start step=", 2);
  AwaitWords(log, "save step=", 3 + CheckSwarmLog(TextOf(log))->steps / 4);
  first.Signal(SIGCONT);
  const ProcessResult ended = first.End();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(
      ended.error,
      absl::StrCat("--checkpoint=", checkpoint,
                   ": another coordinator has written it meanwhile, so this one ends; let one "
                   "run at a time, or give another path\n"));
  const ProcessResult done = second.End();
  EXPECT_EQ(done.exit_code, 0) << done.error;
  const auto proof = CheckSwarmLog(TextOf(log));
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, 80);
  EXPECT_GT(proof->late, 0);
  const auto kept = ReadTrainingState(checkpoint);
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->step, 80);
  // Whoever has done a step, it has one loss.
  std::map<std::string, std::string> losses;
  for (absl::string_view line : absl::StrSplit(TextOf(log), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] != "step") continue;
    EXPECT_EQ(losses.try_emplace(words[1], words[2]).first->second, words[2]) << line;
  }
  EXPECT_EQ(losses.size(), 80);
}

}  // namespace
}  // namespace pipelab
