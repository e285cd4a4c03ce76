#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

SchemeParams GisSizes(int devices, int micro_batches, int virtual_stages) {
  SchemeParams params;
  params.devices = devices;
  params.micro_batches = micro_batches;
  params.virtual_stages = virtual_stages;
  return params;
}

// With unit costs and a link on which both copies of a pass together take `ratio` times F, I and W.
Trace SimulatedAt(const Schedule& schedule, double ratio) {
  const absl::StatusOr<Program> program = Lower(schedule, {});
  CHECK(program.ok()) << program.status();
  CostTable costs = CostTable::Unit(schedule);
  const double copy_seconds = ratio * 3e-3 / 2;  // of 1 byte
  costs.host_bandwidth = BytesPerSecond(ratio == 0 ? 0 : 1 / copy_seconds);
  const absl::StatusOr<Trace> trace = Simulate(*program, costs);
  CHECK(trace.ok()) << trace.status();
  return *trace;
}

TEST(Gis, Figures) {
  EXPECT_EQ(Picture("gis", {2, 2}), R"(
0: 0F0 0F1 2F0 2F1 2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1
1: 1F0 1F1 3F0 3I0 3W0 3F1 3I1 3W1 1I0 1W0 1I1 1W1
)");
  EXPECT_EQ(Picture("gis_h", {2, 2}), R"(
0: 0F0 2F0 0F1 2I0 2W0 2F1 0I0 0W0 2I1 2W1 0I1 0W1
1: 1F0 3F0 3I0 3W0 1F1 1I0 1W0 3F1 3I1 3W1 1I1 1W1
)");
  EXPECT_EQ(Picture("po_f", {2, 2}), R"(
0: 0F0 0O0 2F0 0L0 0F1 0O1 2I0 2W0 2F1 0I0 0W0 0L1 2I1 2W1 0I1 0W1
1: 1F0 1O0 1L0 3F0 3I0 3W0 1F1 1O1 1I0 1W0 1L1 3F1 3I1 3W1 1I1 1W1
)");
}

// Offloads change neither what is computed nor in which order.
TEST(Gis, OffloadsStandBesideTheOrder) {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      const SchemeParams sizes = GisSizes(p, 3 * p + 1, v);
      Schedule offloads = MakeOrDie("po_f", sizes);
      const Schedule plain = MakeOrDie("gis_h", sizes);
      int64_t moved = 0;
      for (std::vector<Action>& list : offloads.order) {
        const auto end = std::remove_if(list.begin(), list.end(),
                                        [](const Action& a) { return IsHostTransfer(a.kind); });
        moved += list.end() - end;
        list.erase(end, list.end());
      }
      EXPECT_EQ(offloads.order, plain.order) << p << " " << v;
      // A life of two slots.
      EXPECT_EQ(moved > 0, 2 * ((p + 1) / 2) * (v - 1) + p - 1 >= 2) << p << " " << v;
    }
  }
}

// What a device holds never exceeds 1F1B's, of as many micro-batches of the whole model.
TEST(Gis, PeaksAtMostAsOneForwardOneBackward) {
  for (int p = 2; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      const UnitFigures f = Figures(MakeOrDie("gis", GisSizes(p, 3 * p, v)));
      const UnitFigures whole = Figures(MakeOrDie("1f1b", GisSizes(p, 3 * p, 1)));
      EXPECT_EQ(f.peak[0], v * whole.peak[0]) << p << " " << v;
      EXPECT_LT(f.idle, v * whole.idle) << p << " " << v;
    }
  }
}

// The paper's claim: no time is lost, whatever the ratio up to 1, and a constant peak. Beyond it
// time is lost, and the peak stays: it follows from the order.
TEST(Gis, FullOffloadIsFreeUpToRatioOne) {
  for (const auto& [p, v] : {std::pair{4, 2}, {8, 2}, {8, 4}, {6, 3}, {16, 4}}) {
    const Schedule schedule = MakeOrDie("po_f", GisSizes(p, 4 * p, v));
    const Nanoseconds alone = SimulatedAt(MakeOrDie("gis_h", GisSizes(p, 4 * p, v)), 0).makespan;
    for (const double ratio : {0.0, 0.3, 0.6, 0.9, 1.0, 1.1, 2.0}) {
      const Trace trace = SimulatedAt(schedule, ratio);
      if (ratio <= 1) {
        EXPECT_EQ(trace.makespan, alone) << p << " " << v << " " << ratio;
      } else {
        EXPECT_GT(trace.makespan, alone) << p << " " << v << " " << ratio;
      }
      for (const DeviceTrace& d : trace.devices) {
        EXPECT_EQ(d.peak_activation, Bytes(3)) << p << " " << v << " " << ratio;
        EXPECT_GT(d.peak_host, Bytes(0));
      }
    }
  }
}

// The most that stages [first, V) hold at a time, counted from the slots: the life of a micro-batch
// at a stage is from its F to its W.
int64_t HeldBySecondHalf(const Schedule& s, int device, int first) {
  int64_t held = 0, most = 0;
  for (const Action& a : s.order[device]) {
    if (a.stage / s.num_devices() < first) continue;
    if (a.kind == ActionKind::kForward) most = std::max(most, ++held);
    if (a.kind == ActionKind::kBackwardWeight) --held;
  }
  return most;
}

// Selective offload: the half of the stages with the shorter lives has about a quarter of all, and
// what is on its way adds at most three.
TEST(Gis, HalfOfTheStagesHaveAQuarter) {
  for (int p = 2; p <= 12; ++p) {
    for (int v = 2; v <= 8; v += 2) {
      const Schedule s = MakeOrDie("po_h", GisSizes(p, 6 * p, v));
      const Trace trace = SimulatedAt(s, 0);
      for (int d = 0; d < p; ++d) {
        const int64_t kept = HeldBySecondHalf(s, d, v / 2);
        const int64_t peak = trace.devices[d].peak_activation.value();
        EXPECT_GE(peak, kept) << p << " " << v << " " << d;
        EXPECT_LE(peak, kept + 3) << p << " " << v << " " << d;
        if (v == 2) {
          EXPECT_EQ(peak, (p - d) / 2 + 2) << p << " " << d;
        }
      }
    }
  }
  // The second half has P (V/2 + 1) / 4 of P (V + 1) / 2: (V + 2) / (4 (V + 1)) of it.
  const Schedule s = MakeOrDie("po_h", GisSizes(64, 256, 8));
  const double all = static_cast<double>(HeldBySecondHalf(s, 0, 0));
  EXPECT_NEAR(static_cast<double>(HeldBySecondHalf(s, 0, 4)) / all, 10.0 / 36, 0.02);
}

TEST(Gis, Refuses) {
  SchemeParams params = GisSizes(4, 8, 2);
  params.group_size = 1;
  EXPECT_EQ(Refusal("gis", params),
            "gis --group_size=1: must be from 2, below which a group would wait for its own "
            "results, to --devices=4; interleaved takes larger groups");
  params.group_size = 0;
  params.recompute = true;
  EXPECT_EQ(Refusal("po_f", params), "po_f --recompute: its activations are at the host");
}

}  // namespace
}  // namespace pipelab
