// Local learning at a pace of each stage's own (Reads::kReplay).
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/brute_force.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

SchemeParams ReplaySizes(const std::vector<int32_t>& passes, int window) {
  SchemeParams sizes;
  sizes.devices = static_cast<int>(passes.size());
  sizes.micro_batches = *std::max_element(passes.begin(), passes.end());
  sizes.micro_batches_of_stage = passes;
  sizes.group_size = window;
  return sizes;
}

const std::vector<std::vector<int32_t>>& Passes() {
  static const auto* const passes = new std::vector<std::vector<int32_t>>{
      {1, 2}, {4, 8}, {8, 4}, {8, 3}, {3, 8}, {8, 4, 8}, {5, 8, 3, 7}, {1, 8, 8, 1}, {8, 8, 2, 8}};
  return *passes;
}

TEST(LocalReplay, Pictures) {
  EXPECT_EQ(Picture("local_replay", {2, 2}), Picture("local", {2, 2})) << "equal passes";
  // Stage 1 takes every other output of stage 0, and stage 2 each of stage 1's twice.
  const Schedule s = MakeOrDie("local_replay", ReplaySizes({4, 2, 4}, 1));
  EXPECT_EQ(Timeline(s), R"(
 0'0 1'1 2'2 3'3    |
   0'0     1'1      |
     0'0 1'1 2'2 3'3|
)");
  std::vector<int> samples;
  for (int m = 0; m < 4; ++m) samples.push_back(s.SampleOf(2, m));
  EXPECT_THAT(samples, testing::ElementsAre(0, 0, 2, 2));
}

// By a plain count of who has read what.
TEST(LocalReplay, SourcesFollowTheRule) {
  for (const std::vector<int32_t>& passes : Passes()) {
    for (int window : {1, 2, 4, 8}) {
      const Schedule s = MakeOrDie("local_replay", ReplaySizes(passes, window));
      for (const StageGraph::Edge& e : s.stages.edges) {
        const int made = passes[e.from], takes = passes[e.to];
        const PassMap outputs = s.Outputs(e);
        std::map<int, std::vector<int>> readers;  // of a source
        for (int m = 0; m < takes; ++m) {
          const int newest = m * made / takes, source = outputs.Sources(m).first;
          EXPECT_LE(source, newest);
          EXPECT_GT(source, newest - std::min(window, s.num_micro_batches));
          EXPECT_GE(source, 0);
          EXPECT_TRUE(readers.count(newest) > 0 || source == newest) << "the newest goes first";
          readers[source].push_back(m);
        }
        for (int output = 0; output < made; ++output) {
          const bool taken = readers.count(output) > 0;
          EXPECT_EQ(outputs.FirstReader(output), taken ? readers[output].front() : -1);
          EXPECT_TRUE(taken || takes < made) << "a slower stage leaves out some, others none";
        }
        for (const auto& [source, of_source] : readers) {
          for (int m : of_source) {
            EXPECT_EQ(outputs.IsFirstRead(m), m == of_source.front()) << source;
            EXPECT_EQ(outputs.IsLastRead(m), m == of_source.back()) << source;
          }
        }
      }
    }
  }
}

// Every program runs where sends wait for their receivers; each output that is read is sent once.
TEST(LocalReplay, LowersToSoundPrograms) {
  for (const std::vector<int32_t>& passes : Passes()) {
    for (int window : {1, 3, 8}) {
      for (bool recompute : {false, true}) {
        SchemeParams sizes = ReplaySizes(passes, window);
        sizes.recompute = recompute;
        sizes.update_interval = window == 3 ? 1 : 0;
        const Schedule s = MakeOrDie("local_replay", sizes);
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
        EXPECT_EQ(CheckProgram(program), "") << testing::PrintToString(passes) << " " << window;
        size_t taken = 0;
        for (const StageGraph::Edge& e : s.stages.edges) {
          std::set<int> sources;
          for (int m = 0; m < passes[e.to]; ++m) sources.insert(s.Outputs(e).Sources(m).first);
          taken += sources.size();
        }
        EXPECT_EQ(program.messages.size(), taken);
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule text, ParseSchedule(ToText(s)));
        EXPECT_EQ(ToText(text), ToText(s));
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule json, ScheduleFromJson(ToJson(s), "x"));
        EXPECT_EQ(json.stages.ReplayWindow(), s.stages.ReplayWindow());
        EXPECT_EQ(json.micro_batches_of_stage, s.micro_batches_of_stage);
        EXPECT_EQ(json.order, s.order);
      }
    }
  }
}

TEST(LocalReplay, AgreesWithBruteForceOnMutations) {
  int valid = 0, refused = 0;
  for (const std::vector<int32_t>& passes : Passes()) {
    SchemeParams sizes = ReplaySizes(passes, 3);
    sizes.update_interval = 1;
    const Schedule whole = MakeOrDie("local_replay", sizes);
    ASSERT_TRUE(BruteForceValid(whole));
    const CounterRng rng(11, "replay mutations");
    uint64_t n = 0;
    for (int i = 0; i < 300; ++i) {
      Schedule s = whole;
      if (!Mutate(rng, &n, &s)) continue;
      const bool expected = BruteForceValid(s);
      ASSERT_EQ(Validate(s).ok(), expected) << Validate(s) << "\n" << ToText(s);
      ASSERT_EQ(Lower(s, {}).ok(), expected);
      ++(expected ? valid : refused);
    }
  }
  EXPECT_GT(valid, 20);
  EXPECT_GT(refused, 1000);
}

// With passes in inverse proportion to their times, no stage waits for another but at the start:
// for the first pass of each stage before it.
TEST(LocalReplay, UnequalStagesDoNotWait) {
  for (const std::vector<int32_t>& passes : Passes()) {
    const Schedule s = MakeOrDie("local_replay", ReplaySizes(passes, 2));
    constexpr int64_t kStep = 840 * 6;  // divisible by all
    CostTable costs = CostTable::Unit(s);
    int64_t way = 0, longest = 0;
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      StageCost& cost = costs.stages[stage];
      const int64_t pass = kStep / passes[stage];
      cost.forward = Nanoseconds(pass / 3);
      cost.backward_input = cost.backward_weight = Nanoseconds(pass / 3);
      longest = std::max(longest, pass);
      if (stage + 1 < s.num_stages()) way += pass;
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, costs));
    EXPECT_LE(trace.makespan.value(), kStep + way) << testing::PrintToString(passes);
    // `local` takes the slowest stage's time as often as the fastest has passes.
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const Program local, Lower(MakeOrDie("local", {s.num_devices(), s.num_micro_batches}), {}));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace waits, Simulate(local, costs));
    EXPECT_GE(waits.makespan.value(), longest * s.num_micro_batches);
  }
}

// What a device keeps is bounded by the window, whatever the number of micro-batches.
TEST(LocalReplay, BuffersDoNotGrow) {
  for (int window : {1, 2, 8}) {
    for (int times : {8, 80, 800}) {
      const Schedule s =
          MakeOrDie("local_replay", ReplaySizes({2 * times, times, 2 * times, 3 * times}, window));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
      CostTable costs = CostTable::Unit(s);
      costs.edge_bytes.assign(s.stages.edges.size(), Bytes(100));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, costs));
      Bytes most;
      for (const DeviceTrace& d : trace.devices) most = std::max(most, d.peak_activation);
      // The buffer, the one that arrives, the pass's own, and its output.
      EXPECT_LE(most, Bytes(100 * (window + 3))) << times;
      EXPECT_GE(most, Bytes(100 * 3)) << times;
    }
  }
}

TEST(LocalReplay, Refuses) {
  EXPECT_EQ(Refusal("local_replay", ReplaySizes({4, 2, 8}, -1)),
            "local_replay --group_size=-1: a buffer has at least 1 output, or 0 for 4");
  SchemeParams sizes = ReplaySizes({4, 2}, 1);
  sizes.devices = 3;
  EXPECT_EQ(Refusal("local_replay", sizes),
            "local_replay --stage_micro_batches=4,2: 2 numbers for 3 stages; give one per stage");
  sizes = ReplaySizes({4, 2}, 1);
  sizes.micro_batches = 8;
  EXPECT_EQ(Refusal("local_replay", sizes),
            "local_replay --stage_micro_batches=4,2: the largest number is 4; use "
            "--micro_batches=4");
  sizes = ReplaySizes({4, 2}, 1);
  sizes.update_interval = 4;
  EXPECT_EQ(Refusal("local_replay", sizes),
            "local_replay --stage_micro_batches=4,2: 2 is no multiple of --update_interval=4");
  sizes = ReplaySizes({4, 2}, 1);
  sizes.data_parallel = 2;
  EXPECT_EQ(Refusal("local_replay", sizes),
            "local_replay --data_parallel=2: a buffer is of one device; use --data_parallel=1");
}

// A file that says how many outputs a buffer has, and no edge that reads one.
TEST(LocalReplay, FilesThatMakeNoSense) {
  const Schedule good = MakeOrDie("local_replay", ReplaySizes({4, 2, 4}, 2));
  const std::string text =
      absl::StrReplaceAll(ToText(good), {{"0-1:none", "0-1:carries"}, {"1-2:none", "1-2:carries"}});
  EXPECT_THAT(std::string(ParseSchedule(text).status().message()),
              testing::HasSubstr("no edge reads the last 2 outputs (replay)"));
  const std::string json = absl::StrReplaceAll(ToJson(good), {{"\"none\"", "\"carries\""}});
  EXPECT_EQ(ScheduleFromJson(json, "--schedule=a.json").status().message(),
            "--schedule=a.json: field 'replay': is 2, and no edge reads the last outputs");
}

TEST(LocalReplay, SchedulesThatMakeNoSense) {
  const Schedule good = MakeOrDie("local_replay", ReplaySizes({4, 2, 4}, 2));
  const auto verdict = [](const Schedule& s) { return std::string(Validate(s).message()); };
  Schedule s = good;
  s.stages.SetReplayWindow(5);
  EXPECT_EQ(verdict(s),
            "a replay of the last 5 outputs; it must be 1 to 4, the micro-batches of a step");
  s = good;
  s.micro_batches_of_stage[1] = 9;
  EXPECT_EQ(verdict(s), "stage 1 runs 9 passes; it must be 1 to 4, the schedule's micro-batches");
  s = good;
  s.stages.edges[1].gradient = Reads();
  EXPECT_EQ(verdict(s), "replay: edge 1-2 must bring no gradient");
  s = good;
  s.stages = StageGraph::FromEdges(
      3, {{0, 1, Reads::None()}, {1, 2, Reads::None()}, {0, 2, Reads::None()}});
  s.stages.SetReplayWindow(2);
  EXPECT_EQ(verdict(s), "replay: stage 2 reads stages 1 and 0, whose samples would differ");
  s = good;
  s.placement.groups[0][1] = {0};
  EXPECT_EQ(verdict(s), "replay: stages 0 and 1 must be on two devices");
  s = good;
  std::swap(s.order[1][0], s.order[1][2]);
  std::swap(s.order[1][1], s.order[1][3]);
  EXPECT_EQ(verdict(s),
            "device 1, position 2: 1F0 comes after that of micro-batch 1; with replay the passes "
            "of a stage are in order");
}

}  // namespace
}  // namespace pipelab
