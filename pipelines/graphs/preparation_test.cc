#include "pipelines/graphs/preparation.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using Stage = PreparationStage;

// Milliseconds of sample, gather, move, forward, backward; those of a batch, where `of_batch` says
// so.
struct PreparationTimes {
  int64_t sample = 2, gather = 3, move = 1, forward = 1, backward = 2;
};
using TimesOfBatch = std::function<PreparationTimes(int batch)>;

CostTable Costs(const Schedule& s, const TimesOfBatch& times) {
  CostTable costs = CostTable::Unit(s);
  for (StageCost& c : costs.stages) c.memory = {};
  costs.of_passes = true;
  for (int m = 0; m < s.num_micro_batches; ++m) {
    const PreparationTimes t = times(m);
    SliceCosts slice{costs.stages, costs.edge_bytes};
    const int64_t forwards[] = {t.sample, t.gather, t.move, t.forward};
    for (int stage = 0; stage < Stage::kStages; ++stage) {
      slice.stages[stage].forward = Milliseconds(forwards[stage]);
    }
    slice.stages[Stage::kTrain].backward_input = Milliseconds(t.backward);
    slice.stages[Stage::kTrain].backward_weight = Nanoseconds(0);
    costs.slices.push_back(std::move(slice));
  }
  return costs;
}

int64_t EpochMs(const PreparationSizes& sizes, const TimesOfBatch& times) {
  Schedule s = *MakePreparation(sizes);
  const CostTable costs = Costs(s, times);
  const auto program = Lower(std::move(s), {});
  EXPECT_THAT(program, IsOk());
  const auto trace = Simulate(*program, costs);
  EXPECT_THAT(trace, IsOk());
  return trace->makespan.value() / 1000000;
}

// The recurrence of workers, engine and trainer with their queues, by hand.
int64_t ByHand(const PreparationSizes& p, const TimesOfBatch& times) {
  std::vector<int64_t> worker(std::max(1, p.workers)), forward_end(p.batches);
  int64_t engine = 0, trainer = 0;
  for (int m = 0; m < p.batches; ++m) {
    const PreparationTimes t = times(m);
    int64_t& own = p.workers == 0 ? trainer : worker[m % p.workers];
    const int before = m - p.workers * p.depth;
    if (p.workers > 0 && before >= 0) own = std::max(own, forward_end[before]);
    own += t.sample + t.gather;
    int64_t moved = p.copy_engine ? engine = std::max(engine, own) + t.move : own += t.move;
    trainer = std::max(trainer, moved) + t.forward;
    forward_end[m] = trainer;
    trainer += t.backward;
  }
  return trainer;
}

TEST(Preparation, EpochIsWhatTheRecurrenceSays) {
  const TimesOfBatch uneven = [](int m) {
    return PreparationTimes{2 + m % 3, 3 + m * 7 % 5, 1 + m % 2, 1 + m % 4, 2 + m * 3 % 4};
  };
  for (const TimesOfBatch& times : {TimesOfBatch([](int) { return PreparationTimes(); }), uneven}) {
    for (int workers : {0, 1, 2, 3, 4}) {
      for (int depth : {1, 2, 8}) {
        for (bool engine : {false, true}) {
          if (engine && workers == 0) continue;
          const PreparationSizes sizes = {workers, depth, 17, 1, engine};
          EXPECT_EQ(EpochMs(sizes, times), ByHand(sizes, times))
              << workers << " workers, depth " << depth << (engine ? ", engine" : "");
          PreparationSizes two = sizes;  // copies that do the same take as long
          two.copies = 2;
          EXPECT_EQ(EpochMs(two, times), ByHand(sizes, times));
        }
      }
    }
  }
}

TEST(Preparation, BoundsHold) {
  for (int workers : {0, 1, 2, 3}) {
    for (bool engine : {false, true}) {
      if (engine && workers == 0) continue;
      const PreparationSizes sizes = {workers, 4, 40, 1, engine};
      const PreparationBound bound = BoundOf(sizes, 2, 3, 1, 3);
      const auto epoch =
          static_cast<double>(EpochMs(sizes, [](int) { return PreparationTimes(); }));
      EXPECT_GE(epoch, bound.slowest);
      EXPECT_LE(epoch, bound.with_first);
    }
  }
  EXPECT_EQ(BoundOf({.workers = 1}, 2, 3, 1, 3).workers, 2);
}

TEST(Preparation, WorkersStepAndReduceNothing) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule s, MakePreparation({2, 2, 6, 2}));
  EXPECT_THAT(Validate(s), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(std::move(s), {}));
  // A sum of the two trainers' gradients before each step.
  ASSERT_EQ(program.reductions.size(), 6u);
  for (const Reduction& r : program.reductions) {
    ASSERT_EQ(r.members.size(), 2u);
    EXPECT_EQ(r.members[0].device, 0);
    EXPECT_EQ(r.members[1].device, 3);
  }
  for (int d : {1, 2, 4, 5}) {
    for (const Instruction& i : program.instructions[d]) {
      EXPECT_NE(i.op, OpCode::kStep);
      EXPECT_FALSE(IsCollective(i.op));
    }
  }
}

TEST(Preparation, TextSaysIt) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule s, MakePreparation({2, 2, 6, 2}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule again, ParseSchedule(ToText(s)));
  EXPECT_EQ(ToText(again), ToText(s));
  EXPECT_EQ(again.prepares, s.prepares);
  EXPECT_THAT(Validate(again), IsOk());
}

TEST(Preparation, FaultsAreNamed) {
  EXPECT_THAT(MakePreparation({.depth = 0}).status().message(), HasSubstr("--depth=0: must be"));
  const auto broken = [](const std::function<void(Schedule*)>& change) {
    Schedule s = *MakePreparation({2, 1, 4});
    change(&s);
    return std::string(Validate(s).message());
  };
  EXPECT_THAT(broken([](Schedule* s) { s->prepares.pop_back(); }),
              HasSubstr("3 stages say whether they prepare, of 4"));
  EXPECT_THAT(broken([](Schedule* s) {
                s->stages.edges[1].gradient = Reads();
                s->stages = StageGraph::FromEdges(4, s->stages.edges);
              }),
              HasSubstr("edge 1-2 of a stage that prepares must bring no gradient"));
  EXPECT_THAT(broken([](Schedule* s) { s->placement.groups[1][3] = {1}; }),
              HasSubstr("must have the same devices"));
  EXPECT_THAT(broken([](Schedule* s) { s->carried = {-1, -1, -1, 0}; }), HasSubstr("of replica 0"));
  EXPECT_THAT(broken([](Schedule* s) { s->order[1][0].kind = ActionKind::kBackward; }),
              HasSubstr("a stage that prepares has F only"));
}

TEST(Preparation, RoundTripsThroughJson) {
  for (const PreparationSizes& sizes :
       {PreparationSizes{1, 2, 5}, PreparationSizes{3, 2, 7}, PreparationSizes{2, 1, 4, 2, true}}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule s, MakePreparation(sizes));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule read, ScheduleFromJson(ToJson(s), "x"));
    EXPECT_EQ(ToText(read), ToText(s));
  }
}

}  // namespace
}  // namespace pipelab
