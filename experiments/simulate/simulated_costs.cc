#include "experiments/simulate/simulated_costs.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "experiments/simulate/decimal.h"
#include "experiments/simulate/links_file.h"
#include "experiments/simulate/user_file.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// One option: a time for each stage.
using Times = std::vector<Decimal>;

constexpr int kRoundedDecimals = 6;
constexpr int64_t kMostParts = 1'000'000;
constexpr double kMostSpeed = 1e6;

class Maker {
 public:
  Maker(const Program& program, const SimulatedTimes& times) : program_(program), times_(times) {}

  absl::StatusOr<SimulatedCosts> Make() {
    PIPELAB_RETURN_IF_ERROR(CheckUsed());
    PIPELAB_RETURN_IF_ERROR(ParseTimes());
    paper_.costs = CostTable::Unit(program_.schedule);
    PIPELAB_RETURN_IF_ERROR(SetSpeeds());
    if (!times_.bytes.empty() || !times_.bandwidth.empty() || !times_.links.empty()) {
      decimals_ = std::max(decimals_, kRoundedDecimals);
    }
    parts_ = Parts();
    if (parts_ == 0) {
      parts_ = program_.schedule.num_slices;
      decimals_ = std::max(decimals_, kRoundedDecimals);
    }
    paper_.nanoseconds_per_unit = PowerOfTen(decimals_) * parts_;
    PIPELAB_RETURN_IF_ERROR(CheckFits(Longest(0)));  // before anything is scaled
    SetTimes();
    PIPELAB_RETURN_IF_ERROR(SetMessages());
    PIPELAB_RETURN_IF_ERROR(CheckFits(Longest(LongestMessage())));
    return std::move(paper_);
  }

 private:
  // Stage times first, then single ones.
  enum Option { kForward, kInput, kWeight, kRecompute, kStep, kHop, kReduce, kOptions };

  // What would change nothing is a misunderstanding.
  absl::Status CheckUsed() const {
    const auto unused = [](absl::string_view option, const auto& value, absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(option, "=", value, ": ", why));
    };
    const std::vector<bool> recomputed = program_.schedule.RecomputedStages();
    if (!times_.recompute_time.empty() &&
        std::find(recomputed.begin(), recomputed.end(), true) == recomputed.end()) {
      return unused("--recompute_time", times_.recompute_time,
                    "the schedule recomputes nothing; --recompute makes a scheme do so");
    }
    if (!times_.bandwidth.empty() && times_.bytes.empty()) {
      return unused("--bandwidth", times_.bandwidth, "requires --bytes, the size of a message");
    }
    if (times_.memory.optimizer_tensors != SimulatedMemory().optimizer_tensors &&
        times_.memory.weights.empty()) {
      return unused("--optimizer_tensors", times_.memory.optimizer_tensors,
                    "requires --weights, the size that it multiplies");
    }
    return absl::OkStatus();
  }

  absl::Status ParseTimes() {
    const std::pair<absl::string_view, const std::string*> options[kOptions] = {
        {"--forward", &times_.forward},
        {"--backward_input", &times_.backward_input},
        {"--backward_weight", &times_.backward_weight},
        {"--recompute_time", &times_.recompute_time},
        {"--step", &times_.step},
        {"--p2p_latency", &times_.hop},
        {"--reduce", &times_.reduce}};
    decimals_ = times_.least_decimals;
    for (int o = 0; o < kOptions; ++o) {
      const auto& [option, value] = options[o];
      // The flags that may be empty: a recompute is a forward, the others are not there.
      const bool empty =
          value->empty() && o != kForward && o != kInput && o != kWeight && o != kHop;
      const std::string& text = empty ? (o == kRecompute ? times_.forward : kNone) : *value;
      PIPELAB_ASSIGN_OR_RETURN(
          parsed_[o],
          ParseDecimals(option, text, program_.schedule.num_stages(), o < kHop ? "stage" : ""));
      for (const Decimal& d : parsed_[o]) decimals_ = std::max(decimals_, d.decimals);
    }
    return absl::OkStatus();
  }

  // What a stage's time must be divisible by: a slice takes 1 / slices of it, a device of a group
  // its share of the rows, and each must be whole nanoseconds. 0: no such number is of any use.
  int64_t Parts() const {
    const Schedule& s = program_.schedule;
    int64_t parts = 1;
    for (const auto& replica : s.placement.groups) {
      for (const std::vector<int>& group : replica) {
        parts = std::lcm(parts, static_cast<int64_t>(group.size()));
        if (parts > kMostParts) return 0;
      }
    }
    return parts * s.num_slices;
  }
  Nanoseconds Scaled(const Decimal& d) const {
    return Nanoseconds(d.digits * PowerOfTen(decimals_ - d.decimals)) * parts_;
  }

  absl::Status SetSpeeds() {
    if (times_.device_speed.empty()) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<Decimal> speeds,
                             ParseDecimals("--device_speed", times_.device_speed,
                                           program_.schedule.num_devices(), "device"));
    for (const Decimal& d : speeds) {
      if (d.value() < 1 / kMostSpeed || d.value() > kMostSpeed) {
        return absl::InvalidArgumentError(absl::StrCat("--device_speed=", times_.device_speed,
                                                       ": must be from 0.000001 to 1000000"));
      }
      paper_.costs.device_speed.push_back(d.value());
      slowest_ = std::min(slowest_, d.value());
    }
    decimals_ = std::max(decimals_, kRoundedDecimals);
    return absl::OkStatus();
  }

  void SetTimes() {
    for (int stage = 0; stage < program_.schedule.num_stages(); ++stage) {
      StageCost& cost = paper_.costs.stages[stage];
      const auto own = [this, stage](Option option) {  // one device's share of the rows
        const Schedule& s = program_.schedule;
        return Nanoseconds(Scaled(parsed_[option][stage]).value() * s.MicroBatchSize(stage) /
                           s.GroupSize(stage));
      };
      cost.forward = own(kForward);
      cost.backward_input = own(kInput);
      cost.backward_weight = own(kWeight);
      cost.recompute = own(kRecompute);
      cost.step = Scaled(parsed_[kStep][stage]);
    }
    paper_.costs.hop_latency = Scaled(parsed_[kHop][0]);
    paper_.costs.reduce = Scaled(parsed_[kReduce][0]);
    paper_.costs.overlap = times_.overlap;
  }

  absl::Status SetMessages() {
    CostTable& costs = paper_.costs;
    const double per_unit = static_cast<double>(paper_.nanoseconds_per_unit);
    if (!times_.bytes.empty()) {
      const int edges = static_cast<int>(program_.schedule.stages.edges.size());
      PIPELAB_ASSIGN_OR_RETURN(costs.edge_bytes,
                               ParseByteCounts("--bytes", times_.bytes, edges, "edge"));
    }
    if (times_.has_bytes()) {
      PIPELAB_RETURN_IF_ERROR(SetSimulatedMemory(program_, times_.memory, &costs));
    }
    if (!times_.bandwidth.empty()) {
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<Bytes> bytes,
                               ParseByteCounts("--bandwidth", times_.bandwidth, 1, ""));
      if (bytes[0] == Bytes(0)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--bandwidth=", times_.bandwidth, ": must be above 0"));
      }
      costs.bandwidth = BytesPerSecond(static_cast<double>(bytes[0].value()) * 1e9 / per_unit);
    }
    if (times_.links.empty()) return absl::OkStatus();
    const std::string what = absl::StrCat("--links=", times_.links);
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--links", times_.links));
    const Link own{"", costs.hop_latency, costs.bandwidth};
    PIPELAB_ASSIGN_OR_RETURN(
        costs.network,
        FaultOfFile(ParseLinks(text, what, program_.schedule.num_devices(), own, per_unit)));
    return absl::OkStatus();
  }

  // The longest of any action or message, in nanoseconds.
  double Longest(double longest) const {
    for (const Times& times : parsed_) {
      for (const Decimal& d : times) {
        longest = std::max(longest, d.value() * static_cast<double>(PowerOfTen(decimals_)) *
                                        static_cast<double>(parts_));
      }
    }
    return longest / slowest_;
  }

  double LongestMessage() const {
    double bytes = 0, slowest_link = paper_.costs.bandwidth.value(), latency = 0;
    for (Bytes b : paper_.costs.edge_bytes) bytes = std::max(bytes, static_cast<double>(b.value()));
    for (const Link& link : paper_.costs.network.links) {
      latency += static_cast<double>(link.latency.value());
      const double rate = link.bandwidth.value();
      if (rate > 0 && (slowest_link == 0 || rate < slowest_link)) slowest_link = rate;
    }
    return latency + (slowest_link > 0 ? bytes * 1e9 / slowest_link : 0);
  }

  // Everything one after another must fit 63 bits: no timeline is longer.
  absl::Status CheckFits(double longest) const {
    int size = 1;
    double count = static_cast<double>(program_.messages.size() + program_.reductions.size());
    for (const auto& list : program_.schedule.order) {
      count += 2 * static_cast<double>(list.size()) + program_.schedule.num_stages();
    }
    // `longest` is of one of the smallest micro-batches.
    for (int stage = 0; stage < program_.schedule.num_stages(); ++stage) {
      size = std::max(size, program_.schedule.MicroBatchSize(stage));
    }
    if (longest * size * count < 9e18) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--forward, --backward_input, --backward_weight, --p2p_latency or what else "
                     "takes time: too large "
                     "or too fine for ",
                     static_cast<int64_t>(count),
                     " actions; use a larger unit or fewer digits after the point"));
  }

  const std::string kNone = "0";
  const Program& program_;
  const SimulatedTimes& times_;
  Times parsed_[kOptions];
  int decimals_ = 0;
  int64_t parts_ = 1;
  double slowest_ = 1;
  SimulatedCosts paper_;
};

}  // namespace

absl::StatusOr<SimulatedCosts> MakeSimulatedCosts(const Program& program,
                                                  const SimulatedTimes& times) {
  return Maker(program, times).Make();
}

}  // namespace pipelab
