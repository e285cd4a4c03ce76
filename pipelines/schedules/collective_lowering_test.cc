// Reductions, gathers and releases of the catalogue's schedules, as Lower places them: sound under
// the hardest rules (program_checker.h), eager where asked for, and as many as the papers count.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/schedules/catalog.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

TEST(CollectiveLowering, IsSoundForTheWholeCatalogue) {
  int programs = 0;
  for (const Scheme& scheme : Catalog()) {
    for (const auto& [devices, micro_batches] :
         {std::make_pair(1, 2), std::make_pair(2, 4), std::make_pair(3, 6), std::make_pair(4, 4),
          std::make_pair(4, 8)}) {
      for (int data_parallel : {1, 2, 3}) {
        SchemeParams params;
        params.devices = devices;
        params.micro_batches = micro_batches;
        params.data_parallel = data_parallel;
        params.recompute = data_parallel == 3;
        const absl::StatusOr<Schedule> s = MakeSchedule(scheme.name, params);
        if (!s.ok()) continue;
        ASSERT_EQ(s->num_devices() % data_parallel, 0);
        for (LoweringOptions& options : AllOptions(s->num_stages())) {
          if (scheme.asynchronous) {
            options.ties.clear();
            options.norm_values = 0;
            if (options.sharding != Sharding::kReplicated) {
              EXPECT_THAT(Lower(*s, options),
                          StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("own steps")));
              continue;
            }
          }
          if (s->forward_only && options.sharding != Sharding::kReplicated) {
            EXPECT_THAT(Lower(*s, options), StatusIs(absl::StatusCode::kInvalidArgument,
                                                     HasSubstr("whole parameters")));
            continue;
          }
          if (s->weights_travel && (options.sharding == Sharding::kOptimizer ||
                                    options.sharding == Sharding::kGradients)) {
            EXPECT_THAT(Lower(*s, options),
                        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one owner each")));
            continue;
          }
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(*s, options));
          ASSERT_EQ(CheckProgram(p), "")
              << scheme.name << " P=" << devices << " M=" << micro_batches << " D=" << data_parallel
              << " " << ShardingName(options.sharding) << " overlap=" << options.overlap
              << " eager=" << *options.eager_reductions;
          ++programs;
        }
      }
    }
  }
  EXPECT_GT(programs, 2000);
}

Program LowerOrDie(absl::string_view scheme, int devices, int micro_batches, int data_parallel,
                   const LoweringOptions& options) {
  SchemeParams params;
  params.devices = devices;
  params.micro_batches = micro_batches;
  params.data_parallel = data_parallel;
  return Lower(MakeSchedule(scheme, params).value(), options).value();
}

// How often a device begins a collective of each stage.
std::map<int, int> Count(const Program& p, int device, OpCode op) {
  std::map<int, int> count;
  for (const Instruction& i : p.instructions[device]) {
    if (i.op == op) ++count[i.action.stage];
  }
  return count;
}

using Counts = std::map<int, int>;

// Lamy-Poirier 2023: breadth-first gathers and reduces once per stage (and pass), depth-first once
// per group of P micro-batches, without loops once per micro-batch where nothing stays.
TEST(CollectiveLowering, CountsOfBreadthAndDepthFirst) {
  LoweringOptions fully;
  fully.sharding = Sharding::kFully;
  const Program breadth = LowerOrDie("breadth_first", 4, 8, 2, fully);
  const Program depth = LowerOrDie("interleaved", 4, 8, 2, fully);
  for (int d = 0; d < 8; ++d) {
    const int low = d / 2, high = low + 4;  // its stages
    // Two passes; the second stage's backwards follow its forwards.
    EXPECT_EQ(Count(breadth, d, OpCode::kGather), (Counts{{low, 2}, {high, 1}})) << d;
    EXPECT_EQ(Count(breadth, d, OpCode::kRelease), (Counts{{low, 2}, {high, 1}})) << d;
    EXPECT_EQ(Count(breadth, d, OpCode::kReduce), (Counts{{low, 1}, {high, 1}})) << d;
    // Two groups of four micro-batches.
    EXPECT_EQ(Count(depth, d, OpCode::kReduce), (Counts{{low, 2}, {high, 2}})) << d;
    for (const auto& [stage, gathers] : Count(depth, d, OpCode::kGather)) {
      EXPECT_GE(gathers, 2) << d;
      EXPECT_LE(gathers, 4) << d << ": a group and a pass each, at most";
    }
  }
  // By hand, the last pipeline device: F s3 x4; F and B of s7, twice four, with s3 in between; so
  // on: [s3] [s7 with its B] [s3 of the second group with B of the first] [s7] [s3].
  EXPECT_EQ(Count(depth, 7, OpCode::kGather), (Counts{{3, 3}, {7, 2}}));
}

TEST(CollectiveLowering, CountsWithoutLoops) {
  LoweringOptions fully;
  fully.sharding = Sharding::kFully;
  for (absl::string_view scheme : {"gpipe", "1f1b", "zb_h1"}) {
    const Program kept = LowerOrDie(scheme, 4, 8, 2, fully);
    for (int d = 0; d < 8; ++d) {
      EXPECT_EQ(Count(kept, d, OpCode::kGather), (Counts{{d / 2, 1}})) << scheme << d;
      EXPECT_EQ(Count(kept, d, OpCode::kReduce), (Counts{{d / 2, 1}})) << scheme << d;
    }
  }
  fully.residency = Residency::kMicroBatch;
  const Program gpipe = LowerOrDie("gpipe", 4, 8, 2, fully),
                one = LowerOrDie("1f1b", 4, 8, 2, fully);
  for (int d = 0; d < 6; ++d) {  // forward and backward, eight each
    EXPECT_EQ(Count(gpipe, d, OpCode::kGather), (Counts{{d / 2, 16}})) << d;
    EXPECT_EQ(Count(gpipe, d, OpCode::kReduce), (Counts{{d / 2, 8}})) << d;
    EXPECT_EQ(Count(one, d, OpCode::kGather), (Counts{{d / 2, 16}})) << d;
  }
  // The last stage's backward follows its forward at once.
  EXPECT_EQ(Count(one, 7, OpCode::kGather), (Counts{{3, 8}}));
  EXPECT_EQ(Count(one, 7, OpCode::kReduce), (Counts{{3, 8}}));
}

TEST(CollectiveLowering, OptimizerPartsAreOfAllCopies) {
  LoweringOptions options;
  options.sharding = Sharding::kOptimizer;
  const Program p = LowerOrDie("chimera", 4, 4, 2, options);
  for (int d = 0; d < 8; ++d) {
    // A stage each way: reduced, stepped and gathered once.
    EXPECT_EQ(Count(p, d, OpCode::kReduce), (Counts{{d / 2, 1}, {3 - d / 2, 1}}));
    EXPECT_EQ(Count(p, d, OpCode::kGather), (Counts{{d / 2, 1}, {3 - d / 2, 1}}));
  }
  // Stage 0: devices 0 and 1 of replica 0, devices 6 and 7 of replica 1.
  const Shard shard = ShardOf(p, {6, 1, 0});
  EXPECT_EQ(shard.parts, 4);
  EXPECT_EQ(shard.index, 2);
  EXPECT_EQ(shard.PartOf(10), 3);
  EXPECT_EQ(shard.Padded(10), 12);
}

// Positions in a device's list: a reduction of each stage, and the last compute.
struct Places {
  std::map<int, size_t> reduce;
  size_t last_compute = 0;
};

Places PlacesOf(const Program& p, int device) {
  Places places;
  for (size_t n = 0; n < p.instructions[device].size(); ++n) {
    const Instruction& i = p.instructions[device][n];
    if (i.op == OpCode::kReduce) places.reduce[i.action.stage] = n;
    if (i.op == OpCode::kCompute) places.last_compute = n;
  }
  return places;
}

// The authors' code reduces the second virtual stages before the last backward (on middle devices
// after it), then the first virtual stages. Here each goes as soon as it can: on every device all
// but the one stage that has the last backward, which is a first virtual stage.
TEST(CollectiveLowering, BitPipeReducesItsSecondVirtualStagesBeforeTheLastBackward) {
  for (int devices : {4, 8}) {
    for (int units : {1, 2}) {
      const Program p = LowerOrDie("bitpipe", devices, units * devices, 1, {});
      for (int d = 0; d < devices; ++d) {
        const Places places = PlacesOf(p, d);
        ASSERT_EQ(places.reduce.size(), size_t{4});
        for (const auto& [stage, place] : places.reduce) {
          EXPECT_EQ(place < places.last_compute, stage != std::min(d, devices - 1 - d))
              << "P=" << devices << " device " << d << " stage " << stage;
        }
      }
    }
  }
}

TEST(CollectiveLowering, TheSchemeSaysWhetherReductionsAreEager) {
  LoweringOptions at_end, eager;
  at_end.eager_reductions = false;
  eager.eager_reductions = true;
  const auto early = [](const Program& p) {
    int n = 0;
    for (int d = 0; d < p.schedule.num_devices(); ++d) {
      const Places places = PlacesOf(p, d);
      for (const auto& [stage, place] : places.reduce) n += place < places.last_compute;
    }
    return n;
  };
  EXPECT_EQ(early(LowerOrDie("chimera", 4, 8, 1, at_end)), 0);
  EXPECT_GT(early(LowerOrDie("chimera", 4, 8, 1, {})), 0);
  EXPECT_GT(early(LowerOrDie("bitpipe", 4, 8, 1, {})), 0);
  EXPECT_EQ(early(LowerOrDie("dualpipe", 4, 8, 1, {})), 0);
  EXPECT_GT(early(LowerOrDie("dualpipe", 4, 8, 1, eager)), 0);
}

TEST(CollectiveLowering, GroupsMustRunOneList) {
  Schedule s = MakeSchedule("1f1b", {.devices = 2, .micro_batches = 2, .data_parallel = 2}).value();
  std::swap(s.order[1][1], s.order[1][2]);  // 0F0 0B0 ... or another order of device 0's actions
  LoweringOptions fully;
  fully.sharding = Sharding::kFully;
  const absl::Status status = Lower(s, fully).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("devices 0 and 1"));
}

TEST(CollectiveLowering, DataParallelGroupsGoThroughJson) {
  const Schedule s =
      MakeSchedule("chimera", {.devices = 2, .micro_batches = 4, .data_parallel = 2}).value();
  EXPECT_EQ(s.num_devices(), 4);
  EXPECT_EQ(s.placement.groups[0][1], (std::vector<int>{2, 3}));
  EXPECT_EQ(s.placement.groups[1][1], (std::vector<int>{0, 1}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule read, ScheduleFromJson(ToJson(s), "x"));
  EXPECT_EQ(read.placement.groups, s.placement.groups);
  EXPECT_EQ(read.order, s.order);
  EXPECT_TRUE(read.eager_reductions);
  EXPECT_THAT(MakeSchedule("1f1b", {.devices = 2, .micro_batches = 4, .data_parallel = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--data_parallel=0")));
}

// The checker must be able to fail.
TEST(ProgramChecker, FindsFaultsOfCollectives) {
  LoweringOptions fully;
  fully.sharding = Sharding::kFully;
  const Program good = LowerOrDie("breadth_first", 2, 2, 2, fully);
  ASSERT_EQ(CheckProgram(good), "");
  const auto without = [&](OpCode op, int from) {
    Program p = good;
    for (int d = 0; d < from; ++d) {
      auto& list = p.instructions[d];
      list.erase(
          std::find_if(list.begin(), list.end(), [&](const Instruction& i) { return i.op == op; }));
    }
    return CheckProgram(p);
  };
  EXPECT_THAT(without(OpCode::kGatherWait, 1), HasSubstr("without its stage's weights"));
  EXPECT_THAT(without(OpCode::kGather, 2), HasSubstr("before it begins"));
  EXPECT_THAT(without(OpCode::kRelease, 1), HasSubstr("which is there"));
  EXPECT_THAT(without(OpCode::kReduceWait, 1), HasSubstr("before its sum is there"));
  Program p = LowerOrDie("chimera", 4, 4, 1, {});
  ASSERT_EQ(CheckProgram(p), "");
  auto& list = p.instructions[0];  // a sum before the stage's last backward
  const auto reduce = std::find_if(list.begin(), list.end(),
                                   [](const Instruction& i) { return i.op == OpCode::kReduce; });
  const Instruction moved = *reduce;
  list.erase(reduce);
  list.insert(list.begin(), moved);
  EXPECT_THAT(CheckProgram(p), HasSubstr("summed already"));
  // Two devices that begin their collectives in different orders.
  p = LowerOrDie("chimera", 2, 2, 1, {});
  std::vector<size_t> at;
  for (size_t n = 0; n < p.instructions[0].size(); ++n) {
    if (p.instructions[0][n].op == OpCode::kReduce) at.push_back(n);
  }
  ASSERT_EQ(at.size(), size_t{2});
  if (at[1] == at[0] + 1) {
    std::swap(p.instructions[0][at[0]], p.instructions[0][at[1]]);
    EXPECT_THAT(CheckProgram(p), HasSubstr("is stuck"));
  }
}

}  // namespace
}  // namespace pipelab
