// Process groups: as threads, which is enough for what they say to each other, and as processes
// that are killed.
#include "kernels/comm/process_group.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/follow_up.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kMinute = absl::Seconds(60);

std::string NewPath() {
  static int count = 0;
  return absl::StrCat(testing::TempDir(), "/meet", getpid(), ".", count++);
}

using Body = std::function<void(ProcessGroup&)>;

// Each rank a thread.
void AsThreads(int size, const Body& body, const ProcessGroupOptions& options = {}) {
  const std::string path = NewPath();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = ProcessGroup::Create(rank, size, FileRendezvous(path, kMinute), options);
      ASSERT_THAT(group, IsOk());
      body(**group);
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(ProcessGroup, Exchanges) {
  for (const int size : {1, 2, 5}) {
    AsThreads(size, [size](ProcessGroup& group) {
      EXPECT_EQ(group.size(), size);
      EXPECT_EQ(group.clock_offset_ns(), 0) << "one machine, one clock";
      for (int round = 0; round < 3; ++round) {
        const auto text = [&](int rank) { return std::string(1000 * rank + round, 'a' + rank); };
        PIPELAB_ASSERT_OK_AND_ASSIGN(auto all, group.ToAll(text(group.rank()), kMinute));
        ASSERT_EQ(all.size(), static_cast<size_t>(size));
        for (int r = 0; r < size; ++r) EXPECT_EQ(all[r], text(r));
        PIPELAB_ASSERT_OK_AND_ASSIGN(auto few, group.ToFirst(text(group.rank()), kMinute));
        EXPECT_EQ(few, group.rank() == 0 ? all : std::vector<std::string>());
        PIPELAB_ASSERT_OK_AND_ASSIGN(std::string first,
                                     group.FromFirst(group.rank() == 0 ? "it\0is" : "no", kMinute));
        EXPECT_EQ(first, "it\0is");
        ASSERT_THAT(group.Meet(kMinute), IsOk());
      }
    });
  }
}

TEST(ProcessGroup, LargeTexts) {
  AsThreads(3, [](ProcessGroup& group) {
    const std::string mine(3'000'000 + group.rank(), static_cast<char>('0' + group.rank()));
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto all, group.ToAll(mine, kMinute));
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(all[r], std::string(3'000'000 + r, static_cast<char>('0' + r)));
    }
  });
}

// Where several have errors, the lowest rank's is everybody's, and the group goes on.
TEST(ProcessGroup, AgreesOnAnError) {
  AsThreads(4, [](ProcessGroup& group) {
    EXPECT_THAT(group.Agree(absl::OkStatus(), kMinute), IsOk());
    const absl::Status own =
        group.rank() % 2 == 1 ? absl::DataLossError(absl::StrCat("file ", group.rank(), " is bad"))
                              : absl::OkStatus();
    const absl::Status agreed = group.Agree(own, kMinute);
    EXPECT_THAT(agreed, StatusIs(absl::StatusCode::kDataLoss, "rank 1 of 4: file 1 is bad"));
    EXPECT_EQ(IsFollowUp(agreed), group.rank() != 1);
    EXPECT_THAT(group.Agree(absl::OkStatus(), kMinute), IsOk());
  });
}

TEST(ProcessGroup, AnErrorEndsTheRunForAll) {
  for (const int culprit : {0, 2}) {
    AsThreads(4, [&](ProcessGroup& group) {
      for (int round = 0; round < 3; ++round) {
        const auto run = group.BeginRun();
        EXPECT_THAT(run->Check(), IsOk());
        ASSERT_THAT(group.Meet(kMinute), IsOk());
        const std::string reason = absl::StrCat("disk ", round, " is gone");
        if (group.rank() == culprit) {
          const absl::Status own = run->Fail(absl::DataLossError(reason));
          EXPECT_THAT(own, StatusIs(absl::StatusCode::kDataLoss, reason));
          EXPECT_FALSE(IsFollowUp(own));
        }
        while (!run->ended()) std::this_thread::yield();
        EXPECT_THAT(run->Check(), StatusIs(absl::StatusCode::kDataLoss, reason));
        EXPECT_TRUE(IsFollowUp(run->Check()));
        const absl::Status late = run->Fail(absl::InternalError("later"));
        EXPECT_THAT(late, StatusIs(absl::StatusCode::kDataLoss, reason));
        EXPECT_TRUE(IsFollowUp(late));
        ASSERT_THAT(group.Meet(kMinute), IsOk()) << "the group goes on";
      }
    });
  }
}

// One of the errors at the same time is everybody's.
TEST(ProcessGroup, OneErrorWins) {
  std::vector<std::string> messages(5);
  std::vector<int> own(5);
  for (int round = 0; round < 5; ++round) {
    AsThreads(5, [&](ProcessGroup& group) {
      const auto run = group.BeginRun();
      ASSERT_THAT(group.Meet(kMinute), IsOk());
      const absl::Status s = run->Fail(absl::InternalError(absl::StrCat("of ", group.rank())));
      messages[group.rank()] = std::string(s.message());
      own[group.rank()] = !IsFollowUp(s);
      ASSERT_THAT(group.Meet(kMinute), IsOk());
    });
    int winners = 0;
    for (int r = 0; r < 5; ++r) {
      EXPECT_EQ(messages[r], messages[0]);
      winners += own[r];
      if (own[r]) {
        EXPECT_EQ(messages[r], absl::StrCat("of ", r));
      }
    }
    EXPECT_EQ(winners, 1);
  }
}

TEST(ProcessGroup, NamesThoseThatDoNotCome) {
  const std::string path = NewPath();
  ProcessGroupOptions options;
  options.start_limit = absl::Milliseconds(300);
  std::thread one([&] {
    EXPECT_THAT(ProcessGroup::Create(1, 4, FileRendezvous(path, kMinute), {}),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0 of 4 is gone")))
        << "it has met process 0, which then gave up";
  });
  EXPECT_THAT(ProcessGroup::Create(0, 4, FileRendezvous(path, kMinute), options),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "rank 0 waited 300ms for rank 2, 3 of 4 to connect"));
  one.join();
  EXPECT_THAT(ProcessGroup::Create(1, 2, FileRendezvous(path, absl::Milliseconds(50)), options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 0 to write it")));
  EXPECT_THAT(ProcessGroup::Create(2, 2, FileRendezvous(path, kMinute), options),
              StatusIs(absl::StatusCode::kInvalidArgument, "process 2 of 2"));
}

TEST(ProcessGroup, AnotherRunsFileIsRefused) {
  const std::string path = NewPath();
  const Rendezvous first = FileRendezvous(path, kMinute);
  ASSERT_THAT(first(0, "elsewhere"), IsOk());
  EXPECT_THAT(ProcessGroup::Create(0, 1, FileRendezvous(path, kMinute), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
}

TEST(ProcessGroup, ALimitNamesWhoIsMissing) {
  AsThreads(3, [](ProcessGroup& group) {
    if (group.rank() == 0) {
      EXPECT_THAT(group.Meet(absl::Milliseconds(50)), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                                               "rank 0 waited 50ms for rank 1, 2"));
    } else {  // takes part in the exchange and has no text
      EXPECT_THAT(group.FromFirst("", absl::Milliseconds(100)),
                  StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("for rank 0")));
    }
    ASSERT_THAT(group.Meet(kMinute), IsOk());
  });
}

TEST(ProcessGroup, WhoHasLeftIsNotWaitedFor) {
  AsThreads(3, [](ProcessGroup& group) {
    if (group.rank() == 1) return;
    EXPECT_THAT(group.Meet(kMinute), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("left")));
  });
}

TEST(ProcessGroup, SaysWhereADeviceIs) {
  AsThreads(1, [](ProcessGroup& group) {
    EXPECT_EQ(group.Whereabouts(3), "");
    group.SetWhereabouts(3, [] { return "device 3 is in 1F3"; });
    EXPECT_EQ(group.Whereabouts(3), "device 3 is in 1F3");
    group.SetWhereabouts(3, nullptr);
    EXPECT_EQ(group.Whereabouts(3), "");
  });
}

// Each rank a process, made before this one has threads; what they find is their exit code.
void AsProcesses(int size, const std::function<bool(ProcessGroup&)>& body,
                 const ProcessGroupOptions& options, const std::vector<int>& killed) {
  const std::string path = NewPath();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto group = ProcessGroup::Create(rank, size, FileRendezvous(path, kMinute), options);
      _exit(group.ok() && body(**group) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[rank], &status, 0), children[rank]);
    const bool is_victim = std::find(killed.begin(), killed.end(), rank) != killed.end();
    if (is_victim) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "rank " << rank;
    } else {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank;
    }
  }
}

TEST(KilledProcess, IsNamedWithWhatItDid) {
  for (const int victim : {0, 1, 3}) {
    const std::string message =
        absl::StrCat("rank ", victim, " of 4 is gone (killed or crashed): device 5 is in 1F3");
    AsProcesses(4,
                [&](ProcessGroup& group) {
                  const auto run = group.BeginRun();
                  group.SetWhereabouts(5, [] { return "device 5 is in 1F3"; });
                  if (!group.Meet(kMinute).ok()) return false;
                  if (group.rank() == victim) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(100));
                    raise(SIGKILL);
                  }
                  const auto begin = std::chrono::steady_clock::now();
                  const bool waits = group.Meet(kMinute).message() == message;
                  while (!run->ended()) std::this_thread::yield();
                  const bool soon =
                      std::chrono::steady_clock::now() - begin < std::chrono::seconds(5);
                  const absl::Status why = run->Check();
                  return waits && soon && why.message() == message && IsFollowUp(why) &&
                         group.BeginRun()->Check().message() == message;
                },
                {}, {victim});
  }
}

// A program gives up whatever its threads are doing, and one process says why.
TEST(KilledProcess, EndsPrograms) {
  for (const int victim : {0, 2}) {
    int pipe_fds[2];
    ASSERT_EQ(pipe(pipe_fds), 0);
    ProcessGroupOptions options;
    options.catch_signals = true;
    options.on_end = [&](const absl::Status& why, bool tells) {
      const std::string line = absl::StrCat(why.message(), "\n");
      if (tells && write(pipe_fds[1], line.data(), line.size()) < 0) _exit(3);
      _exit(0);
    };
    AsProcesses(3,
                [&](ProcessGroup& group) {
                  if (!group.Meet(kMinute).ok()) return false;
                  if (group.rank() == victim) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    raise(SIGKILL);
                  }
                  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));  // hangs
                },
                options, {victim});
    close(pipe_fds[1]);
    char said[1000];
    const ssize_t n = read(pipe_fds[0], said, sizeof(said));
    close(pipe_fds[0]);
    EXPECT_EQ(std::string(said, n < 0 ? 0 : static_cast<size_t>(n)),
              absl::StrCat("rank ", victim, " of 3 is gone (killed or crashed)\n"));
  }
}

// The reason of a SIGTERM that follows a death is the death.
TEST(KilledProcess, IsTheReasonOfATermination) {
  ProcessGroupOptions options;
  options.catch_signals = true;
  options.on_end = [](const absl::Status& why, bool) {
    _exit(why.message() == "rank 1 of 2 is gone (killed or crashed)" ? 0 : 4);
  };
  AsProcesses(2,
              [&](ProcessGroup& group) {
                if (!group.Meet(kMinute).ok()) return false;
                if (group.rank() == 1) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(50));
                  raise(SIGKILL);
                }
                raise(SIGTERM);
                while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
              },
              options, {1});
}

}  // namespace
}  // namespace pipelab
