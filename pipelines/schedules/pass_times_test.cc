// Schemes that make their order for the times of passes (SchemeParams::times), by the simulator.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/guided_run.h"
#include "pipelines/schedules/zero_bubble.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

Trace SimulateWithTimes(const Schedule& schedule, const PassTimes& times) {
  CostTable table = CostTable::Unit(schedule);
  table.hop_latency = times.hop[0];  // the same for all edges
  for (size_t s = 0; s < table.stages.size(); ++s) {
    table.stages[s].forward = times.forward[s];
    table.stages[s].backward_input = times.backward_input[s];
    table.stages[s].backward_weight = times.backward_weight[s];
    table.stages[s].recompute = times.recompute[s];
  }
  absl::StatusOr<Program> program = Lower(schedule, {});
  EXPECT_THAT(program, IsOk());
  absl::StatusOr<Trace> trace = Simulate(*program, table);
  EXPECT_THAT(trace, IsOk());
  return *std::move(trace);
}

Bytes MostKept(const Trace& trace) {
  Bytes peak(0);
  for (const DeviceTrace& device : trace.devices) peak = std::max(peak, device.peak_activation);
  return peak;
}

// `last` times as long in the last stage.
PassTimes UnevenTimes(int stages, int last) {
  PassTimes times;
  for (int s = 0; s < stages; ++s) {
    const int64_t factor = s == stages - 1 ? last : 1;
    times.forward.emplace_back(20 * factor);
    times.backward_input.emplace_back(19 * factor);
    times.backward_weight.emplace_back(9 * factor);
    times.recompute.emplace_back(20 * factor);
  }
  times.hop = {Nanoseconds(1)};
  return times;
}

// RunGuided's order for a chain's guide, without looking ahead, moment by moment: a device that
// is free begins the guide's next pass if its input is there and memory permits, else the oldest W,
// unless what the pass waits for is known to come too long before that ends.
std::vector<std::vector<Action>> StepByStep(const Schedule& guide, const PassLengths& lengths,
                                            int activations, int patience_quarters) {
  struct Device {
    size_t next = 0, next_weight = 0;
    int held = 0, live = 0;
    int64_t free = 0;
    std::vector<Action> weights;
  };
  const int last = guide.num_devices() - 1;
  std::map<std::pair<int, int>, int64_t> inputs, gradients;  // of a stage's micro-batch: arrivals
  for (int m = 0; m < guide.num_micro_batches; ++m) inputs[{0, m}] = 0;
  std::vector<Device> devices(guide.num_devices());
  std::vector<std::vector<Action>> order(devices.size());
  size_t left = size_t{3} * devices.size() * guide.num_micro_batches;
  for (int64_t now = 0; left > 0; ++now) {
    for (int d = 0; d <= last; ++d) {
      Device& device = devices[d];
      if (device.free > now) continue;
      const bool more = device.next < guide.order[d].size();
      const Action pass = more ? guide.order[d][device.next] : Action();
      const bool forward = pass.kind == ActionKind::kForward;
      const auto& arrivals = forward ? inputs : gradients;
      const auto arrival = arrivals.find({pass.stage, pass.micro_batch});
      const bool known =
          more && arrival != arrivals.end() && !(forward && device.live == activations);
      bool weight = known && forward && device.held == activations;
      if (!known || arrival->second > now) {
        if (device.next_weight == device.weights.size()) continue;
        const int64_t length = lengths.backward_weight[d];
        if (known && 4 * (now + length - arrival->second) > patience_quarters * length) continue;
        weight = true;
      }
      --left;
      order[d].push_back(weight ? device.weights[device.next_weight] : pass);
      if (weight) {
        ++device.next_weight;
        --device.held;
        device.free = now + lengths.backward_weight[d];
        continue;
      }
      ++device.next;
      device.free = now + (forward ? lengths.forward : lengths.backward_input)[d];
      device.live += forward ? 1 : -1;
      if (forward) {
        ++device.held;
        if (d < last) inputs[{d + 1, pass.micro_batch}] = device.free + lengths.hop[d];
        if (d == last) gradients[{d, pass.micro_batch}] = device.free;
      } else {
        device.weights.push_back(pass);
        device.weights.back().kind = ActionKind::kBackwardWeight;
        if (d > 0) gradients[{d - 1, pass.micro_batch}] = device.free + lengths.hop[d - 1];
      }
    }
  }
  return order;
}

// Passes of 1 to 9, hops of 0 to 5.
PassLengths RandomLengths(int stages, const CounterRng& rng, uint64_t* n) {
  PassLengths lengths = PassLengths::Unit(stages);
  for (int s = 0; s < stages; ++s) {
    for (std::vector<int64_t>* length :
         {&lengths.forward, &lengths.backward_input, &lengths.backward_weight}) {
      (*length)[s] = 1 + static_cast<int64_t>(rng.Below((*n)++, 9));
    }
    lengths.hop[s] = static_cast<int64_t>(rng.Below((*n)++, 6));
  }
  return lengths;
}

TEST(RunGuided, DoesWhatAGuideSays) {
  const CounterRng rng(11, "guided");
  uint64_t n = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int p = 2 + trial % 3, patience = trial % 5;
    const Schedule guide = WithoutWeights(MakeOrDie("zb_h1", {p, 2 * p + 1}));
    const PassLengths lengths = RandomLengths(p, rng, &n);
    const int activations = HeldFromForwardToInput(guide) + static_cast<int>(rng.Below(n++, 3));
    GuidedRule rule;
    rule.patience_quarters = patience;
    Schedule made = guide;
    RunGuided(lengths, {activations}, rule, &made);
    EXPECT_EQ(made.order, StepByStep(guide, lengths, activations, patience)) << trial;
  }
}

// A run says with how much patience it would have been the same, and it is.
TEST(RunGuided, KnowsWhichPatienceMakesNoDifference) {
  const CounterRng rng(12, "patience");
  uint64_t n = 0;
  int different = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const int p = 2 + trial % 3;
    const Schedule schedule = WithoutWeights(MakeOrDie("zb_h1", {p, 2 * p + 1}));
    const PassLengths lengths = RandomLengths(p, rng, &n);
    const Guide guide(schedule, lengths);
    std::vector<GuidedOrder> made;
    for (int patience = 0; patience <= 4; ++patience) {
      GuidedRule rule;
      rule.patience_quarters = patience;
      made.push_back(RunGuide(guide, {HeldFromForwardToInput(schedule)}, rule, kUnknown));
      EXPECT_TRUE(made.back().patience.Has(patience));
    }
    for (int patience = 0; patience <= 4; ++patience) {
      for (const GuidedOrder& other : made) {
        const bool same = other.order == made[patience].order;
        different += same ? 0 : 1;
        if (other.patience.Has(patience)) {
          EXPECT_TRUE(same) << trial << " " << patience;
        }
      }
    }
  }
  EXPECT_GT(different, 100);
}

// Times that differ: zb2p is as short as any order can be, and zb_h2, with the same memory, is
// longer wherever it is not that already. It is for M = 2P-1, its parallelogram, and where the last
// stage takes so long that all others wait for it.
TEST(PassTimes, Zb2pLeavesLessBubbleThanZbH2) {
  int shorter = 0, equal = 0;
  for (int p : {2, 3, 4, 6, 8, 16}) {
    for (int m = p; m <= 8 * p; m += p / 2) {
      for (int last : {1, 2}) {
        const PassTimes times = UnevenTimes(p, last);
        SchemeParams params{p, m};
        params.times = times;
        const Trace own = SimulateWithTimes(MakeOrDie("zb2p", params), times);
        const Trace by_hand = SimulateWithTimes(MakeOrDie("zb_h2", {p, m}), times);
        ZeroBubbleCosts costs = ZeroBubbleCosts::Unit(p, 2 * p);
        for (int d = 0; d < p; ++d) {
          costs.stages[d].forward = times.forward[d];
          costs.stages[d].backward_input = times.backward_input[d];
          costs.stages[d].backward_weight = times.backward_weight[d];
          costs.stages[d].hop = times.hop[0];
        }
        const Nanoseconds bound = ZeroBubbleBound(costs, m);
        ASSERT_EQ(own.makespan.value(), bound.value()) << p << " " << m << " " << last;
        ASSERT_LE(MostKept(own), Bytes(2 * p));
        if (last == 1 && m >= 2 * p) {
          ASSERT_LT(own.makespan.value(), by_hand.makespan.value()) << p << " " << m;
        }
        ++(own.makespan < by_hand.makespan ? shorter : equal);
      }
    }
  }
  EXPECT_GT(shorter, 60);
  EXPECT_GT(equal, 0);
}

// Uneven times of every stage: never longer than the published order, and than the scheme made by
// hand, in no more memory.
TEST(PassTimes, NeverLongerThanPublished) {
  const CounterRng rng(1, "pass_times_test");
  uint64_t draw = 0;
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kPassTimes) == 0) continue;
    const std::string by_hand = scheme.name == "zb1p"   ? "zb_h1"
                                : scheme.name == "zb2p" ? "zb_h2"
                                                        : std::string(scheme.name);
    int shorter = 0, all = 0;
    for (int p : {2, 3, 4, 8}) {
      for (int m : {1, p, p + 1, 3 * p}) {
        for (bool recompute : {false, true}) {
          SchemeParams params{p, m};
          params.recompute = recompute;
          const int stages = NumStages(scheme.name, params).value();
          PassTimes times = UnevenTimes(stages, 1);
          for (auto* list : {&times.forward, &times.backward_input, &times.backward_weight}) {
            for (Nanoseconds& time : *list) time = Nanoseconds(80 + rng.Below(draw++, 60));
          }
          times.hop = {Nanoseconds(rng.Below(draw++, 30))};
          const Trace published = SimulateWithTimes(MakeOrDie(by_hand, params), times);
          const Bytes allowed =
              std::max(MostKept(SimulateWithTimes(MakeOrDie(scheme.name, params), times)),
                       std::max(MostKept(published), Bytes(scheme.name == "zb2p" ? 2 * p : 0)));
          params.times = times;
          const Trace own = SimulateWithTimes(MakeOrDie(scheme.name, params), times);
          ASSERT_LE(own.makespan.value(), published.makespan.value())
              << scheme.name << " " << p << " " << m << " " << recompute;
          if (m >= p) {
            ASSERT_LE(MostKept(own), allowed) << scheme.name << " " << p << " " << m;
          }
          shorter += own.makespan < published.makespan;
          ++all;
        }
      }
    }
    EXPECT_GT(4 * shorter, all) << scheme.name;
  }
}

// Each edge has a time of its own, and one between the stages of a device counts for nothing.
TEST(PassTimes, HopsOfEdges) {
  SchemeParams params{2, 4};
  params.times = UnevenTimes(4, 1);
  params.times.hop = {Nanoseconds(5), Nanoseconds(1000), Nanoseconds(5)};
  const Schedule own = MakeOrDie("zbv", params);
  params.times.hop = {Nanoseconds(5), Nanoseconds(0), Nanoseconds(5)};
  EXPECT_EQ(own.order, MakeOrDie("zbv", params).order);
}

// Where all passes take the same the order is the published one; so it is for schemes with one
// order for all times.
TEST(PassTimes, EqualTimesMakeThePublishedOrder) {
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kStageGraph) != 0) continue;
    SchemeParams params{4, 8};
    const Schedule published = MakeOrDie(scheme.name, params);
    const bool own = (scheme.options & kPassTimes) != 0;
    const std::vector<Nanoseconds> seven(published.num_stages(), Nanoseconds(7));
    params.times.forward = params.times.backward_input = params.times.backward_weight = seven;
    if (!own) params.times.forward[0] = Nanoseconds(9);
    EXPECT_TRUE(MakeOrDie(scheme.name, params).order == published.order) << scheme.name;
  }
}

TEST(PassTimes, Refuse) {
  SchemeParams params{2, 4};
  params.times = UnevenTimes(3, 1);
  EXPECT_EQ(Refusal("zb1p", params), "zb1p pass times: 3 of forward; the schedule has 2 stages");
  params.times = UnevenTimes(2, 1);
  params.times.forward.clear();
  EXPECT_EQ(Refusal("zb1p", params), "zb1p pass times: 0 of forward; the schedule has 2 stages");
  params.times = UnevenTimes(2, 1);
  params.times.recompute.clear();
  params.times.backward_weight[1] = Nanoseconds(-4);
  EXPECT_EQ(Refusal("zb1p", params), "zb1p pass times: backward_weight has -4 ns; at least 0");
}

// The use of any stage; a forward's results are in the way while it runs.
OrderLimits::Use UseOf(ActionKind kind) {
  if (kind == ActionKind::kForward) return {Bytes(5), Bytes(3)};
  return kind == ActionKind::kBackwardInput ? OrderLimits::Use{Bytes(1), Bytes(-2)}
                                            : OrderLimits::Use{Bytes(2), Bytes(-1)};
}

// [device]
std::vector<Bytes> NeededBy(const Schedule& schedule) {
  std::vector<Bytes> most;
  for (const std::vector<Action>& list : schedule.order) {
    Bytes bytes;
    Bytes& needed = most.emplace_back();
    for (const Action& a : list) {
      if (a.kind == ActionKind::kRecompute) continue;
      const OrderLimits::Use use = UseOf(a.kind);
      needed = std::max({needed, bytes + use.peak, bytes + use.change});
      bytes += use.change;
    }
  }
  return most;
}

// Limits never change what is chosen: they say whether it is within them.
TEST(PassTimes, LimitsTellOfTheOrderThatWouldBeChosen) {
  const CounterRng rng(3, "limits");
  uint64_t draws = 0;
  const auto below = [&](uint64_t n) { return static_cast<int>(rng.Below(draws++, n)); };
  for (const char* scheme : {"zb1p", "zb2p", "interleaved_zb1p", "zbv", "v_half", "v_min"}) {
    for (int i = 0; i < 40; ++i) {
      SchemeParams params{2 + below(5), 1 + below(24)};
      params.recompute = i % 3 == 0;
      const int stages = NumStages(scheme, params).value();
      for (int s = 0; s < stages; ++s) {
        for (auto* times : {&params.times.forward, &params.times.backward_input,
                            &params.times.backward_weight, &params.times.recompute}) {
          times->emplace_back(20 + below(60));
        }
      }
      params.times.hop.emplace_back(below(9));
      const Schedule chosen = MakeOrDie(scheme, params);
      const Nanoseconds makespan = SimulateWithTimes(chosen, params.times).makespan;

      params.limits.forward.assign(stages, UseOf(ActionKind::kForward));
      params.limits.backward_input.assign(stages, UseOf(ActionKind::kBackwardInput));
      params.limits.backward_weight.assign(stages, UseOf(ActionKind::kBackwardWeight));
      params.limits.free = NeededBy(chosen);
      params.limits.hop = params.times.hop[0];
      params.limits.too_long = makespan + Nanoseconds(1);
      const Schedule limited = MakeOrDie(scheme, params);
      EXPECT_EQ(limited.order, chosen.order) << scheme << " " << i;

      SchemeParams other = params;
      other.limits.free[below(other.limits.free.size())] -= Bytes(1);
      EXPECT_FALSE(MakeSchedule(scheme, other).ok()) << scheme << " " << i;
      other.limits.too_long = Nanoseconds(0);
      EXPECT_THAT(MakeSchedule(scheme, other),
                  StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory")));
      other = params;
      other.limits.too_long = makespan;
      EXPECT_FALSE(MakeSchedule(scheme, other).ok()) << scheme << " " << i;
      other.limits.free.clear();
      EXPECT_THAT(MakeSchedule(scheme, other),
                  StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("too long")));
      // Messages might be quicker, so it might not be too long.
      other.limits.hop = Nanoseconds(0);
      const auto maybe = MakeSchedule(scheme, other);
      EXPECT_TRUE(!maybe.ok() || maybe->order == chosen.order) << scheme << " " << i;
    }
  }
}

}  // namespace
}  // namespace pipelab
