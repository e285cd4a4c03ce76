#include "experiments/simulate/simulated_costs.h"

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiments/simulate/decimal.h"
#include "experiments/simulate/links_file.h"
#include "experiments/simulate/simulated_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

Schedule ScheduleWithCosts(const std::string& name, int devices, int micro_batches) {
  return *MakeSchedule(name, {devices, micro_batches});
}

double Makespan(const std::string& name, int devices, int micro_batches,
                const SimulatedTimes& times) {
  const absl::StatusOr<SimulatedRun> run =
      RunSimulated(ScheduleWithCosts(name, devices, micro_batches), times);
  EXPECT_THAT(run, IsOk());
  return run.ok() ? FiguresOf(*run).makespan : -1;
}

std::string ErrorOf(const SimulatedTimes& times) {
  return std::string(RunSimulated(ScheduleWithCosts("gpipe", 4, 2), times).status().message());
}

TEST(ParseByteCounts, TakesUnits) {
  const auto bytes = [](const std::string& text) {
    const auto all = ParseByteCounts("--bytes", text, 1, "edge");
    return all.ok() ? (*all)[0].value() : -1;
  };
  EXPECT_EQ(bytes("1000"), 1000);
  EXPECT_EQ(bytes("7B"), 7);
  EXPECT_EQ(bytes("1.5kB"), 1500);
  EXPECT_EQ(bytes("1.5KiB"), 1536);
  EXPECT_EQ(bytes("0.1MB"), 100000);
  EXPECT_EQ(bytes("64MiB"), 64 << 20);
  EXPECT_EQ(bytes("2.000000001GB"), 2000000001);
  EXPECT_EQ(bytes("1TiB"), int64_t{1} << 40);
  for (const char* bad : {"", "B", "1.5", "0.1KiB", "-1", "1 MB", "1mb", "1e6", "99999TB"}) {
    EXPECT_EQ(bytes(bad), -1) << bad;
  }
  EXPECT_THAT(ParseByteCounts("--bytes", "1,2", 3, "edge"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--bytes=1,2: 2 sizes, but the schedule has 3 edges; give one size or one "
                       "for each"));
}

TEST(SimulatedCosts, MessagesTakeBytesOverBandwidth) {
  SimulatedTimes times;
  times.bytes = "30MB";
  times.bandwidth = "120MB";  // a quarter of a unit a message
  EXPECT_EQ(Makespan("gpipe", 4, 1, times), 12 + 6 * 0.25);
  times.hop = "0.5";
  EXPECT_EQ(Makespan("gpipe", 4, 1, times), 12 + 6 * 0.75);
  times.bytes = "30MB,60MB,0";
  EXPECT_EQ(Makespan("gpipe", 4, 1, times), 12 + 6 * 0.5 + 2 * (0.25 + 0.5));
  times.bytes = "1,2";
  EXPECT_THAT(ErrorOf(times), HasSubstr("--bytes=1,2: 2 sizes, but the schedule has 3 edges"));
  times.bytes = "1";
  times.bandwidth = "0";
  EXPECT_EQ(ErrorOf(times), "--bandwidth=0: must be above 0");
  times.bandwidth = "1GB,2GB";
  EXPECT_EQ(ErrorOf(times), "--bandwidth=1GB,2GB: 2 sizes; give one");
}

// A device of a group of d takes 1 / d of a stage's time: to the last digit, or, where groups have
// no small multiple, to a millionth.
TEST(SimulatedCosts, GroupsDivideTimes) {
  const auto makespan = [](const std::vector<int>& groups) {
    SchemeParams params{0, 1};
    for (int d : groups) {
      std::vector<int>& group = params.devices_of_stage.emplace_back(d);
      std::iota(group.begin(), group.end(), params.devices);
      params.devices += d;
    }
    const absl::StatusOr<SimulatedRun> run = RunSimulated(*MakeSchedule("graph", params), {});
    EXPECT_THAT(run, IsOk());
    return run.ok() ? FiguresOf(*run).makespan : -1;
  };
  EXPECT_EQ(makespan({1, 3}), 4);
  EXPECT_EQ(makespan({3, 6, 2}), 3);
  EXPECT_NEAR(makespan({97, 101, 107}), 3 / 97. + 3 / 101. + 3 / 107., 1e-5);
}

TEST(SimulatedCosts, WithoutOverlapHasItsClosedForm) {
  SimulatedTimes times;
  times.overlap = false;
  times.hop = "0.1";
  EXPECT_DOUBLE_EQ(Makespan("gpipe", 4, 8, times), 11 * 3.2 - 0.2);
}

TEST(SimulatedCosts, StragglersAreSlow) {
  SimulatedTimes times;
  times.device_speed = "1,0.5,1,1";
  EXPECT_EQ(Makespan("gpipe", 4, 8, times), 3 * 3 + 6 + 7 * 6);
  times.device_speed = "0.75";
  EXPECT_NEAR(Makespan("gpipe", 4, 8, times), 33 / 0.75, 1e-4);
  times.device_speed = "1,0,1,1";
  EXPECT_EQ(ErrorOf(times), "--device_speed=1,0,1,1: must be from 0.000001 to 1000000");
  times.device_speed = "1,1";
  EXPECT_THAT(ErrorOf(times), HasSubstr("but the schedule has 4 devices"));
}

TEST(SimulatedCosts, StepsReductionsAndRecomputesHaveTimes) {
  SimulatedTimes times;
  times.step = "0.5";
  EXPECT_EQ(Makespan("gpipe", 4, 8, times), 33.5);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run,
                               RunSimulated(ScheduleWithCosts("gpipe", 4, 8), times));
  EXPECT_EQ(FiguresOf(run).devices[3].busy, 24.5);
  times.step = "";
  const double without = Makespan("chimera", 4, 4, times);
  times.reduce = "2";  // of two stages per device; the first runs beside the backwards
  EXPECT_EQ(Makespan("chimera", 4, 4, times), without + 2);
  times.step = "1";
  EXPECT_EQ(Makespan("chimera", 4, 4, times), without + 2 + 2);  // and two steps
  SchemeParams params{2, 2};
  params.recompute = true;
  times = SimulatedTimes();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun rebuilt,
                               RunSimulated(*MakeSchedule("gpipe", params), times));
  times.recompute_time = "0.25";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun faster,
                               RunSimulated(*MakeSchedule("gpipe", params), times));
  EXPECT_EQ(FiguresOf(rebuilt).devices[0].busy, 8);
  EXPECT_EQ(FiguresOf(faster).devices[0].busy, 6.5);
}

constexpr char kLinks[] = R"({
  "links": [{"name": "up", "latency": 0.1, "bandwidth": "10MB"}, {"name": "spine"}],
  "paths": [{"from": [0, 1], "to": [2, 3], "links": ["up", "spine"]},
            {"from": 3, "to": "all", "links": []}]
})";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kLinks;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LinksFile, IsANetwork) {
  const Link own{"", Nanoseconds(7), BytesPerSecond(1e6)};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Network n, ParseLinks(kLinks, "x", 4, own, 1e6));
  EXPECT_THAT(CheckNetwork(n), IsOk());
  EXPECT_EQ(n.RouteOf(0, 2).uses, n.RouteOf(1, 3).uses);
  EXPECT_EQ(CostOfPath(n, 0, 2).latency, Nanoseconds(100000));
  EXPECT_EQ(CostOfPath(n, 0, 2).bandwidth, BytesPerSecond(10e6 * 1e9 / 1e6));
  EXPECT_EQ(CostOfPath(n, 2, 0).latency, Nanoseconds(7));  // a link of its own
  EXPECT_TRUE(n.RouteOf(3, 1).uses.empty());
  EXPECT_FALSE(n.RouteOf(0, 1).uses == n.RouteOf(1, 0).uses);
}

TEST(LinksFile, ErrorsNameTheField) {
  const auto error = [](const std::string& text) {
    return std::string(ParseLinks(text, "--links=a", 4, Link(), 1).status().message());
  };
  EXPECT_THAT(error("{"), HasSubstr("--links=a:1:2: not JSON"));
  EXPECT_EQ(error("[]"), "--links=a: no JSON object");
  EXPECT_EQ(error("{}"), "--links=a: field 'links': must be a list");
  EXPECT_EQ(error(R"({"links": [], "path": []})"), "--links=a: field 'path': unknown");
  EXPECT_EQ(error(With("latency", "delay")), "--links=a: field 'links[0].delay': unknown");
  EXPECT_EQ(error(With("0.1", "-0.1")),
            "--links=a: field 'links[0].latency': must be a number from 0 to 1e9");
  EXPECT_THAT(error(With("\"10MB\"", "\"fast\"")),
              HasSubstr("field 'links[0].bandwidth': must be"));
  EXPECT_THAT(error(With("\"10MB\"", "0")), HasSubstr("field 'links[0].bandwidth': must be"));
  EXPECT_EQ(error(With("\"spine\"}", "\"up\"}")),
            "--links=a: field 'links[1].name': \"up\" is there twice");
  EXPECT_EQ(error(With("\"from\": 3", "\"from\": 4")),
            "--links=a: field 'paths[1].from': there is no device 4; the schedule has 4");
  EXPECT_EQ(error(With("\"from\": 3", "\"from\": \"some\"")),
            "--links=a: field 'paths[1].from': must be a device, a list of devices or \"all\"");
  EXPECT_EQ(error(With("\"up\", \"spine\"]", "\"up\", \"x\"]")),
            "--links=a: field 'paths[0].links[1]': no link is called \"x\"");
  EXPECT_EQ(error(With("\"up\", \"spine\"]", "\"up\", \"up\"]")),
            "--links=a: field 'paths[0].links[1]': \"up\" is on the path twice");
  EXPECT_EQ(error(With("\"from\": 3", "\"from\": [3, 2, 3]")),
            "--links=a: field 'paths[1].from': device 3 is there twice");
}

TEST(LinksFile, LinksBetweenPairsOfDevicesHaveALimit) {
  std::vector<std::string> links, names;
  for (int i = 0; i <= 64; ++i) {
    names.push_back(absl::StrCat("\"", i, "\""));
    links.push_back(absl::StrCat(R"({"name": )", names.back(), "}"));
  }
  const std::string text = absl::StrCat(R"({"links": [)", absl::StrJoin(links, ","),
                                        R"(], "paths": [{"from": "all", "to": "all", "links": [)",
                                        absl::StrJoin(names, ","), "]}]}");
  EXPECT_EQ(ParseLinks(text, "--links=a", 512, Link(), 1).status().message(),
            "--links=a: field 'paths[0]': the paths up to this one have 17039360 links between "
            "pairs of devices; at most 16777216");
}

// Activations and gradients on one bus, which takes longer than the compute: it is busy with all 16
// messages, but for the first forward and the last backward.
TEST(LinksFile, SharesWhatItSays) {
  const std::string path = testing::TempDir() + "/links.json";
  std::ofstream(path) << R"({"links": [{"name": "bus", "bandwidth": "1MB"}],
                             "paths": [{"from": "all", "to": "all", "links": ["bus"]}]})";
  SimulatedTimes times;
  times.bytes = "4MB";
  times.bandwidth = "1MB";
  const double alone = Makespan("gpipe", 2, 8, times);
  times.links = path;
  EXPECT_GE(Makespan("1f1b", 2, 8, times), 1 + 16 * 4 + 2);
  EXPECT_EQ(Makespan("gpipe", 2, 8, times), alone);  // forwards first, then backwards
  times.links = path + ".none";
  EXPECT_THAT(RunSimulated(ScheduleWithCosts("1f1b", 2, 8), times),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--links=" + path)));
}

}  // namespace
}  // namespace pipelab
