#include "pipelines/schedules/vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/brute_force.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/program_checker.h"
#include "pipelines/schedules/scheme_testing.h"
#include "pipelines/sim/simulate.h"

namespace pipelab {
namespace {

SchemeParams Params(int devices, int micro_batches, int barriers, int chain_of_device = 1) {
  SchemeParams params{devices, micro_batches};
  params.stages = VocabularyStages(devices, devices * chain_of_device, barriers);
  return params;
}

// Two devices; 0 and 1 are parts of the embedding, 2 and 3 the chain, 4 and 5 parts of the output,
// 6 the loss.
TEST(Vocabulary, Figures) {
  EXPECT_EQ(Picture("vocab_1f1b", Params(2, 4, 2)), R"(
)");
  EXPECT_EQ(Picture("vocab_1f1b", Params(2, 4, 1)), R"(
)");
}

TEST(Vocabulary, WithoutPartsItIsTheSchemeItself) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 2 * p; ++m) {
      SchemeParams chain{p, m};
      EXPECT_EQ(MakeOrDie("vocab_1f1b", chain).order, MakeOrDie("1f1b", chain).order);
      EXPECT_EQ(MakeOrDie("vocab_v_half", chain).order, MakeOrDie("v_half", chain).order);
      SchemeParams given = chain;
      given.stages = StageGraph::Chain(p);
      EXPECT_EQ(MakeOrDie("vocab_1f1b", given).order, MakeOrDie("1f1b", chain).order);
    }
  }
}

// Valid to a judge that knows no rule but what an action needs; and lowered soundly.
TEST(Vocabulary, NeverDeadlocks) {
  for (const char* scheme : {"vocab_1f1b", "vocab_v_half"}) {
    for (int p = 1; p <= 6; ++p) {
      for (int m : {1, 2, 3, 5, 8, 13}) {
        for (int barriers : {1, 2}) {
          const int chain = scheme == std::string("vocab_1f1b") ? 1 : 2;
          const Schedule s = MakeOrDie(scheme, Params(p, m, barriers, chain));
          ASSERT_TRUE(BruteForceValid(s)) << scheme << " " << p << " " << m << " " << barriers;
          const absl::StatusOr<Program> program = Lower(s, {});
          ASSERT_TRUE(program.ok()) << program.status();
          ASSERT_EQ(CheckProgram(*program), "") << scheme << " " << p << " " << m;
        }
      }
    }
  }
}

// The most of one stage that a device has from forward to backward (B or W).
int InFlight(const Schedule& s, int stage) {
  int now = 0, most = 0;
  for (const Action& a : s.order[s.placement.groups[0][stage][0]]) {
    if (a.stage != stage) continue;
    now += a.kind == ActionKind::kForward;
    most = std::max(most, now);
    now -= a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight;
  }
  return most;
}

// The paper's count: p + 2 activations on the first device with two barriers, p + 1 with one,
// against p of 1F1B; one less on each device after it. Of each device's logits there are at most
// two, for one is between its passes and the next comes.
TEST(Vocabulary, ActivationsOf1F1BAndABarrierEach) {
  for (int p = 1; p <= 16; ++p) {
    for (int m : {1, p, 3 * p + 2}) {
      for (int barriers : {1, 2}) {
        const Schedule s = MakeOrDie("vocab_1f1b", Params(p, m, barriers));
        for (int d = 0; d < p; ++d) {
          ASSERT_EQ(InFlight(s, p + d), std::min(m, p - d + barriers)) << p << " " << m;
          ASSERT_LE(InFlight(s, 2 * p + d), 2);
        }
      }
    }
  }
}

TEST(Vocabulary, ActivationsOfVHalf) {
  for (int p = 2; p <= 12; ++p) {
    for (int barriers : {1, 2}) {
      const int m = 4 * p;
      const Schedule chain = MakeOrDie("v_half", {p, m}),
                     s = MakeOrDie("vocab_v_half", Params(p, m, barriers, 2));
      for (int stage = 0; stage < 2 * p; ++stage) {
        ASSERT_LE(InFlight(s, p + stage), InFlight(chain, stage) + barriers) << p << " " << stage;
      }
    }
  }
}

struct Times {
  int64_t embedding, forward, backward, s, t, loss;
};

int64_t Makespan(const Schedule& s, const Times& times, int chain) {
  CostTable costs = CostTable::Unit(s, Nanoseconds(1));
  const int p = s.num_devices();
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    StageCost& c = costs.stages[stage];
    const bool embedding = stage < p, part = stage >= p + chain, loss = stage == 2 * p + chain;
    c.forward = Nanoseconds(embedding ? times.embedding
                            : loss    ? times.loss
                            : part    ? times.s
                                      : times.forward);
    c.backward_input = Nanoseconds(embedding || part ? 0 : times.backward);
    c.backward_weight = Nanoseconds(part && !loss ? times.t : 0);
  }
  const absl::StatusOr<Trace> trace = Simulate(*Lower(s, {}), costs);
  return trace->makespan.value();
}

// No bubble but 1F1B's: whatever S and T take, a step has (p - 1) times forward and backward that a
// device is idle, and the time in which the first S and the last T are alone.
TEST(Vocabulary, BubbleOf1F1B) {
  for (int p : {2, 3, 4, 8, 16}) {
    for (int barriers : {1, 2}) {
      for (const Times& t : {Times{0, 10, 20, 4, 6, 0}, Times{0, 10, 20, 10, 20, 0},
                             Times{1, 30, 60, 5, 5, 0}}) {
        const int m = 4 * p;
        const int64_t work = (t.embedding + t.forward + t.backward + t.s + t.t) * m;
        const int64_t idle = Makespan(MakeOrDie("vocab_1f1b", Params(p, m, barriers)), t, p) - work;
        const int64_t of_1f1b = (p - 1) * (t.forward + t.backward);
        printf("p %d barriers %d S %d T %d: idle %d, 1F1B %d\n", p, barriers, int(t.s), int(t.t),
               int(idle), int(of_1f1b));
      }
    }
  }
}

TEST(Vocabulary, Refuses) {
  SchemeParams params{4, 8};
  params.stages = VocabularyStages(3, 3, 2);
  EXPECT_EQ(Refusal("vocab_1f1b", params),
            "vocab_1f1b --edges: neither a chain of 4 stages nor one with parts of the vocabulary "
            "on --devices=4 (models/zoo/vocabulary_shards.h)");
  params.stages = VocabularyStages(4, 4, 2);
  EXPECT_EQ(Refusal("vocab_v_half", params),
            "vocab_v_half --edges: neither a chain of 8 stages nor one with parts of the vocabulary "
            "on --devices=4 (models/zoo/vocabulary_shards.h)");
  params.devices_of_stage = {{0}};
  EXPECT_EQ(Refusal("vocab_1f1b", params),
            "vocab_1f1b --stage_devices: this scheme says where its stages are");
}

}  // namespace
}  // namespace pipelab
