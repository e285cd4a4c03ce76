// The judges against slower ones. Each schedule of the catalogue, damaged at random a thousand
// times (dropped, doubled, swapped and moved actions), is accepted only when it really runs, and
// then it also lowers. Each program that is made of one, with an instruction dropped, doubled,
// moved, or of another micro-batch or stage, is refused by CheckProgram unless it does the same.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/graphs/preparation.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "pipelines/schedules/catalog.h"
#include "tests/program_mutants.h"
#include "tests/support/brute_force.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tests/support/test_schedules.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kMutations = 1000;
constexpr int kMutants = 40;  // of a program; every other one has an instruction moved

struct Count {
  int accepted = 0, refused = 0;
  int by_meetings = 0;  // of those that are refused: would be accepted if attention did not meet
};

void Damage(const Schedule& whole, const std::string& name, Count* count) {
  ASSERT_TRUE(BruteForceValid(whole)) << name;
  const CounterRng rng(7, "mutations of " + name);
  uint64_t n = 0;
  for (int done = 0; done < kMutations;) {
    Schedule s = whole;
    if (!Mutate(rng, &n, &s)) continue;
    ++done;
    const bool valid = BruteForceValid(s);
    const absl::Status status = Validate(s);
    ASSERT_EQ(status.ok(), valid) << name << ": " << status;
    ASSERT_EQ(Lower(s, {}).ok(), valid) << name;
    if (!valid) {
      ASSERT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
      ASSERT_NE(status.message().find("device"), absl::string_view::npos) << status;
    }
    ++(valid ? count->accepted : count->refused);
  }
}

TEST(ScheduleMutation, AcceptedOnlyWhenReallyValid) {
  Count count;
  for (const Scheme& scheme : Catalog()) {
    int served = 0;
    for (const auto& [devices, micro_batches] : {std::pair(2, 4), std::pair(4, 8)}) {
      for (bool recompute : {false, true}) {
        SchemeParams params{devices, micro_batches};
        params.recompute = recompute;
        const absl::StatusOr<Schedule> s = MakeSchedule(scheme.name, params);
        if (!s.ok()) continue;
        ++served;
        Damage(*s, std::string(scheme.name), &count);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(served, 0) << scheme.name << " serves none of the sizes: give it one";
  }
  // Both verdicts are exercised: swaps of independent actions stay valid.
  EXPECT_GT(count.accepted, 1000);
  EXPECT_GT(count.refused, 5000);
}

Program WithoutExchanges(Program p) {
  for (auto& list : p.instructions) {
    for (Instruction& i : list) {
      if (i.op == OpCode::kCompute) i.arg = -1;
    }
  }
  p.exchanges.clear();
  return p;
}

void DamageProgram(const Program& whole, const std::string& name, Count* count,
                   int mutants = kMutants) {
  ASSERT_EQ(CheckProgram(whole), "") << name;
  const CounterRng rng(11, "mutants of " + name);
  uint64_t n = 0;
  for (int tries = 0; tries < mutants; ++tries) {
    ProgramMutant m;
    m.device = static_cast<int>(rng.Below(n++, whole.instructions.size()));
    if (whole.instructions[m.device].empty()) continue;
    m.from = static_cast<int>(rng.Below(n++, whole.instructions[m.device].size()));
    m.change = tries % 2 == 0
                   ? ProgramMutant::kMove
                   : static_cast<ProgramMutant::Change>(rng.Below(n++, ProgramMutant::kNumChanges));
    if (!m.Apply(whole, rng, &n)) continue;
    const std::string error = CheckProgram(m.program);
    const bool accepted = error.empty();
    ++(accepted ? count->accepted : count->refused);
    count->by_meetings += !accepted && CheckProgram(WithoutExchanges(m.program)).empty();
    // A call that is another, or a hop that is empty, is refused even where it does no harm.
    const bool strict = whole.calls != MessageCalls::kNone || whole.schedule.weights_travel;
    if (!accepted && strict) continue;
    const Instruction& i = whole.instructions[m.device][m.from];
    ASSERT_EQ(accepted, m.IsHarmless(whole))
        << name << ", change " << m.change << " of device " << m.device << ", " << m.from << " to "
        << m.to << ": " << OpCodeName(i.op) << " " << ToString(i.action) << " " << i.arg << ": "
        << error;
  }
}

// Also with devices that share stages, and in calls.
std::vector<std::pair<std::string, Schedule>> ManySchedules() {
  std::vector<std::pair<std::string, Schedule>> all;
  for (const Scheme& scheme : Catalog()) {
    const size_t before = all.size();
    for (const auto& [devices, micro_batches] : {std::pair(2, 4), std::pair(4, 4)}) {
      for (int data_parallel : {1, 2}) {
        SchemeParams params{devices, micro_batches};
        params.data_parallel = data_parallel;
        params.recompute = data_parallel == 2;
        absl::StatusOr<Schedule> s = MakeSchedule(scheme.name, params);
        if (!s.ok()) continue;
        all.emplace_back(absl::StrCat(scheme.name, " P=", devices, " D=", data_parallel),
                         *std::move(s));
      }
    }
    EXPECT_GT(all.size(), before) << scheme.name;
  }
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    all.emplace_back(absl::StrCat("shape ", seed), RandomOrder(shape, seed));
    ++seed;
  }
  for (Schedule& s : OtherSchedules()) all.emplace_back(ToText(s), std::move(s));
  for (const PreparationSizes& sizes :
       {PreparationSizes{1, 2, 5}, PreparationSizes{3, 2, 7}, PreparationSizes{2, 1, 4, 2, true}}) {
    Schedule s = *MakePreparation(sizes);
    all.emplace_back("preparation", s);
    for (std::vector<Action>& list : s.order) {  // of one step in the end
      list.erase(std::remove_if(list.begin(), list.end(),
                                [](const Action& a) { return a.kind == ActionKind::kStep; }),
                 list.end());
      for (Action& a : list) a.version = 0;
    }
    all.emplace_back("preparation of one step", std::move(s));
  }
  return all;
}

TEST(ProgramMutation, IsRefusedOrHarmless) {
  Count count;
  for (const auto& [name, schedule] : ManySchedules()) {
    std::vector<LoweringOptions> ways = AllOptions(schedule.num_stages());
    for (MessageCalls calls :
         {MessageCalls::kOneMessage, MessageCalls::kOneNeighbour, MessageCalls::kBothNeighbours}) {
      ways.emplace_back().calls = calls;
    }
    ways.emplace_back().slice_exchange = true;
    ways.emplace_back().step = false;
    ways.emplace_back().shards = 2;
    ways.back().sharding = Sharding::kFully;
    int lowered = 0;
    for (size_t way = 0; way < ways.size(); ++way) {
      const absl::StatusOr<Program> p = Lower(schedule, ways[way]);
      if (!p.ok()) continue;
      ++lowered;
      DamageProgram(*p, absl::StrCat(name, " way ", way), &count);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(lowered, 0) << name;
  }
  EXPECT_GT(count.accepted, 1000);
  EXPECT_GT(count.refused, 5000);
}

// A pass that others wait for in its attention does not move past what they wait for before.
TEST(ProgramMutation, AttentionMeetsInOneOrder) {
  Count count;
  LoweringOptions options;
  options.slice_exchange = true;
  for (const char* scheme : {"terapipe", "seq1f1b", "interleaved_seq1f1b", "zb_seq1f1b"}) {
    for (int devices : {3, 4}) {
      SchemeParams params{devices, 2 * devices};
      params.slices = 4;
      if (std::string(scheme) == "interleaved_seq1f1b") params.virtual_stages = 2;
      PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule s, MakeSchedule(scheme, params));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(std::move(s), options));
      DamageProgram(p, absl::StrCat(scheme, " P=", devices, " with exchanges"), &count, 400);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(count.by_meetings, 10);
}

}  // namespace
}  // namespace pipelab
