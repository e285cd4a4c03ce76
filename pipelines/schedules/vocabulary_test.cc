#include "pipelines/schedules/vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/brute_force.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

SchemeParams VocabularyParams(int devices, int micro_batches, int barriers,
                              int chain_of_device = 1) {
  SchemeParams params{devices, micro_batches};
  params.stages = VocabularyStages(devices, devices * chain_of_device, barriers);
  return params;
}

// Two devices; 0 and 1 are parts of the embedding, 2 and 3 the chain, 4 and 5 parts of the output,
// 6 the loss.
TEST(Vocabulary, Figures) {
  EXPECT_EQ(Picture("vocab_1f1b", VocabularyParams(2, 2, 2)), R"(
0: 0F0 0F1 2F0 2F1 4F0 4F1 4B0 4B1 2B0 0B0 2B1 0B1
1: 1F0 1F1 3F0 5F0 6F0 6B0 3F1 5F1 5B0 6F1 6B1 5B1 3B0 3B1 1B0 1B1
)");
  EXPECT_EQ(Picture("vocab_1f1b", VocabularyParams(2, 4, 1)), R"(
0: 0F0 0F1 2F0 0F2 2F1 4F0 4F1 4B0 0F3 2F2 2B0 4F2 4B1 0B0 2F3 2B1 4F3 4B2 0B1 2B2 4B3 0B2 2B3 0B3
1: 1F0 1F1 1F2 3F0 5F0 6F0 6B0 3F1 5F1 5B0 3B0 1F3 6F1 6B1 3F2 5F2 5B1 3B1 1B0 6F2 6B2 3F3 5F3 5B2 3B2 1B1 6F3 6B3 5B3 3B3 1B2 1B3
)");
}

// Each period stops for the vocabulary, here of micro-batch 0, 1, 2 in turn.
TEST(Vocabulary, FigureOfInterlaced) {
  EXPECT_EQ(Picture("vocab_interlaced", VocabularyParams(2, 3, 2)), R"(
0: 0F0 2F0 0F1 4F0 4B0 2F1 0F2 4F1 4B1 2F2 2B0 4F2 0B0 4B2 2B1 0B1 2B2 0B2
1: 1F0 3F0 1F1 5F0 6F0 6B0 5B0 3B0 3F1 1F2 5F1 6F1 6B1 5B1 3B1 3F2 5F2 6F2 6B2 1B0 5B2 3B2 1B1 1B2
)");
}

TEST(Vocabulary, WithoutPartsItIsTheSchemeItself) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 2 * p; ++m) {
      SchemeParams chain{p, m};
      EXPECT_EQ(MakeOrDie("vocab_1f1b", chain).order, MakeOrDie("1f1b", chain).order);
      EXPECT_EQ(MakeOrDie("vocab_interlaced", chain).order, MakeOrDie("1f1b", chain).order);
      EXPECT_EQ(MakeOrDie("vocab_v_half", chain).order, MakeOrDie("v_half", chain).order);
      SchemeParams given = chain;
      given.stages = StageGraph::Chain(p);
      EXPECT_EQ(MakeOrDie("vocab_1f1b", given).order, MakeOrDie("1f1b", chain).order);
    }
  }
}

// Valid to a judge that knows no rule but what an action needs; and lowered soundly.
TEST(Vocabulary, NeverDeadlocks) {
  for (const char* scheme : {"vocab_1f1b", "vocab_interlaced", "vocab_v_half"}) {
    for (int p = 1; p <= 6; ++p) {
      for (int m : {1, 2, 3, 5, 8, 13}) {
        for (int barriers : {1, 2}) {
          const int chain = scheme == std::string("vocab_v_half") ? 2 : 1;
          const Schedule s = MakeOrDie(scheme, VocabularyParams(p, m, barriers, chain));
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
        const Schedule s = MakeOrDie("vocab_1f1b", VocabularyParams(p, m, barriers));
        for (int d = 0; d < p; ++d) {
          ASSERT_EQ(InFlight(s, p + d), std::min(m, p - d + barriers)) << p << " " << m;
          ASSERT_LE(InFlight(s, 2 * p + d), 2);
        }
      }
    }
  }
}

// The paper's count: 3 / 2 of 1F1B's. One micro-batch's logits alone are there.
TEST(Vocabulary, ActivationsOfInterlaced) {
  for (int p = 1; p <= 32; ++p) {
    for (int m : {1, p, 3 * p + 2}) {
      const Schedule s = MakeOrDie("vocab_interlaced", VocabularyParams(p, m, 2));
      for (int d = 0; d < p; ++d) {
        ASSERT_EQ(InFlight(s, p + d), std::min(m, 3 * (p - d) / 2)) << p << " " << m;
        ASSERT_EQ(InFlight(s, 2 * p + d), 1);
      }
    }
  }
}

TEST(Vocabulary, ActivationsOfVHalf) {
  for (int p = 2; p <= 12; ++p) {
    for (int barriers : {1, 2}) {
      const int m = 4 * p;
      const Schedule chain = MakeOrDie("v_half", {p, m}),
                     s = MakeOrDie("vocab_v_half", VocabularyParams(p, m, barriers, 2));
      for (int stage = 0; stage < 2 * p; ++stage) {
        ASSERT_LE(InFlight(s, p + stage), InFlight(chain, stage) + barriers) << p << " " << stage;
      }
    }
  }
}

struct VocabularyTimes {
  int64_t embedding, forward, backward, s, t, loss;
};

int64_t VocabularyMakespan(const Schedule& s, const VocabularyTimes& times, int chain) {
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

// A device is idle as long as in 1F1B, (p - 1) (F + B), whatever S and T take, but for the first
// micro-batch, which waits longer before its backward: at most F more in a step with one barrier
// and F + B with two, however many micro-batches it has.
TEST(Vocabulary, BubbleOf1F1B) {
  for (int p : {2, 3, 4, 8, 16}) {
    for (const VocabularyTimes& t :
         {VocabularyTimes{0, 10, 20, 4, 6, 0}, VocabularyTimes{0, 10, 20, 10, 20, 0},
          VocabularyTimes{0, 30, 60, 5, 5, 0}, VocabularyTimes{0, 10, 20, 1, 1, 0}}) {
      for (int barriers : {1, 2}) {
        const auto idle = [&](int m) {
          return VocabularyMakespan(MakeOrDie("vocab_1f1b", VocabularyParams(p, m, barriers)), t,
                                    p) -
                 (t.forward + t.backward + t.s + t.t) * m;
        };
        const int64_t of_1f1b = (p - 1) * (t.forward + t.backward);
        EXPECT_GE(idle(2 * p), of_1f1b);
        EXPECT_LE(idle(2 * p), of_1f1b + t.forward + (barriers == 2 ? t.backward : 0)) << p;
        EXPECT_EQ(idle(5 * p), idle(2 * p)) << p;
      }
    }
  }
}

// Exchanges take no time here, so that in step nothing is lost: the bubble is 1F1B's.
TEST(Vocabulary, BubbleOfInterlaced) {
  for (int p : {2, 3, 4, 8, 16}) {
    for (const VocabularyTimes& t :
         {VocabularyTimes{0, 10, 20, 4, 6, 0}, VocabularyTimes{0, 30, 60, 5, 5, 0}}) {
      for (int m : {2 * p, 5 * p}) {
        const int64_t makespan =
            VocabularyMakespan(MakeOrDie("vocab_interlaced", VocabularyParams(p, m, 2)), t, p);
        const int64_t each = t.forward + t.backward;
        EXPECT_EQ(makespan, (each + t.s + t.t) * m + (p - 1) * each) << p << " " << m;
      }
    }
  }
}

// In a V the parts add their own time at most: no device waits for their sake.
TEST(Vocabulary, BubbleOfVHalf) {
  for (int p : {2, 4, 8, 16}) {
    for (int barriers : {1, 2}) {
      const int m = 4 * p;
      const VocabularyTimes none{0, 10, 10, 0, 0, 0}, t{0, 10, 10, 4, 6, 0};
      const Schedule s = MakeOrDie("vocab_v_half", VocabularyParams(p, m, barriers, 2));
      EXPECT_LE(VocabularyMakespan(s, t, 2 * p),
                VocabularyMakespan(s, none, 2 * p) + (t.s + t.t) * m)
          << p;
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
  EXPECT_EQ(
      Refusal("vocab_v_half", params),
      "vocab_v_half --edges: neither a chain of 8 stages nor one with parts of the vocabulary "
      "on --devices=4 (models/zoo/vocabulary_shards.h)");
  params.devices_of_stage = {{0}};
  EXPECT_EQ(Refusal("vocab_1f1b", params),
            "vocab_1f1b --stage_devices: this scheme says where its stages are");
}

}  // namespace
}  // namespace pipelab
