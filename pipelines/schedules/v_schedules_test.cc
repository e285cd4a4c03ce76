#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/schedules/v_guides.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// The smallest of each: 2 devices, 2 micro-batches, where memory makes no difference.
TEST(VSchedules, SmallestFigures) {
  for (const char* scheme : {"v_half", "v_min"}) {
    EXPECT_EQ(Picture(scheme, {2, 2}), R"(
0: 0F0 0F1 3F0 3I0 3F1 3I1 0I0 3W0 0I1 3W1 0W0 0W1
1: 1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 1W0 2W1 1W1
)");
  }
  EXPECT_EQ(Timeline(MakeOrDie("v_half", {4, 4})), R"(
 0 1 2 3       0'0 1'1.0.1   2'0'2.0.2 3'3'1.3'2.1.2  '3.3|
   0 1 2 3   0   1'0.0'1.1 2'0.0  '2 3.2'1'3'2.1.3.2'3.3  |
     0 1 2 0 3 1    '0.0 2'0'1.0.1 3'2'1.2'2'3.1.2'3.3.3  |
       0 0 1 1 2 2    '0'0.0 3.0 3'1'1'2'2.1.1'3'3.2.2.3.3|
)");
  EXPECT_EQ(Timeline(MakeOrDie("v_min", {4, 4})), R"(
 0 1           0'0 2.0     1'1'0.1 3.0 2'2'1.2.1   3'3'2.3.2      '3.3|
   0         0 1  '0.0   1 2'0'1.0.1 2 3'1'2.1.2 3  '2'3.2.3    '3.3  |
     0     0     1  '0 1.0'0 2.0'1 2.1'1 3.1'2 3.2'2.2  '3.3  '3.3    |
       0 0         1 1'0'0.0.0 2 2'1'1.1.1 3 3'2'2.2.2    '3'3.3.3    |
)");
}

int64_t PeakInFlight(const UnitFigures& f) {
  return *std::max_element(f.peak.begin(), f.peak.end());
}

// In half-stages (F = I = W = 1), where 1F1B is idle for 6(P-1) and holds 2P: half of either, but
// for a stage.
TEST(VHalf, ClosedForms) {
  for (int p = 3; p <= 16; ++p) {
    for (int m = p; m <= 8 * p; m += p / 2) {
      const UnitFigures f = Figures(MakeOrDie("v_half", {p, m}));
      ASSERT_EQ(f.busy, 6 * m);
      ASSERT_EQ(f.idle, 6 * ((p + 1) / 2) - 7) << p << " " << m;
      ASSERT_EQ(PeakInFlight(f), p % 2 == 0 ? p + 2 : p + 1) << p << " " << m;
    }
  }
}

// A third of 1F1B's memory, and two; 2/3 of its idle time.
TEST(VMin, ClosedForms) {
  for (int p = 3; p <= 16; ++p) {
    for (int m = p; m <= 8 * p; m += p / 2) {
      const UnitFigures f = Figures(MakeOrDie("v_min", {p, m}));
      ASSERT_EQ(f.busy, 6 * m);
      ASSERT_EQ(f.idle, 12 * (p / 3) - (p % 3 == 0 ? 7 : 1)) << p << " " << m;
      ASSERT_EQ(PeakInFlight(f), 2 * ((p + 1) / 3) + 2) << p << " " << m;
    }
  }
}

// Idle half-stages of the authors' orders, with their moves into free slots: what their generator
// (zbv_greedy.py of the zero-bubble repository) makes for F = I = W = 1 and no communication, with
// P, 2P and 4P micro-batches, in the same memory.
TEST(VSchedules, NowhereLongerThanTheAuthorsOrders) {
  const struct {
    const char* scheme;
    int devices;
    int idle[3];  // with P, 2P, 4P micro-batches
  } authors[] = {
      {"v_half", 2, {3, 1, 1}},     {"v_half", 3, {5, 5, 5}},     {"v_half", 4, {10, 5, 5}},
      {"v_half", 5, {14, 11, 11}},  {"v_half", 6, {12, 11, 11}},  {"v_half", 7, {24, 17, 17}},
      {"v_half", 8, {17, 17, 17}},  {"v_half", 9, {28, 23, 23}},  {"v_half", 10, {23, 23, 23}},
      {"v_half", 11, {38, 29, 29}}, {"v_half", 12, {29, 29, 29}}, {"v_half", 13, {48, 35, 35}},
      {"v_half", 14, {35, 35, 35}}, {"v_half", 15, {52, 41, 41}}, {"v_half", 16, {41, 41, 41}},
      {"v_min", 2, {3, 3, 3}},      {"v_min", 3, {8, 5, 5}},      {"v_min", 4, {11, 11, 11}},
      {"v_min", 5, {15, 15, 15}},   {"v_min", 6, {17, 17, 17}},   {"v_min", 7, {23, 23, 23}},
      {"v_min", 8, {27, 27, 27}},   {"v_min", 9, {29, 29, 29}},   {"v_min", 10, {35, 35, 35}},
      {"v_min", 11, {39, 39, 39}},  {"v_min", 12, {41, 41, 41}},  {"v_min", 13, {47, 47, 47}},
      {"v_min", 14, {51, 51, 51}},  {"v_min", 15, {53, 53, 53}},  {"v_min", 16, {59, 59, 59}},
  };
  int shorter = 0;
  for (const auto& row : authors) {
    for (int i = 0; i < 3; ++i) {
      const int p = row.devices, m = p << i;
      const int64_t idle = Figures(MakeOrDie(row.scheme, {p, m})).idle;
      EXPECT_LE(idle, row.idle[i]) << row.scheme << " " << p << " " << m;
      shorter += idle < row.idle[i];
    }
  }
  EXPECT_GE(shorter, 20);
}

// A block walked slot by slot, every six slots: F go down the devices and up again at once, and
// after a pause I do the same.
std::vector<std::vector<Action>> RepeatedBlock(int devices, int micro_batches, int down_step,
                                               int pause) {
  std::vector<std::vector<std::pair<int, Action>>> slots(devices);
  for (int m = 0; m < micro_batches; ++m) {
    int slot = 6 * m;
    const auto run = [&](ActionKind kind, int stage, int d) {
      Action a;
      a.kind = kind;
      a.stage = static_cast<int16_t>(stage);
      a.micro_batch = m;
      slots[d].emplace_back(slot, a);
    };
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackwardInput}) {
      const bool forward = kind == ActionKind::kForward;
      for (int d = 0; d < devices; ++d, slot += down_step) {
        run(kind, forward ? d : 2 * devices - 1 - d, d);
      }
      // F turn in one slot, and I in as many as a step down takes.
      if (forward) slot += 1 - down_step;
      for (int d = devices - 1; d >= 0; --d, ++slot) {
        run(kind, forward ? 2 * devices - 1 - d : d, d);
      }
      slot += pause;
    }
  }
  std::vector<std::vector<Action>> order(devices);
  for (int d = 0; d < devices; ++d) {
    std::stable_sort(slots[d].begin(), slots[d].end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [slot, action] : slots[d]) order[d].push_back(action);
  }
  return order;
}

// Micro-batches every six slots; V-Half's, then V-Min's with pauses of 0, 2 and 4.
TEST(VSchedules, GuidesRepeatTheirBlocks) {
  for (int p = 1; p <= 9; ++p) {
    const std::vector<Schedule> guides = VGuides({p, 2 * p + 3, 2});
    ASSERT_EQ(guides.size(), size_t{4});
    EXPECT_EQ(guides[0].order, RepeatedBlock(p, 2 * p + 3, 2, p % 2 == 0 ? 3 : 0)) << p;
    for (int i = 1; i <= 3; ++i) {
      EXPECT_EQ(guides[i].order, RepeatedBlock(p, 2 * p + 3, 1, 2 * (i - 1))) << p << " " << i;
    }
  }
}

// ... nor than any scheme of the catalogue that holds no more, of activations and of weights. A
// stage of a scheme with V stages a device is 2 / V of a half-stage, in time and in memory.
TEST(VSchedules, NoSchemeIsShorterInTheirMemory) {
  int compared = 0;
  for (int p = 2; p <= 10; ++p) {
    for (int m = 1; m <= 4 * p; m += m < p + 2 ? 1 : p / 2) {
      for (const char* name : {"v_half", "v_min"}) {
        const UnitFigures own = Figures(MakeOrDie(name, {p, m}));
        const int64_t limit = name[2] == 'h' ? (p % 2 == 0 ? p + 2 : p + 1) : 2 * ((p + 1) / 3) + 2;
        ASSERT_LE(PeakInFlight(own), limit);
        for (const Scheme& scheme : Catalog()) {
          const absl::StatusOr<Schedule> other = MakeSchedule(scheme.name, {p, m});
          if (scheme.asynchronous || !other.ok() || other->num_slices > 1) continue;
          // Other training, with less to wait for, or none.
          if (!other->stages.AllGradientsAreOwn() || other->forward_only) continue;
          if ((scheme.options & kOffloads) != 0) continue;  // what they hold is at the host
          if (other->placement.num_replicas() > 1) continue;
          const int64_t v = other->num_stages() / p;
          const UnitFigures f = Figures(*other);
          if (2 * PeakInFlight(f) > v * limit) continue;
          ++compared;
          ASSERT_LE(own.makespan * v, f.makespan * 2)
              << name << " " << scheme.name << " " << p << " " << m;
        }
      }
    }
  }
  EXPECT_GT(compared, 500);
}

// Fewer micro-batches than devices: served, in no more memory.
TEST(VSchedules, FewMicroBatches) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m < p; ++m) {
      for (const char* name : {"v_half", "v_min"}) {
        const UnitFigures f = Figures(MakeOrDie(name, {p, m}));
        ASSERT_EQ(f.busy, 6 * m);
        for (int64_t peak : f.peak) ASSERT_LE(peak, 2 * m) << name << " " << p << " " << m;
      }
    }
  }
}

TEST(VSchedules, Refuse) {
  EXPECT_EQ(Refusal("v_half", {4, 4, 1}),
            "v_half --virtual_stages=1: this scheme holds two stages per device, a V; use "
            "--virtual_stages=2");
  EXPECT_EQ(Refusal("v_min", {4, 4, 4}),
            "v_min --virtual_stages=4: this scheme holds two stages per device, a V; use "
            "--virtual_stages=2");
}

}  // namespace
}  // namespace pipelab
