#include "pipelines/ir/text.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/validate.h"
#include "tests/support/reader_checks.h"
#include "tests/support/test_schedules.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr char kText[] =
    R"(schedule test
devices 2
micro_batches 2
slices 1
stages 2
edges chain
replica 0: 0 1
replica_of_micro_batch 0*2
device 0: 0F0 0F1 0B0 0B1
device 1: 1F0 1B0 1F1 1B1
)";

// kText with `from` replaced.
std::string TextWith(const std::string& from, const std::string& to) {
  std::string text = kText;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string TextError(const std::string& text) {
  return std::string(ParseSchedule(text).status().message());
}

TEST(Text, IsWhatTheHeaderShows) {
  const Schedule s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  EXPECT_EQ(ToText(s), kText);
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule parsed, ParseSchedule(kText));
  EXPECT_EQ(parsed.order, s.order);
  EXPECT_EQ(parsed.name, "test");
  EXPECT_THAT(Validate(parsed), IsOk());
}

TEST(Text, RoundTripsEverything) {
  uint64_t seed = 0;
  std::vector<Schedule> schedules;
  for (const RandomShape& shape : Shapes()) schedules.push_back(RandomOrder(shape, ++seed));
  schedules.push_back(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"}));
  schedules.back().name = " odd \n name\t\"\xff ";
  schedules.push_back(ChainOf(1, {"0F0 0B0"}));
  schedules.back().name = "";
  schedules.push_back(ChainOf(2, {"0F0 0F1", "1F0 1F1"}));
  schedules.back().forward_only = true;
  for (Schedule& s : OtherSchedules()) schedules.push_back(std::move(s));
  for (const Schedule& s : schedules) {
    const std::string text = ToText(s);
    PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule parsed, ParseSchedule(text));
    EXPECT_EQ(ToText(parsed), text);
    EXPECT_EQ(parsed.name, s.name);
    EXPECT_EQ(parsed.order, s.order);
    EXPECT_EQ(parsed.num_slices, s.num_slices);
    EXPECT_EQ(parsed.forward_only, s.forward_only);
    EXPECT_EQ(parsed.micro_batches_of_stage, s.micro_batches_of_stage);
    EXPECT_EQ(parsed.num_micro_batches, s.num_micro_batches);
    EXPECT_EQ(parsed.placement.num_devices, s.placement.num_devices);
    EXPECT_EQ(parsed.placement.groups, s.placement.groups);
    EXPECT_EQ(parsed.placement.replica_of_micro_batch, s.placement.replica_of_micro_batch);
    EXPECT_EQ(parsed.carried, s.carried);
    EXPECT_EQ(parsed.prepares, s.prepares);
    EXPECT_EQ(parsed.stages.ReplayWindow(), s.stages.ReplayWindow());
    EXPECT_EQ(parsed.eager_reductions, s.eager_reductions);
    EXPECT_EQ(parsed.merges_passes, s.merges_passes);
    EXPECT_EQ(parsed.weights_travel, s.weights_travel);
    EXPECT_EQ(parsed.weight_group, s.weight_group);
    for (size_t e = 0; e < s.stages.edges.size(); ++e) {
      EXPECT_EQ(parsed.stages.edges[e].gradient, s.stages.edges[e].gradient);
      EXPECT_EQ(parsed.stages.edges[e].output, s.stages.edges[e].output);
    }
    EXPECT_EQ(parsed.stages.in_edges, s.stages.in_edges);
    EXPECT_EQ(parsed.stages.out_edges, s.stages.out_edges);
  }
}

TEST(Text, SaysMicroBatchesOfStages) {
  Schedule s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0"});
  s.micro_batches_of_stage = {2, 1};
  EXPECT_THAT(ToText(s), HasSubstr("stages 2\nstage_micro_batches 2 1\nedges chain\n"));
  const std::string line = "stage_micro_batches 2 1";
  const auto error = [&](const std::string& instead) {
    std::string text = ToText(s);
    return TextError(text.replace(text.find(line), line.size(), instead));
  };
  EXPECT_EQ(error("stage_micro_batches 2"),
            "line 6, column 22: 1 stages have a number of micro-batches, of 2");
  EXPECT_EQ(error("stage_micro_batches 2 3"),
            "line 6, column 23: too large: at most 2 here (the micro-batches of each stage)");
  EXPECT_EQ(error("stage_micro_batches 2 0"),
            "line 6, column 24: a stage runs at least 1 micro-batch");
  EXPECT_THAT(ToCsv(s), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("stages with micro-batches of different size")));
}

TEST(Text, SkipsCommentsAndEmptyLines) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      Schedule s,
      ParseSchedule("# mine\n\n" + TextWith("slices", "\n  # none\nslices") + "\n# end\n"));
  EXPECT_EQ(ToText(s), kText);
}

TEST(Text, ErrorsNameLineAndColumn) {
  EXPECT_EQ(TextError(""), "line 1, column 1: expected 'schedule ', found the end of the text");
  EXPECT_EQ(TextError(TextWith("devices 2", "devices two")),
            "line 2, column 9: expected the number of devices, found 't'");
  EXPECT_EQ(TextError(TextWith("devices 2", "devices 0")),
            "line 2, column 9: the number of devices is at least 1");
  EXPECT_EQ(TextError(TextWith("devices 2", "devices 2 3")),
            "line 2, column 11: expected the end of the line, found '3'");
  EXPECT_EQ(TextError(TextWith("0F1", "0X1")),
            "line 9, column 16: expected one of F, B, I, W, R, S, O, L after the stage, found 'X'");
  EXPECT_EQ(TextError(TextWith("0F1", "0F1,")),
            "line 9, column 18: expected a blank after the action, found ','");
  EXPECT_EQ(TextError(TextWith("1B1\n", "1B")),
            "line 10, column 25: expected a micro-batch, as in 2F5, found the end of the text");
  EXPECT_EQ(TextError(TextWith("0F1", "40000F1")),
            "line 9, column 15: too large: at most 32767 here (a stage, as in 2F5)");
  EXPECT_EQ(TextError(TextWith("0: 0 1", "0: 0 2")),
            "line 7, column 14: too large: at most 1 here (a device for each stage)");
  EXPECT_EQ(TextError(TextWith("0: 0 1", "0: 0")),
            "line 7, column 13: replica 0 places 1 stages of 2");
  EXPECT_EQ(TextError(TextWith("replica 0: 0 1\n", "")),
            "line 7, column 1: expected 'replica 0:', found 'r'");
  EXPECT_EQ(TextError(TextWith("0*2", "0*1")),
            "line 8, column 27: 1 micro-batches have a replica, of 2");
  EXPECT_EQ(TextError(TextWith("device 1", "device 7")),
            "line 10, column 1: expected 'device 1:', found 'd'");
  EXPECT_EQ(TextError(std::string(kText) + "more"),
            "line 11, column 1: expected nothing after the last device, found 'm'");
  EXPECT_THAT(TextError(TextWith("edges chain", "edges 0-5")), HasSubstr("line 6, column 9"));
}

TEST(Text, RefusesHugeNumbers) {
  EXPECT_THAT(TextError(TextWith("devices 2", "devices 99999999999999999999999")),
              HasSubstr("line 2, column 9: too large: at most"));
  EXPECT_THAT(TextError(TextWith("micro_batches 2", "micro_batches 2000000000")),
              HasSubstr("line 3, column 15: too large: at most"));
  EXPECT_THAT(TextError(TextWith("0*2", "0*2000000000")), HasSubstr("at most 2 here"));
}

// Fuzzing with a fixed seed: pieces of valid texts removed, doubled, swapped and overwritten.
TEST(Text, SurvivesMutations) {
  std::vector<std::string> seeds = {
      kText, "0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n",
      "0UNSHARD,0F0,0SEND_F0,(0F1;0B0)OVERLAP_F_B,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD,\r\n"};
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) seeds.push_back(ToText(RandomOrder(shape, ++seed)));
  seeds.push_back(ToText(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"})));
  const CounterRng rng(11, "text mutations");
  const std::string alphabet = "0123456789FBIWRS@.*+-,:;()_# \n\r\tdrx\xff";
  uint64_t n = 0;
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text = seeds[rng.Below(n++, seeds.size())];
    const uint64_t mutations = 1 + rng.Below(n++, 3);
    for (uint64_t i = 0; i < mutations && !text.empty(); ++i) {
      const size_t at = rng.Below(n++, text.size());
      const size_t length = 1 + rng.Below(n++, 6);
      switch (rng.Below(n++, 4)) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(rng.Below(n++, text.size()), text.substr(at, length));
          break;
        case 2:
          text[at] = alphabet[rng.Below(n++, alphabet.size())];
          break;
        case 3:
          std::swap(text[at], text[rng.Below(n++, text.size())]);
          break;
      }
    }
    accepted += CheckReaders(text).read > 0;
  }
  EXPECT_GT(accepted, 900);  // mutations reach the validator
}

}  // namespace
}  // namespace pipelab
