#include "pipelines/fill/fill_runner.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/tensor/arena.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// A job whose pieces take what the test says, on the test's clock.
struct FakeWork final : public FillWork {
  FakeWork(int64_t* clock, std::string n, std::vector<int64_t> t)
      : now(clock), job(std::move(n)), times(std::move(t)) {}

  const std::string& name() const override { return job; }
  bool over() const override { return done == times.size(); }
  Bytes next_bytes() const override { return says; }
  absl::Status RunNext() override {
    if (done == fails_at) return absl::DataLossError("bad sector");
    const Tensor scratch =
        takes == 0 ? Tensor()
                   : arena->Allocate(DataType::kFloat32, {takes / 4}, MemoryKind::kWorkspace);
    if (keeps > 0) {
      kept.push_back(arena->Allocate(DataType::kFloat32, {keeps / 4}, MemoryKind::kActivation));
    }
    *now += times[done++];
    return absl::OkStatus();
  }

  int64_t* const now;
  const std::string job;
  const std::vector<int64_t> times;
  size_t done = 0, fails_at = 1u << 30;
  Arena* arena = nullptr;
  Bytes says;
  int64_t takes = 0, keeps = 0;  // bytes: of a piece, and from then on
  std::vector<Tensor> kept;
};

class FillRunnerTest : public testing::Test {
 protected:
  FillRunnerTest() { options_.slack = Nanoseconds(0); }

  FakeWork* Add(const std::string& name, const std::vector<int64_t>& times) {
    auto work = std::make_unique<FakeWork>(&now_, name, times);
    work->arena = &arena_;
    works_.push_back(std::move(work));
    return static_cast<FakeWork*>(works_.back().get());
  }

  // A device with fills of these times, 0, 1, ...
  void Make(const std::vector<int64_t>& times, Bytes bytes = Bytes(1 << 20)) {
    options_.now = [this] { return now_; };
    runner_ = std::make_unique<FillRunner>(&arena_, std::move(works_), options_);
    for (size_t n = 0; n < times.size(); ++n) {
      Instruction i;
      i.op = OpCode::kFill;
      i.arg = static_cast<int32_t>(n);
      list_.push_back(i);
      fills_.emplace_back();
      fills_.back().time = Nanoseconds(times[n]);
      fills_.back().bytes = bytes;
    }
    runner_->BeginStep(list_, fills_);
  }

  // A wait for a message that comes after so long; how long the device was there.
  int64_t Wait(int fill, int64_t message) {
    const int64_t begin = now_, comes = begin + message;
    runner_->Run(fills_[fill], [&] { return now_ >= comes; });
    now_ = std::max(now_, comes);
    return now_ - begin;
  }

  int64_t now_ = 1000;
  Arena arena_;
  FillWorks works_;
  FillRunnerOptions options_;
  std::unique_ptr<FillRunner> runner_;
  std::vector<Instruction> list_;
  std::vector<Fill> fills_;
};

TEST_F(FillRunnerTest, NothingRunsInFillsWithoutTime) {
  FakeWork* work = Add("a", std::vector<int64_t>(10, 10));
  Make({0});
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(work->done, 0u);
  fills_[0].time = Nanoseconds(100);
  runner_->BeginStep(list_, fills_);
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(work->done, 10u);
  const FillReport report = runner_->Report();
  EXPECT_EQ(report.filled, Nanoseconds(100));
  EXPECT_EQ(report.foreseen, Nanoseconds(100));
  EXPECT_TRUE(report.jobs[0].over);
  EXPECT_EQ(report.jobs[0].pieces, 10);
}

TEST_F(FillRunnerTest, APieceThatDoesNotFitIntoTheRestDoesNotRun) {
  FakeWork* work = Add("a", std::vector<int64_t>(100, 30));
  Make({100, 20});
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(work->done, 3u);
  EXPECT_EQ(Wait(1, 20), 20);  // too short for a piece
  EXPECT_EQ(work->done, 3u);
  EXPECT_EQ(Wait(0, 1000), 1000);  // longer than foreseen: only the foreseen time is used
  EXPECT_EQ(work->done, 6u);
}

TEST_F(FillRunnerTest, TheFirstPieceRunsInTheLongestWait) {
  FakeWork* work = Add("a", std::vector<int64_t>(100, 10));
  Make({50, 100});
  EXPECT_EQ(Wait(0, 50), 50);
  EXPECT_EQ(work->done, 0u);
  EXPECT_EQ(Wait(1, 100), 100);
  EXPECT_EQ(work->done, 10u);
  EXPECT_EQ(Wait(0, 50), 50);
  EXPECT_EQ(work->done, 15u);
}

// The message is there early: no further piece begins.
TEST_F(FillRunnerTest, YieldsToTheMessage) {
  FakeWork* work = Add("a", std::vector<int64_t>(100, 30));
  Make({300});
  EXPECT_EQ(Wait(0, 300), 300);
  EXPECT_EQ(work->done, 10u);
  EXPECT_EQ(Wait(0, 40), 60);
  EXPECT_EQ(work->done, 12u);
  EXPECT_EQ(Wait(0, 0), 0);
}

// A piece that takes ten times as long costs that piece, and is not what is expected from then on.
TEST_F(FillRunnerTest, AWildPieceCostsThatPieceAndNoMore) {
  std::vector<int64_t> times(1000, 10);
  times[25] = 100;
  FakeWork* work = Add("a", times);
  Make({100});
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(Wait(0, 100), 100);
  const int64_t late = Wait(0, 100) - 100;
  EXPECT_EQ(work->done, 26u);
  EXPECT_GT(late, 0);
  EXPECT_LE(late, 100);
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(work->done, 36u);
}

TEST_F(FillRunnerTest, AJobTooLargeForEveryGapIsNamedAndEnded) {
  Add("large", std::vector<int64_t>(100, 250));
  FakeWork* fine = Add("fine", std::vector<int64_t>(100, 10));
  Make({200});
  for (int step = 0; step < 5; ++step) Wait(0, 200);
  EXPECT_EQ(runner_->Report().jobs[0].pieces, 4);
  EXPECT_GT(fine->done, 0u);
  EXPECT_THAT(runner_->Report().jobs[0].status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "fill job large: too large for every gap: a piece takes 250 ns, and the "
                       "longest has 200 ns"));
}

// The first piece is slow, as what is done once belongs to it.
TEST_F(FillRunnerTest, ASlowFirstPieceSaysNothing) {
  std::vector<int64_t> times(100, 10);
  times[0] = 1000;
  FakeWork* work = Add("a", times);
  Make({100});
  EXPECT_EQ(Wait(0, 100), 1000);
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(work->done, 11u);
}

TEST_F(FillRunnerTest, AFaultEndsThatJobAlone) {
  FakeWork* broken = Add("broken", std::vector<int64_t>(100, 10));
  FakeWork* fine = Add("fine", std::vector<int64_t>(100, 10));
  broken->fails_at = 2;
  Make({100});
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(fine->done, 8u);
  const FillReport report = runner_->Report();
  EXPECT_THAT(report.jobs[0].status, StatusIs(absl::StatusCode::kDataLoss, "bad sector"));
  EXPECT_FALSE(report.jobs[0].over);
  EXPECT_THAT(report.jobs[1].status, IsOk());
}

TEST_F(FillRunnerTest, TheBytesOfAFillAreHard) {
  Add("large", {10})->says = Bytes(1001);
  FakeWork* liar = Add("liar", std::vector<int64_t>(3, 10));
  liar->takes = 2000;
  liar->says = Bytes(8);
  FakeWork* fine = Add("fine", std::vector<int64_t>(3, 10));
  fine->takes = 1000;
  fine->says = Bytes(1000);
  Make({100}, Bytes(1000));
  EXPECT_EQ(Wait(0, 100), 100);
  const FillReport report = runner_->Report();
  EXPECT_THAT(report.jobs[0].status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "fill job large: too large for every gap: the next piece makes it 1001 "
                       "bytes, and the emptiest has 1000 free"));
  EXPECT_THAT(
      report.jobs[1].status,
      StatusIs(absl::StatusCode::kResourceExhausted,
               "fill job liar: held 2000 bytes in a piece, more than the 1000 that it may"));
  EXPECT_EQ(report.jobs[1].pieces, 1);
  EXPECT_TRUE(report.jobs[2].over);
}

// Another fill has the memory.
TEST_F(FillRunnerTest, APieceWaitsForAFillThatHoldsIt) {
  FakeWork* work = Add("a", std::vector<int64_t>(20, 10));
  work->says = Bytes(500);
  Make({100, 100});
  fills_[0].bytes = Bytes(499);
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(work->done, 0u);
  EXPECT_EQ(Wait(1, 100), 100);
  EXPECT_EQ(work->done, 10u);
}

TEST_F(FillRunnerTest, AJobThatKeepsTooMuchIsEnded) {
  FakeWork* hoarder = Add("hoarder", std::vector<int64_t>(20, 10));
  hoarder->keeps = 400;
  FakeWork* fine = Add("fine", std::vector<int64_t>(3, 10));
  options_.limit = Bytes(1000);
  Make({100});
  EXPECT_EQ(Wait(0, 100), 100);
  const FillReport report = runner_->Report();
  EXPECT_EQ(report.jobs[0].pieces, 3);
  EXPECT_THAT(
      report.jobs[0].status,
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("hoarder: held 1200 bytes between two pieces, more than the 1000")));
  EXPECT_EQ(fine->done, 3u);
}

TEST_F(FillRunnerTest, SlackIsLeftFree) {
  FakeWork* work = Add("a", std::vector<int64_t>(100, 10));
  options_.slack = Nanoseconds(25);
  Make({100});
  EXPECT_EQ(Wait(0, 100), 100);
  EXPECT_EQ(work->done, 7u);
}

}  // namespace
}  // namespace pipelab
