// Progress lines on a made-up clock.
#include "tools/base/progress.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Recorder {
  std::string text;
  absl::Time now = absl::FromUnixSeconds(1000);
  ProgressOptions Options(bool terminal) {
    ProgressOptions options;
    options.write = [this](absl::string_view s) { text.append(s.data(), s.size()); };
    options.now = [this] { return now; };
    options.terminal = terminal;
    return options;
  }
};

TEST(Progress, LogGetsAFullLineAtMostEveryFewSeconds) {
  Recorder r;
  Progress p("train", 100, "step", r.Options(false));
  for (int i = 1; i <= 12; ++i) {
    r.now += absl::Seconds(1);
    p.Update(i, "loss 2.5");
  }
  EXPECT_EQ(r.text,
            "train: 5/100 steps   5%, 1 step/s, 1 min 35 s left, loss 2.5\n"
            "train: 10/100 steps  10%, 1 step/s, 1 min 30 s left, loss 2.5\n");
  r.text.clear();
  p.Update(100);
  p.Finish();
  p.Finish();
  EXPECT_EQ(r.text, "train: 100 steps in 12 s (8.33 step/s), loss 2.5\n");
}

TEST(Progress, TerminalLineIsRewritten) {
  Recorder r;
  {
    Progress p("t", 4, "step", r.Options(true));
    p.Update(1, "a long note");
    r.now += absl::Milliseconds(50);
    p.Update(2);  // too soon
    r.now += absl::Milliseconds(950);
    p.Update(4, "x");
    EXPECT_THAT(r.text, Not(HasSubstr("\n")));
    EXPECT_EQ(r.text.find("\rt: 1/4 steps  25%, a long note"), 0u);
    EXPECT_THAT(r.text, HasSubstr("\rt: 4/4 steps 100%, 4 step/s, x"));
    EXPECT_THAT(r.text, Not(HasSubstr("2/4")));
    p.Finish();
    EXPECT_EQ(r.text.back(), '\n');
  }
  EXPECT_EQ(r.text.find('\n'), r.text.size() - 1);
}

TEST(Progress, BlanksCoverALongerLine) {
  Recorder r;
  Progress p("t", 0, "file", r.Options(true));
  p.Update(1, "0123456789abc");
  EXPECT_EQ(r.text, "\rt: 1 files, 0123456789abc");
  r.text.clear();
  r.now += absl::Seconds(1);
  p.Update(2, "x");
  EXPECT_EQ(r.text, "\rt: 2 files, 2 file/s, x  ");
}

TEST(Progress, EndsItsLineWhenAbandoned) {
  Recorder r;
  {
    Progress p("t", 3, "step", r.Options(true));
    p.Update(1);
  }
  EXPECT_EQ(r.text.back(), '\n');
  Recorder quiet;
  { Progress p("t", 3, "step", quiet.Options(true)); }
  EXPECT_EQ(quiet.text, "");
}

TEST(Progress, CountsFromManyThreads) {
  Recorder r;
  Progress p("t", 4000, "item", r.Options(false));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&p] {
      for (int i = 0; i < 1000; ++i) p.Add(1);
    });
  }
  for (std::thread& t : threads) t.join();
  r.now += absl::Seconds(2);
  p.Finish();
  EXPECT_EQ(r.text, "t: 4000 items in 2 s (2e+03 item/s)\n");
}

}  // namespace
}  // namespace pipelab
