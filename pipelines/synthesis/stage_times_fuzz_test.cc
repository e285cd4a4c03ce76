// 20,000 damaged inputs from one seed: none may crash. What is read, and the errors of what is
// wrong.
#include <string>

#include "gtest/gtest.h"
#include "pipelines/synthesis/stage_times.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr char kGiven[] =
    R"({"stages": [{"forward": "1.5 ms", "backward_input": "2 ms", "backward_weight": "1 ms",
                    "kept": "2 KiB"},
                   {"forward": "3 us", "backward_input": "4 us", "backward_weight": "0 us",
                    "kept": "1 B"}], "hop": "20 us"})";
constexpr char kRun[] =
    R"({"otherData": {"origin": "measured"}, "traceEvents": [
  {"ph":"X","pid":0,"ts":0,"dur":9,"name":"0F0","args":{"stage":0,"cpu_us":2.5}},
  {"ph":"X","pid":0,"ts":9,"dur":9,"name":"0F1","args":{"stage":0,"cpu_us":1.5}},
  {"ph":"X","pid":0,"ts":9,"dur":9,"name":"0F2","args":{"stage":0,"cpu_us":7}},
  {"ph":"X","pid":0,"ts":30,"dur":9,"name":"0B0","args":{"stage":0,"cpu_us":4}},
  {"ph":"s","id":3,"ts":8.999},{"ph":"f","id":3,"ts":12}]})";

constexpr char kSlices[] =
    R"({"stages": [{"forward": ["1 ms", "2 ms"], "backward_input": ["2 ms", "4 ms"],
                    "backward_weight": ["1 ms", "1 ms"], "kept": ["1 KiB", "2 KiB"],
                    "state": "9 B"}]})";

TEST(StageTimesFuzz, TwentyThousandMutations) { RunMutations({kGiven, kRun, kSlices}, 20000); }

TEST(StageTimes, OfTokenSlices) {
  const auto times = ParseStageTimes(kSlices, "f");
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->stages(), 1);
  EXPECT_EQ(times->slices, 2);
  EXPECT_EQ(times->backward_input[1], Nanoseconds(4'000'000));
  EXPECT_EQ(times->kept[1], Bytes(2048));
  EXPECT_EQ(times->state[0], Bytes(9));
  // A run's are told apart by the names of their passes.
  const auto run = ParseStageTimes(R"({"traceEvents": [
    {"ph":"X","dur":1,"name":"0F0","args":{"stage":0}},
    {"ph":"X","dur":2,"name":"0F0.1","args":{"stage":0}},
    {"ph":"X","dur":5,"name":"0B0.1","args":{"stage":0}},
    {"ph":"X","dur":3,"name":"0B0","args":{"stage":0}}]})",
                                   "f");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->slices, 2);
  EXPECT_EQ(run->forward[1], Nanoseconds(2000));
  EXPECT_EQ(run->backward_input[0], Nanoseconds(3000));
  EXPECT_EQ(run->backward_input[1], Nanoseconds(5000));
}

TEST(StageTimes, GivenOnesAreRead) {
  const auto times = ParseStageTimes(kGiven, "f");
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->stages(), 2);
  EXPECT_EQ(times->forward[0], Nanoseconds(1'500'000));
  EXPECT_EQ(times->backward_input[1], Nanoseconds(4000));
  EXPECT_EQ(times->hop, Nanoseconds(20'000));
  EXPECT_EQ(times->kept[0], Bytes(2048));
  EXPECT_FALSE(times->measured);
}

TEST(StageTimes, OfARunAreMediansOfProcessorTime) {
  const auto times = ParseStageTimes(kRun, "f");
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->forward[0], Nanoseconds(2500));
  EXPECT_EQ(times->backward_input[0], Nanoseconds(4000));
  EXPECT_TRUE(times->whole_backward);
  EXPECT_TRUE(times->measured);
  EXPECT_EQ(times->hop, Nanoseconds(3000));
}

TEST(StageTimes, Errors) {
  const auto error = [](const std::string& text) {
    return std::string(ParseStageTimes(text, "--times=f").status().message());
  };
  EXPECT_EQ(error("[]"), "--times=f: must be an object with 'stages', or a Chrome trace");
  EXPECT_EQ(error(R"({"stages": []})"),
            "--times=f: field 'stages': must be a list of 1 to 4096 stages");
  EXPECT_NE(error(R"({"stages": [{"backward_input": "1.5"}]})").find("backward_input"),
            std::string::npos);
  EXPECT_NE(error(R"({"stages": [{"forward": "1 s"}]})").find("backward_input"), std::string::npos);
  EXPECT_EQ(error(R"({"stages": [{"forward": "1 s", "backward_input": ["1 s", "2 s"],
                                  "backward_weight": ["1 s", "1 s"]}]})"),
            "--times=f: field 'stages[0].forward': has 1 token slices; must be of 2, as the first "
            "one");
  EXPECT_EQ(error(R"({"stages": [{"backward_input": []}]})"),
            "--times=f: field 'stages[0].backward_input': has 0 token slices; must be of 1 to 256");
  EXPECT_EQ(error(R"({"traceEvents": [{"ph":"X","name":"0F0.1","dur":1,"args":{"stage":0}}]})"),
            "--times=f: field 'traceEvents': has no F of stage 0; all stages must run the same "
            "kinds and slices");
  EXPECT_EQ(error(R"({"traceEvents": []})"),
            "--times=f: field 'traceEvents': has no passes with a stage");
  EXPECT_EQ(error(R"({"traceEvents": [{"ph":"X","name":"1F0","dur":1,"args":{"stage":1}}]})"),
            "--times=f: field 'traceEvents': has no F of stage 0; all stages must run the same "
            "kinds");
  EXPECT_EQ(error(R"({"traceEvents": [{"ph":"X","name":"1F0","dur":1,"args":{"stage":-1}}]})"),
            "--times=f: field 'stage': of a pass must be from 0 to 4095");
}

}  // namespace
}  // namespace pipelab
