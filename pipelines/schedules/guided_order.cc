#include "pipelines/schedules/guided_order.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "pipelines/schedules/guided_run.h"
#include "pipelines/schedules/limited_order.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

// When the inputs of passes arrive.
class Arrivals {
 public:
  Arrivals(const Schedule& schedule, const PassLengths& lengths)
      : schedule_(schedule),
        lengths_(lengths),
        micro_batches_(schedule.num_micro_batches),
        forward_(size_t(schedule.num_stages()) * micro_batches_, kUnknown),
        input_(forward_) {
    std::fill_n(forward_.begin(), micro_batches_, 0);
    for (const auto& replica : schedule.placement.groups) {
      for (const std::vector<int>& group : replica) devices_.push_back(group[0]);
    }
  }

  int64_t At(const Action& a) const {
    return (a.kind == ActionKind::kForward ? forward_ : input_)[Index(a.stage, a.micro_batch)];
  }
  // `a` ends: the device where that makes something ready; -1 where nothing waits for it.
  int End(const Action& a, int64_t end) {
    const bool forward = a.kind == ActionKind::kForward;
    if (forward && a.stage + 1 == schedule_.num_stages()) {
      input_[Index(a.stage, a.micro_batch)] = end;
      return DeviceOf(a.stage, a.micro_batch);
    }
    if (a.kind == ActionKind::kBackwardWeight || (!forward && a.stage == 0)) return -1;
    const int next = forward ? a.stage + 1 : a.stage - 1;
    const int device = DeviceOf(next, a.micro_batch);
    if (device != DeviceOf(a.stage, a.micro_batch))
      end += lengths_.hop[std::min<int>(a.stage, next)];
    (forward ? forward_ : input_)[Index(next, a.micro_batch)] = end;
    return device;
  }

 private:
  size_t Index(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * micro_batches_ + micro_batch;
  }
  int DeviceOf(int stage, int micro_batch) const {
    const int replica = schedule_.placement.replica_of_micro_batch[micro_batch];
    return devices_[replica * schedule_.num_stages() + stage];
  }

  const Schedule& schedule_;
  const PassLengths& lengths_;
  const int micro_batches_;
  std::vector<int> devices_;              // [replica][stage]
  std::vector<int64_t> forward_, input_;  // [stage][micro-batch]
};

// The most passes of a kind that a device has done before those of another.
int MostBetween(const Schedule& schedule, ActionKind from, ActionKind to) {
  int most = 0;
  for (const std::vector<Action>& list : schedule.order) {
    int between = 0;
    for (const Action& a : list) {
      between += a.kind == from ? 1 : a.kind == to ? -1 : 0;
      most = std::max(most, between);
    }
  }
  return most;
}

}  // namespace

PassLengths PassLengths::Unit(int stages) {
  const std::vector<int64_t> one(stages, 1);
  const std::vector<int64_t> none(stages, 0);
  return {one, none, one, one, none};
}

PassLengths PassLengths::Of(const SchemeParams& params) {
  const PassTimes& times = params.times;
  const size_t stages = times.forward.size();
  PassLengths lengths = Unit(static_cast<int>(stages));
  for (size_t s = 0; s < stages; ++s) {
    lengths.forward[s] = times.forward[s].value();
    lengths.backward_input[s] = times.backward_input[s].value();
    if (params.recompute && !times.recompute.empty()) {
      lengths.recompute[s] = times.recompute[s].value();
    }
    lengths.backward_weight[s] = times.backward_weight[s].value();
    if (!times.hop.empty()) {
      lengths.hop[s] = times.hop[std::min(s, times.hop.size() - 1)].value();
    }
  }
  return lengths;
}

bool PassLengths::AreEqual() const {
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::count(values.begin(), values.end(), value) == static_cast<int64_t>(values.size());
  };
  return all(forward, forward[0]) && all(backward_input, forward[0]) &&
         all(backward_weight, forward[0]) && all(recompute, 0) && all(hop, 0);
}

int64_t Makespan(const Schedule& schedule, const PassLengths& lengths) {
  Arrivals arrivals(schedule, lengths);
  const int devices = schedule.num_devices();
  std::vector<size_t> next(devices, 0);
  std::vector<int64_t> free(devices, 0);
  std::vector<int> ready(devices);  // devices whose next action may be able to start
  for (int d = 0; d < devices; ++d) ready[d] = d;
  while (!ready.empty()) {
    const int d = ready.back();
    ready.pop_back();
    for (const std::vector<Action>& list = schedule.order[d]; next[d] < list.size(); ++next[d]) {
      const Action& a = list[next[d]];
      int64_t begin = free[d];
      if (a.kind != ActionKind::kBackwardWeight) {
        const int64_t arrival = arrivals.At(a);
        if (arrival == kUnknown) break;
        const bool recomputes = a.kind == ActionKind::kBackwardInput;
        begin = std::max(begin, arrival - (recomputes ? lengths.recompute[a.stage] : 0));
      }
      free[d] = begin + PassLength(lengths, a);
      const int other = arrivals.End(a, free[d]);
      if (other >= 0 && other != d) ready.push_back(other);
    }
  }
  for (int d = 0; d < devices; ++d) {
    CHECK_EQ(next[d], schedule.order[d].size()) << "device " << d << " is stuck";
  }
  return *std::max_element(free.begin(), free.end());
}

void RunGuided(const PassLengths& lengths, const HeldLimits& limits, const GuidedRule& rule,
               Schedule* schedule) {
  const Guide guide(*schedule, lengths);
  CHECK(guide.IsCountable()) << "passes that take too long to be counted";
  GuidedOrder made = RunGuide(guide, limits, rule, kUnknown);
  schedule->order = std::move(made.order);
}

void FillGapsWithWeights(Schedule* schedule, int max_activations) {
  RunGuided(PassLengths::Unit(schedule->num_stages()), {max_activations}, {}, schedule);
}

Schedule WithoutWeights(Schedule schedule) {
  for (std::vector<Action>& list : schedule.order) {
    list.erase(
        std::remove_if(list.begin(), list.end(),
                       [](const Action& a) { return a.kind == ActionKind::kBackwardWeight; }),
        list.end());
  }
  return schedule;
}

Beyond BeyondLimits(const OrderLimits& limits, const Schedule& complete,
                    const PassLengths& lengths) {
  FreeMemory memory(limits, complete.num_devices());
  for (int d = 0; d < complete.num_devices() && !limits.free.empty(); ++d) {
    for (const Action& a : complete.order[d]) {
      if (!memory.Fits(d, a)) return Beyond::kMemory;
    }
  }
  if (limits.too_long == Nanoseconds(0)) return Beyond::kNothing;
  PassLengths least = lengths;
  for (int64_t& hop : least.hop) hop = std::min(hop, limits.hop.value());
  return Makespan(complete, least) >= limits.too_long.value() ? Beyond::kTime : Beyond::kNothing;
}

int HeldFromForwardToInput(const Schedule& guide) {
  return MostBetween(guide, ActionKind::kForward, ActionKind::kBackwardInput);
}

int HeldFromInputToWeight(const Schedule& complete) {
  return MostBetween(complete, ActionKind::kBackwardInput, ActionKind::kBackwardWeight);
}

}  // namespace pipelab
