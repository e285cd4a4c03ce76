// Messages in calls: timelines worked out by hand, and a second model that shares nothing with the
// simulator.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/hand_costs.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

Program InCalls(const std::string& scheme, const SchemeParams& sizes, bool apart = false) {
  LoweringOptions options;
  options.step = false;
  const bool one = scheme == "1f1b" || scheme == "seq1f1b";
  options.calls = !one    ? MessageCalls::kBothNeighbours
                  : apart ? MessageCalls::kOneMessage
                          : MessageCalls::kOneNeighbour;
  return Lower(MakeSchedule(scheme, sizes).value(), options).value();
}

// F 100 and B 200 ns, messages 30 ns, gap 7 ns. Device 0 waits for device 1 in the call after its
// forward, whose own part took but 37.
TEST(MessageCalls, TwoDevicesByHand) {
  const Program p = InCalls("1f1b", {2, 2});
  CostTable costs = HandCosts(p.schedule);
  costs.hop_latency = Nanoseconds(30);
  costs.launch_gap = Nanoseconds(7);
  // Device 1 receives from 100 to 137, and computes F and B until 437; the call that sends the
  // gradient and receives the second activation lasts until 474, since device 0 meets it there:
  // its second forward was over at 237.
  const Trace trace = Simulate(p, costs).value();
  EXPECT_EQ(Timeline(p, trace),
            "\n0F0[0,100] synchronise[100,137] 0F1[137,237] wait[237,467] synchronise[467,474] "
            "0B0[474,674] wait[674,804] synchronise[804,811] 0B1[811,1011] \n"
            "wait[0,130] synchronise[130,137] 1F0[137,237] 1B0[237,437] wait[437,467] "
            "synchronise[467,474] 1F1[474,574] 1B1[574,774] synchronise[774,811] \n");
}

// [device] What it does in turn: passes of some nanoseconds, and calls.
struct Item {
  bool call = false;
  double time = 0;  // of a pass; of what a call does once its messages are over
  std::vector<int> messages;
};

std::vector<std::vector<Item>> ItemsOf(const Program& p, const CostTable& costs, double gather) {
  std::vector<std::vector<Item>> items(p.instructions.size());
  for (size_t d = 0; d < items.size(); ++d) {
    Item call;
    call.call = true;
    call.time = static_cast<double>(costs.launch_gap.value());
    const Item empty = call;
    for (const Instruction& i : p.instructions[d]) {
      if (i.op == OpCode::kCompute) {
        items[d].push_back({false, static_cast<double>(costs.Compute(i.action).value()), {}});
      } else if (i.op == OpCode::kSynchronise) {
        items[d].push_back(call);
        call = empty;
      } else if (i.op != OpCode::kReceive) {
        call.messages.push_back(i.arg);
        if (i.op == OpCode::kWait) call.time += gather;
      }
    }
  }
  return items;
}

// Bytes a nanosecond of one link: of all messages, or of each.
struct SlowLink {
  double rate = 1, latency = 0;
  bool shared = false;
};

// From one event to the next, in continuous time.
class SlowModel {
 public:
  SlowModel(std::vector<std::vector<Item>> items, std::vector<double> bytes, const SlowLink& link)
      : items_(std::move(items)),
        left_(std::move(bytes)),
        link_(link),
        at_(items_.size(), 0),
        ready_(items_.size(), 0),
        posted_(items_.size(), false),
        ends_(left_.size(), 0),
        arrival_(left_.size(), kNever) {}

  double Run() {
    while (true) {
      while (Progress()) {
      }
      double next = kNever;
      for (size_t d = 0; d < items_.size(); ++d) {
        if (ready_[d] > now_) next = std::min(next, ready_[d]);
      }
      int active = 0;
      for (size_t m = 0; m < left_.size(); ++m) active += Active(m) ? 1 : 0;
      const double rate = link_.shared && active > 0 ? link_.rate / active : link_.rate;
      for (size_t m = 0; m < left_.size(); ++m) {
        if (Active(m)) next = std::min(next, now_ + left_[m] / rate);
        if (arrival_[m] != kNever && arrival_[m] > now_) next = std::min(next, arrival_[m]);
      }
      if (next == kNever) break;
      for (size_t m = 0; m < left_.size(); ++m) {
        if (!Active(m)) continue;
        left_[m] -= (next - now_) * rate;
        if (left_[m] < 1e-6) arrival_[m] = next + link_.latency;
      }
      now_ = next;
    }
    for (size_t d = 0; d < items_.size(); ++d) EXPECT_EQ(at_[d], items_[d].size()) << d;
    return *std::max_element(ready_.begin(), ready_.end());
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  bool Active(size_t m) const { return ends_[m] == 2 && arrival_[m] == kNever; }

  bool Progress() {
    bool moved = false;
    for (size_t d = 0; d < items_.size(); ++d) {
      if (at_[d] == items_[d].size() || ready_[d] > now_) continue;
      const Item& item = items_[d][at_[d]];
      if (item.call && !posted_[d]) {
        for (int m : item.messages) ++ends_[m];
        posted_[d] = true;
        moved = true;
      }
      if (std::any_of(item.messages.begin(), item.messages.end(),
                      [&](int m) { return arrival_[m] > now_; })) {
        continue;
      }
      ready_[d] = now_ + item.time;
      posted_[d] = false;
      ++at_[d];
      moved = true;
    }
    return moved;
  }

  const std::vector<std::vector<Item>> items_;
  std::vector<double> left_;
  const SlowLink link_;
  std::vector<size_t> at_;
  std::vector<double> ready_;
  std::vector<bool> posted_;
  std::vector<int> ends_;  // [message] that have come to it
  std::vector<double> arrival_;
  double now_ = 0;
};

struct Case {
  std::string scheme;
  SchemeParams sizes;
  bool shared = false, divided = false, apart = false;
};

// Numbers one after the other.
class Draws {
 public:
  int64_t Below(uint64_t n) { return static_cast<int64_t>(rng_.Below(next_++, n)); }

 private:
  const CounterRng rng_{7, "message calls"};
  uint64_t next_ = 0;
};

Case RandomCase(Draws& rng) {
  Case c;
  c.scheme = rng.Below(2) == 0 ? "1f1b" : "interleaved";
  const bool interleaved = c.scheme == "interleaved";
  c.sizes.devices = static_cast<int>(rng.Below(3)) + (interleaved ? 3 : 2);
  c.sizes.virtual_stages = interleaved ? static_cast<int>(rng.Below(2)) + 2 : 1;
  c.sizes.micro_batches = interleaved ? c.sizes.devices * (1 + static_cast<int>(rng.Below(3)))
                                      : 1 + static_cast<int>(rng.Below(8));
  c.sizes.forwards_first =
      interleaved && c.sizes.micro_batches == c.sizes.devices && rng.Below(2) == 0;
  if (!c.sizes.forwards_first && rng.Below(2) == 0) {
    c.scheme = interleaved ? "interleaved_seq1f1b" : "seq1f1b";
    // Groups of P slices.
    c.sizes.slices = interleaved && c.sizes.devices % 2 == 1 ? c.sizes.devices : 2;
  }
  c.shared = rng.Below(2) == 0;
  c.divided = rng.Below(2) == 0;
  c.apart = rng.Below(2) == 0;
  return c;
}

TEST(MessageCalls, ASecondModelAgrees) {
  Draws rng;
  constexpr int kTensor = 4;
  for (int trial = 0; trial < 300; ++trial) {
    const Case c = RandomCase(rng);
    SCOPED_TRACE(absl::StrCat(trial, ": ", c.scheme, " P=", c.sizes.devices,
                              " V=", c.sizes.virtual_stages, " M=", c.sizes.micro_batches));
    const Program p = InCalls(c.scheme, c.sizes, c.apart);
    CostTable costs = HandCosts(p.schedule);
    for (StageCost& stage : costs.stages) {
      stage.forward = Nanoseconds(1000 + rng.Below(2000));
      stage.backward_input = Nanoseconds(1000 + rng.Below(3000));
    }
    const int64_t bytes = 400 * (1 + rng.Below(12));
    for (Bytes& b : costs.edge_bytes) b = Bytes(bytes);
    for (int slice = 0; slice < p.schedule.num_slices && p.schedule.num_slices > 1; ++slice) {
      SliceCosts& of_slice = costs.slices.emplace_back();
      of_slice.stages = costs.stages;
      of_slice.edge_bytes = costs.edge_bytes;
      for (StageCost& stage : of_slice.stages) {
        stage.forward += Nanoseconds(rng.Below(500));
        stage.backward_input += Nanoseconds(rng.Below(500));
      }
    }
    costs.launch_gap = Nanoseconds(rng.Below(500));
    SlowLink link{1, static_cast<double>(rng.Below(300)), c.shared};
    costs.tensor_parallel = kTensor;
    costs.divided_messages = c.divided;
    costs.message_gather = {Nanoseconds(50), BytesPerSecond(4e9)};
    costs.hop_latency = Nanoseconds(static_cast<int64_t>(link.latency));
    costs.bandwidth = BytesPerSecond(1e9);
    if (c.shared) {
      Network network = UnconnectedNetwork(c.sizes.devices);
      network.links.push_back({"", costs.hop_latency, costs.bandwidth});
      for (Route& route : network.routes) route.uses = {0};
      costs.network = network;
    }
    const double sent = static_cast<double>(c.divided ? bytes / kTensor : bytes);
    const double gather = c.divided ? 50 + static_cast<double>(bytes) / 4 : 0;
    SlowModel slow(ItemsOf(p, costs, gather), std::vector<double>(p.messages.size(), sent), link);
    const double want = slow.Run();
    // Shared transfers end at whole nanoseconds.
    EXPECT_NEAR(static_cast<double>(Simulate(p, costs).value().makespan.value()), want,
                c.shared ? static_cast<double>(p.messages.size()) : 0.5);
  }
}

// One at a time: what a call takes more than before, each call takes.
TEST(MessageCalls, NothingMakesAStepShorter) {
  const Program p = InCalls("interleaved", {4, 8, 2});
  CostTable costs = HandCosts(p.schedule);
  const int64_t bare = Simulate(p, costs).value().makespan.value();
  costs.launch_gap = Nanoseconds(10);
  const int64_t gaps = Simulate(p, costs).value().makespan.value();
  // The first device has a call after each of its 8 x 2 forwards and backwards but those in pairs.
  EXPECT_GE(gaps, bare + 10 * (8 * 2 + 2 * 3));
  costs.tensor_parallel = 2;
  costs.divided_messages = true;
  costs.message_gather.latency = Nanoseconds(5);
  EXPECT_GT(Simulate(p, costs).value().makespan.value(), gaps);
}

}  // namespace
}  // namespace pipelab
