#include "pipelines/ir/schedule_json.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "tests/support/test_schedules.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr char kJson[] = R"({
  "scheme": "test",
  "devices": 2,
  "micro_batches": 1,
  "chunks": 1,
  "stage_to_device": [[0, 1]],
  "order": [
    [["F", 0, 0, 0], ["B", 0, 0, 0]],
    [["F", 1, 0, 0], ["I", 1, 0, 0], ["W", 1, 0, 0]]
  ]
}
)";

std::string JsonWith(const std::string& from, const std::string& to) {
  std::string text = kJson;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string JsonError(const std::string& text) {
  return std::string(ScheduleFromJson(text, "a.json").status().message());
}

TEST(ScheduleJson, IsWhatTheHeaderShows) {
  EXPECT_EQ(ToJson(ChainOf(1, {"0F0 0B0", "1F0 1I0 1W0"})), kJson);
}

TEST(ScheduleJson, RoundTripsEverything) {
  uint64_t seed = 0;
  std::vector<Schedule> schedules;
  for (const RandomShape& shape : Shapes()) schedules.push_back(RandomOrder(shape, ++seed));
  schedules.push_back(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"}));
  schedules.back().eager_reductions = true;
  schedules.back().name = " odd \n name\t\"\\ ";
  schedules.push_back(ChainOf(2, {"0F0 0F1", "1F0 1F1"}));
  schedules.back().forward_only = true;
  for (Schedule& s : OtherSchedules()) schedules.push_back(std::move(s));
  for (const Schedule& s : schedules) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule read, ScheduleFromJson(ToJson(s), "x"));
    EXPECT_EQ(ToText(read), ToText(s));
    EXPECT_EQ(read.eager_reductions, s.eager_reductions);
  }
}

TEST(ScheduleJson, OnlyTheOrderMustBeThere) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Schedule s,
      ScheduleFromJson(R"({"order": [[["F",0,0],["B",0,0]], [["F",1,0],["B",1,0]]]})", "x"));
  Schedule expected = ChainOf(1, {"0F0 0B0", "1F0 1B0"});
  expected.name = "json";
  EXPECT_EQ(ToText(s), ToText(expected));
}

// Two directions, said in each of the ways that are allowed, are the same schedule.
TEST(ScheduleJson, FindsReplicasHoweverTheyAreSaid) {
  const std::string named =
      R"("order": [[["F",0,0,0],["F",1,1,1],["B",1,1,1],["B",0,0,0]],
                   [["F",0,1,1],["F",1,0,0],["B",1,0,0],["B",0,1,1]]]})";
  const std::string silent =
      R"("order": [[["F",0,0],["F",1,1],["B",1,1],["B",0,0]],
                   [["F",0,1],["F",1,0],["B",1,0],["B",0,1]]]})";
  const std::string placed = R"({"stage_to_device": [[0, 1], [1, 0]], )";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule expected, ScheduleFromJson(placed + named, "x"));
  EXPECT_THAT(Validate(expected), IsOk());
  EXPECT_EQ(expected.placement.replica_of_micro_batch, (std::vector<int>{0, 1}));
  for (const std::string& text : {placed + silent, "{" + named, "{" + silent}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule s, ScheduleFromJson(text, "x"));
    EXPECT_EQ(ToText(s), ToText(expected)) << text;
  }
}

// Without a placement, stages of different micro-batches are of one replica.
TEST(ScheduleJson, ReadsMicroBatchesOfStages) {
  const std::string order =
      R"("order": [[["F",0,0],["F",0,1],["B",0,0],["B",0,1]], [["F",1,0],["B",1,0]]]})";
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Schedule s, ScheduleFromJson(R"({"stage_micro_batches": [2, 1], )" + order, "x"));
  EXPECT_THAT(Validate(s), IsOk());
  EXPECT_EQ(s.micro_batches_of_stage, (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(s.placement.groups, (std::vector<std::vector<std::vector<int>>>{{{0}, {1}}}));
  const auto error = [&](const std::string& fields) {
    return JsonError("{" + fields + ", " + order);
  };
  EXPECT_EQ(
      error(R"("stage_micro_batches": [2])"),
      "a.json: field 'stage_micro_batches': is [2]; it must be a list of one number per stage, "
      "and 'order' has 2 stages");
  EXPECT_EQ(error(R"("stage_micro_batches": [2, 0])"),
            "a.json: stage_micro_batches[1]: is 0; it must divide the largest number, which is 2");
  EXPECT_EQ(error(R"("stage_micro_batches": [2, 4])"),
            "a.json: stage_micro_batches[1]: is 4; it must be a whole number from 0 to 2");
  EXPECT_EQ(error(R"("stage_micro_batches": [2, 1, 1], "stage_to_device": [0, 1])"),
            "a.json: field 'stage_micro_batches': has 3 numbers; there are 2 stages");
}

// A V: the device list goes there and back. Flat, and as a list a replica.
TEST(ScheduleJson, TakesAPlacementOfAnyShape) {
  for (const char* place : {"[0, 1, 1, 0]", "[[0, 1, 1, 0]]", "[[[0], [1], [1], [0]]]"}) {
    const std::string text = std::string(R"({"stage_to_device": )") + place +
                             R"(, "order": [[["F",0,0,0],["F",3,0,0],["B",3,0,0],["B",0,0,0]],
                                            [["F",1,0,0],["F",2,0,0],["B",2,0,0],["B",1,0,0]]]})";
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule s, ScheduleFromJson(text, "x"));
    EXPECT_THAT(Validate(s), IsOk()) << place;
    EXPECT_EQ(VirtualStagesOf(s), 2);
  }
}

TEST(ScheduleJson, ErrorsNameTheField) {
  EXPECT_THAT(JsonError("{"), HasSubstr("a.json:1:2: not JSON: "));
  EXPECT_EQ(JsonError("[]"), "a.json: a schedule is an object, not []");
  EXPECT_EQ(JsonError("{}"), "a.json: field 'order': missing; it must be one list per device");
  EXPECT_EQ(JsonError(JsonWith("\"chunks\"", "\"chunk\"")),
            "a.json: field 'chunk': unknown; known are scheme, devices, micro_batches, chunks, "
            "order, stage_to_device, edges, slices, stage_micro_batches, "
            "eager_reductions, forward_only, weights_travel, weight_group, merges_passes, "
            "prepares, replay, "
            "carried");
  // One line, whatever the key (found by fuzzing).
  EXPECT_THAT(JsonError(JsonWith("\"chunks\"", "\"chu\\nks\"")),
              HasSubstr("field 'chu\\nks': unknown"));
  EXPECT_EQ(JsonError(JsonWith("\"devices\": 2", "\"devices\": 3")),
            "a.json: field 'devices': is 3, but 'order' has 2 lists; it must have one per device");
  EXPECT_EQ(JsonError(JsonWith("\"devices\": 2", "\"devices\": \"two\"")),
            "a.json: field 'devices': is \"two\"; it must be a whole number from 0 to 32767");
  EXPECT_EQ(JsonError(JsonWith("\"micro_batches\": 1", "\"micro_batches\": 2000000000")),
            "a.json: field 'micro_batches': is 2000000000, but 'order' has 5 actions");
  EXPECT_EQ(JsonError(JsonWith("[\"F\", 1", "[\"X\", 1")),
            "a.json: order[1][0]: is [\"X\",1,0,0]; its kind must be F, B, I, W, R, S, O or L");
  EXPECT_EQ(JsonError(JsonWith("[\"F\", 1, 0, 0]", "[\"F\", 1]")),
            "a.json: order[1][0]: is [\"F\",1]; it must be [\"F\", stage, micro_batch, replica]");
  EXPECT_EQ(JsonError(JsonWith("\"F\", 1", "\"F\", -1")),
            "a.json: order[1][0]: its stage: is -1; it must be a whole number from 0 to 32767");
  EXPECT_EQ(JsonError(JsonWith("\"F\", 1, 0, 0", "\"F\", 1, 0, 1")),
            "a.json: device 1, position 0: 1F0 is of replica 1, but micro-batch 0 is of replica 0 "
            "before; number micro-batches over all replicas");
  for (const char* edge : {"[2, 1]", "[0, 2]"}) {
    EXPECT_THAT(
        JsonError(JsonWith("\"chunks\"", std::string("\"edges\": [") + edge + "], \"chunks\"")),
        HasSubstr("edges[0]: is 2; it must be a whole number from 0 to 1"));
  }
  EXPECT_THAT(JsonError(JsonWith("[[0, 1]]", "[]")), HasSubstr("field 'stage_to_device': is []"));
  EXPECT_THAT(JsonError(JsonWith("[[0, 1]]", "[[0, 1], [0]]")),
              HasSubstr("stage_to_device[1]: is [0]"));
}

// What is well formed and wrong is left to the validator, which says where.
TEST(ScheduleJson, LeavesMeaningToTheValidator) {
  const auto verdict = [](const std::string& text) {
    const absl::StatusOr<Schedule> s = ScheduleFromJson(text, "x");
    return std::string(s.ok() ? Validate(*s).message() : s.status().message());
  };
  EXPECT_EQ(verdict(JsonWith("[[0, 1]]", "[[0, 0]]")),
            "device 1, position 0: 1F0 is placed on device 0 (replica 0)");
  EXPECT_EQ(verdict(JsonWith("[[0, 1]]", "[[0, 7]]")),
            "replica 0, stage 1: device 7 does not exist; there are 2 devices");
  EXPECT_EQ(verdict(JsonWith("\"micro_batches\": 1", "\"micro_batches\": 2")),
            "device 0, position 2: 0F1 is missing; the list ends here");
  EXPECT_EQ(verdict(JsonWith("[\"F\", 1, 0, 0]", "[\"F\", 5, 0, 0]")),
            "device 1, position 0: 5F0: stage 5 does not exist; there are 2 stages");
}

// Pieces of `text` removed, doubled, overwritten and swapped.
std::string Damage(std::string text, const CounterRng& rng, uint64_t* n,
                   const std::string& alphabet) {
  for (uint64_t change = rng.Below((*n)++, 3) + 1; change > 0 && !text.empty(); --change) {
    const size_t at = rng.Below((*n)++, text.size());
    const size_t length = rng.Below((*n)++, 12) + 1;
    switch (rng.Below((*n)++, 4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(rng.Below((*n)++, text.size()), text.substr(at, length));
        break;
      case 2:
        text[at] = alphabet[rng.Below((*n)++, alphabet.size())];
        break;
      case 3:
        std::swap(text[at], text[rng.Below((*n)++, text.size())]);
        break;
    }
  }
  return text;
}

TEST(ScheduleJson, SurvivesMutations) {
  std::vector<std::string> seeds = {kJson};
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) seeds.push_back(ToJson(RandomOrder(shape, ++seed)));
  const CounterRng rng(17, "json mutations");
  uint64_t n = 0;
  int accepted = 0, refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const std::string text =
        Damage(seeds[trial % seeds.size()], rng, &n, "0123456789[]{},:\"FBIWRS.-e \n\xff");
    const absl::StatusOr<Schedule> s = ScheduleFromJson(text, "fuzz");
    if (!s.ok()) {
      ++refused;
      ASSERT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
      ASSERT_THAT(std::string(s.status().message()), testing::StartsWith("fuzz:"));
      ASSERT_EQ(s.status().message().find('\n'), absl::string_view::npos) << s.status();
      continue;
    }
    ++accepted;
    const absl::Status valid = Validate(*s);
    const std::string canonical = ToJson(*s);
    const absl::StatusOr<Schedule> again = ScheduleFromJson(canonical, "again");
    if (!valid.ok()) continue;  // may say what JSON cannot: a stage of a group of no device
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << canonical;
    ASSERT_EQ(ToJson(*again), canonical);
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 5000);
}

TEST(Csv, SurvivesMutations) {
  const std::vector<std::string> seeds = {
      "0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n",
      "0F0,1F1,,1B1,0B0\n0F1,1F0,,1B0,0B1\n",           // two directions, empty cells
      "0F0,,3F0,3B0,,0B0\r\n,1F0,2F0,2I0,2W0,1B0\r\n",  // a V, Windows line ends
  };
  const CounterRng rng(19, "csv mutations");
  uint64_t n = 0;
  int valid = 0, refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const std::string csv =
        Damage(seeds[trial % seeds.size()], rng, &n, "0123456789FBIWR,\n\r \t#\xff");
    const absl::StatusOr<Schedule> s = ParseCsv(csv);
    if (!s.ok() || !Validate(*s).ok()) {
      ++refused;
      continue;
    }
    ++valid;
    // Through JSON and back nothing is lost.
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule read, ScheduleFromJson(ToJson(*s), "x"));
    ASSERT_EQ(ToText(read), ToText(*s)) << csv;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string back, ToCsv(read));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule from_csv, ParseCsv(back));
    ASSERT_EQ(ToText(from_csv), ToText(*s));
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace pipelab
