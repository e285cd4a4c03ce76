#include "tools/base/file_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

int64_t FilesOf(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

class FileLockTest : public testing::Test {
 protected:
  const std::string folder_ = MakeTemporaryDirectory(JoinPath(testing::TempDir(), "lock-")).value();
  const std::string path_ = JoinPath(folder_, "a.safetensors");
};

TEST_F(FileLockTest, OneAtATimeAndNothingStays) {
  {
    PIPELAB_ASSERT_OK_AND_ASSIGN(FileLock lock, FileLock::Take("--checkpoint", path_));
    EXPECT_EQ(FilesOf(folder_), 0);
    EXPECT_THAT(FileLock::Take("--checkpoint", path_).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         "--checkpoint=" + path_ + ": process " + std::to_string(getpid()) +
                             " writes it; wait until it ends, or give another path"));
    EXPECT_THAT(FileLock::Take("--checkpoint", JoinPath(folder_, "b")).status(), IsOk());
    FileLock moved = std::move(lock);
    EXPECT_FALSE(FileLock::Take("--checkpoint", path_).ok());
  }
  EXPECT_THAT(FileLock::Take("--checkpoint", path_).status(), IsOk());
}

// Whether the path, or its folder, is there makes no difference, nor does the way to write it.
TEST_F(FileLockTest, APathIsTheSameHoweverItIsWritten) {
  const std::string below = JoinPath(folder_, "new/b");
  PIPELAB_ASSERT_OK_AND_ASSIGN(FileLock lock, FileLock::Take("--out", below));
  ASSERT_THAT(MakeDirectories(below), IsOk());
  for (const std::string& same : {below, below + "/", JoinPath(folder_, "new/../new/./b")}) {
    EXPECT_FALSE(FileLock::Take("--out", same).ok()) << same;
  }
}

TEST_F(FileLockTest, AKilledProcessKeepsNobodyOff) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FileLock::Take("--checkpoint", path_);
    const char held = lock.ok() ? 1 : 0;
    if (write(pipes[1], &held, 1) == 1) pause();
    _exit(0);
  }
  char held = 0;
  ASSERT_EQ(read(pipes[0], &held, 1), 1);
  ASSERT_EQ(held, 1);
  EXPECT_THAT(FileLock::Take("--checkpoint", path_).status().message(),
              HasSubstr("process " + std::to_string(child) + " writes it"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(FileLock::Take("--checkpoint", path_).status(), IsOk());
}

}  // namespace
}  // namespace pipelab
