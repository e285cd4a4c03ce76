#include "experiments/flags/waiting.h"

#include <csignal>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// Written by the thread, read once it shows no more.
struct Text {
  std::string all;
  WaitingOptions Options(absl::Duration silent) {
    WaitingOptions options;
    options.write = [this](absl::string_view text) { all += std::string(text); };
    options.silent = silent;
    options.interval = absl::Milliseconds(1);
    return options;
  }
};

TEST(Waiting, ShowsItselfAndClearsItsLineBeforeResults) {
  Text text;
  {
    const Waiting waiting("search", text.Options(absl::Milliseconds(1)));
    absl::SleepFor(absl::Milliseconds(200));
    const Waiting::Output output;
    EXPECT_THAT(text.all, HasSubstr("search: 0 s; Ctrl-C ends it\r"));
    EXPECT_TRUE(absl::EndsWith(text.all, " \r"));
    text.all.clear();
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_EQ(text.all, "");  // it stays away
  }
}

TEST(Waiting, ALineThatIsSaidStandsAlone) {
  Text text;
  const Waiting waiting("all", text.Options(absl::Milliseconds(1)));
  absl::SleepFor(absl::Milliseconds(100));
  Waiting::Say("[1/2] gpt_train");
  const Waiting::Output output;
  EXPECT_THAT(text.all,
              HasSubstr(absl::StrCat("ends it\r", std::string(24, ' '), "\r[1/2] gpt_train\n")));
}

TEST(Waiting, ALogIsQuietForAWhileAfterALine) {
  Text text;
  WaitingOptions options = text.Options(absl::Milliseconds(50));
  options.terminal = false;
  options.interval = absl::Hours(1);
  const Waiting waiting("all", options);
  Waiting::Say("[1/2] gpt_train");
  absl::SleepFor(absl::Milliseconds(200));
  const Waiting::Output output;
  EXPECT_EQ(text.all, "[1/2] gpt_train\n");
}

TEST(Waiting, SaysNothingAboutShortWork) {
  Text text;
  { const Waiting waiting("search", text.Options(absl::Hours(1))); }
  EXPECT_EQ(text.all, "");
  const Waiting::Output output;  // without one
}

void RaiseAndSleep(absl::string_view kept) {
  const Waiting waiting("search");
  if (!kept.empty()) Waiting::Output().Keep(kept);
  std::raise(SIGINT);
  absl::SleepFor(absl::Seconds(30));
}

TEST(WaitingDeathTest, AnInterruptEndsTheProcessAndSaysWhatIsKept) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(RaiseAndSleep(""), testing::ExitedWithCode(kInterrupted),
              "^search: interrupted after 0 s; no result is kept\n$");
  EXPECT_EXIT(RaiseAndSleep("a.json"), testing::ExitedWithCode(kInterrupted),
              "^search: interrupted after 0 s; kept a.json\n$");
}

TEST(WaitingDeathTest, AnInterruptWaitsForTheOutputThatIsUnderWay) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto interrupt_writing = [] {
    const Waiting waiting("search");
    {
      Waiting::Output output;
      std::raise(SIGINT);
      absl::SleepFor(absl::Milliseconds(100));
      output.Keep("a.json");
    }
    absl::SleepFor(absl::Seconds(30));
  };
  EXPECT_EXIT(interrupt_writing(), testing::ExitedWithCode(kInterrupted),
              "interrupted after 0 s; kept a.json");
}

TEST(Waiting, AnIgnoredInterruptStaysIgnored) {
  std::signal(SIGINT, SIG_IGN);
  {
    const Waiting waiting("search");
    std::raise(SIGINT);
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace pipelab
