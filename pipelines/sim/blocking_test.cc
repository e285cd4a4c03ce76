// Programs whose transfers occupy both devices (CostTable::overlap off), in closed form.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/sim_testing.h"

namespace pipelab {
namespace {

// Blocking transfers of c make each action as long as itself and a transfer; only the first
// forward's receive and the last backward's send are missing at the ends:
// (M + P - 1) (F + B + 2c) - 2c.
TEST(Cluster, BlockingGPipeHasItsClosedForm) {
  for (int p : {2, 3, 4, 8}) {
    for (int m : {1, 2, 5, 16}) {
      for (int64_t c : {0, 1, 30, 250}) {
        const Program program = Made("gpipe", p, m);
        CostTable costs = Costs(program.schedule);
        costs.overlap = false;
        costs.hop_latency = Nanoseconds(c);
        EXPECT_EQ(Makespan(program, costs), (m + p - 1) * (300 + 2 * c) - 2 * c)
            << p << " " << m << " " << c;
        // Bytes or latency: the same.
        costs.hop_latency = Nanoseconds(0);
        costs.bandwidth = BytesPerSecond(c == 0 ? 0 : 1e12 / static_cast<double>(c));
        EXPECT_EQ(Makespan(program, costs), (m + p - 1) * (300 + 2 * c) - 2 * c);
      }
    }
  }
}

// With two devices, an activation and a gradient pass each other in every exchange: one transfer a
// micro-batch; with more, inner devices have exchanges with either neighbour: two, and the first
// of the steady state is shared.
TEST(Cluster, Blocking1F1BHasItsClosedForm) {
  for (int p : {2, 3, 4, 8}) {
    for (int m : {1, 2, 5, 16}) {
      for (int64_t c : {0, 1, 30, 250}) {
        const Program program = Made("1f1b", p, m);
        CostTable costs = Costs(program.schedule);
        costs.overlap = false;
        costs.hop_latency = Nanoseconds(c);
        const int64_t alone = p * 300 + 2 * (p - 1) * c;
        const int64_t others =
            p == 2 ? (m - 1) * (300 + c) : (m - 1) * (300 + 2 * c) - (m > 1 ? c : 0);
        EXPECT_EQ(Makespan(program, costs), alone + others) << p << " " << m << " " << c;
      }
    }
  }
}

// Alone, a micro-batch takes what it takes with overlap: there is nothing to overlap with.
TEST(Cluster, BlockingIsTheSameForOneMicroBatch) {
  for (const char* scheme : {"gpipe", "1f1b", "zb_h1", "interleaved"}) {
    const Program program = Made(scheme, 4, 4);
    CostTable costs = Costs(program.schedule);
    costs.hop_latency = Nanoseconds(30);
    const int64_t overlapped = Makespan(program, costs);
    costs.overlap = false;
    EXPECT_GT(Makespan(program, costs), overlapped) << scheme;
    if (std::string(scheme) != "gpipe" && std::string(scheme) != "1f1b") continue;
    const Program one = Made(scheme, 4, 1);
    EXPECT_EQ(Makespan(one, costs), 4 * 300 + 6 * 30) << scheme;
    costs.overlap = true;
    EXPECT_EQ(Makespan(one, costs), 4 * 300 + 6 * 30) << scheme;
  }
}

int64_t MakespanOf(const char* scheme, int p, int m, int64_t hop, bool overlap, bool steady) {
  const Program program = Made(scheme, p, m);
  CostTable costs = Costs(program.schedule);
  costs.hop_latency = Nanoseconds(hop);
  costs.overlap = overlap;
  costs.steady_overlap = steady;
  return Makespan(program, costs);
}

// In the long run a step grows with its micro-batches as if all messages ran beside compute; what
// warm-up and flush add does not grow.
TEST(Cluster, SteadyOverlapCostsWarmUpAndFlush) {
  int dearer = 0;  // where something could have run beside messages of warm-up or flush
  for (const char* scheme : {"1f1b", "interleaved", "zb_h1", "breadth_first", "gpipe"}) {
    for (int p : {3, 4, 8}) {
      for (int64_t c : {1, 30, 90}) {
        SCOPED_TRACE(testing::Message() << scheme << " " << p << " " << c);
        const auto made = [&](int m, bool overlap, bool steady) {
          return MakespanOf(scheme, p, m, c, overlap, steady);
        };
        const int few = 6 * p, many = 12 * p;
        for (int m : {p, few, many}) {
          EXPECT_LE(made(m, true, false), made(m, true, true));
          EXPECT_LE(made(m, true, true), made(m, false, false));
        }
        const int64_t ends = made(few, true, true) - made(few, true, false);
        dearer += ends > 0;
        const std::string name = scheme;
        if (name == "gpipe" || name == "breadth_first") {  // no steady phase
          EXPECT_EQ(made(many, true, true), made(many, false, false));
        } else {
          EXPECT_EQ(made(many, true, true) - made(many, true, false), ends);
        }
        if (name == "interleaved") {
          EXPECT_LT(made(many, true, true), made(many, false, false));
        }
      }
    }
  }
  EXPECT_GT(dearer, 0);
}

}  // namespace
}  // namespace pipelab
