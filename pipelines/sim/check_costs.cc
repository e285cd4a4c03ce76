#include "pipelines/sim/check_costs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "pipelines/cluster/network.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kTooLongPayload = "pipelab.too_long";

absl::Status CheckSpeeds(const std::vector<double>& speeds, int devices) {
  if (!speeds.empty() && static_cast<int>(speeds.size()) != devices) {
    return absl::InvalidArgumentError(absl::StrCat("the cost table has speeds of ", speeds.size(),
                                                   " devices, the schedule has ", devices));
  }
  for (size_t d = 0; d < speeds.size(); ++d) {
    if (speeds[d] > 0 && std::isfinite(speeds[d])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("device ", d, ": a speed of ", speeds[d], " is not above 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckReleases(const Schedule& s, const CostTable& costs) {
  constexpr Nanoseconds kMost(int64_t{1} << 61);
  if (costs.releases.empty()) return absl::OkStatus();
  if (static_cast<int>(costs.releases.size()) != s.num_micro_batches) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost table has arrivals of ", costs.releases.size(),
                     " micro-batches, the schedule has ", s.num_micro_batches));
  }
  for (const Nanoseconds at : costs.releases) {
    if (at >= Nanoseconds(0) && at <= kMost) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a micro-batch arrives at ", at.value(), " ns; it must be from 0 to 2^61"));
  }
  return absl::OkStatus();
}

absl::Status CheckSlices(const Schedule& s, const CostTable& costs) {
  const int parts = costs.of_passes ? s.num_micro_batches : s.num_slices;
  if (!costs.slices.empty() && static_cast<int>(costs.slices.size()) != parts) {
    return absl::InvalidArgumentError(absl::StrCat("the cost table has ", costs.slices.size(),
                                                   costs.of_passes ? " passes" : " slices",
                                                   ", the schedule ", parts));
  }
  for (size_t i = 0; i < costs.slices.size(); ++i) {
    if (costs.slices[i].stages.size() == costs.stages.size() &&
        costs.slices[i].edge_bytes.size() == costs.edge_bytes.size()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("slice ", i, ": the cost table has ", costs.slices[i].stages.size(),
                     " stages and ", costs.slices[i].edge_bytes.size(), " edges, the schedule ",
                     s.num_stages(), " and ", s.stages.edges.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFits(const Program& p, const CostTable& costs) {
  const Schedule& s = p.schedule;
  if (static_cast<int>(costs.stages.size()) != s.num_stages()) {
    return absl::InvalidArgumentError(absl::StrCat("the cost table has ", costs.stages.size(),
                                                   " stages, the schedule ", s.num_stages()));
  }
  if (costs.edge_bytes.size() != s.stages.edges.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the cost table has ", costs.edge_bytes.size(),
                                                   " edges, the schedule ", s.stages.edges.size()));
  }
  if (!costs.edge_latency.empty() && costs.edge_latency.size() != costs.edge_bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost table has latencies of ", costs.edge_latency.size(),
                     " edges, the schedule ", s.stages.edges.size(), " edges"));
  }
  for (const EdgeLatency& latency : costs.edge_latency) {
    if (latency.forward >= Nanoseconds(0) && latency.gradient >= Nanoseconds(0)) continue;
    return absl::InvalidArgumentError("the cost table has a negative latency of an edge");
  }
  if (costs.bandwidth < BytesPerSecond(0) || costs.hop_latency < Nanoseconds(0) ||
      costs.host_bandwidth < BytesPerSecond(0)) {
    return absl::InvalidArgumentError("the cost table has a negative bandwidth or latency");
  }
  if (!costs.network.empty()) {
    PIPELAB_RETURN_IF_ERROR(CheckNetwork(costs.network));
    if (costs.network.num_devices != s.num_devices()) {
      return absl::InvalidArgumentError(absl::StrCat("the network has ", costs.network.num_devices,
                                                     " devices, the schedule ", s.num_devices()));
    }
  }
  PIPELAB_RETURN_IF_ERROR(CheckSlices(s, costs));
  PIPELAB_RETURN_IF_ERROR(CheckSpeeds(costs.device_speed, s.num_devices()));
  PIPELAB_RETURN_IF_ERROR(CheckReleases(s, costs));
  if (costs.instruction_time.empty()) return absl::OkStatus();
  if (costs.instruction_time.size() != p.instructions.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost table has instruction times of ", costs.instruction_time.size(),
                     " devices, the program ", p.instructions.size()));
  }
  for (size_t d = 0; d < p.instructions.size(); ++d) {
    if (costs.instruction_time[d].size() == p.instructions[d].size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "device ", d, ": the cost table has ", costs.instruction_time[d].size(),
        " instruction times, the program ", p.instructions[d].size(), " instructions"));
  }
  return absl::OkStatus();
}

Nanoseconds LongestTime(const Program& p) {
  size_t parts = p.messages.size() + p.reductions.size() + p.gathers.size() + 1;
  for (const auto& list : p.instructions) parts += list.size();
  return Nanoseconds(static_cast<int64_t>((uint64_t{1} << 62) / parts));
}

absl::Status LongerThan(Nanoseconds most, absl::string_view what) {
  return TooLong(absl::StrCat(what, " longer than the simulator can count, which is up to ",
                              ToString(most), " with as many actions and messages"));
}

absl::Status TooLong(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kTooLongPayload, absl::Cord("1"));
  return status;
}

bool IsTooLong(const absl::Status& status) {
  return status.GetPayload(kTooLongPayload).has_value();
}

absl::Status CheckTimes(const Program& p, const CostTable& costs, Bytes copy, Nanoseconds most) {
  double slowest = 1;
  for (double speed : costs.device_speed) slowest = std::min(slowest, speed);
  const auto check = [&](int stage, const StageCost& c) {
    const Nanoseconds longest =
        std::max({c.forward, c.backward_input, c.backward_weight, c.recompute, c.step});
    if (static_cast<double>(longest.value()) / slowest * 2 <= most.value()) {
      return absl::OkStatus();
    }
    return LongerThan(
        Nanoseconds(most.value() / 2),
        absl::StrCat("stage ", stage, ": an action of ", ToString(longest),
                     slowest < 1 ? absl::StrCat(" on a device of speed ", slowest) : "", " takes"));
  };
  for (int stage = 0; stage < p.schedule.num_stages(); ++stage) {
    for (int slice = 0; slice < std::max<int>(1, costs.slices.size()); ++slice) {
      PIPELAB_RETURN_IF_ERROR(check(stage, costs.StageOf(stage, slice)));
    }
  }
  for (size_t i = 0; i < costs.exchanges.of_pass.size(); ++i) {
    PIPELAB_RETURN_IF_ERROR(
        check(p.exchanges[i].action.stage, costs.exchanges.costs[costs.exchanges.of_pass[i]]));
  }
  for (size_t n = 0; n < p.fills.size(); ++n) {
    if (p.fills[n].work <= most) continue;
    return LongerThan(most, absl::StrCat("fill ", n, ": ", ToString(p.fills[n].work), " are"));
  }
  const double host_rate = costs.host_bandwidth.value();
  if (host_rate > 0 &&
      static_cast<double>(copy.value()) / host_rate * 1e9 > static_cast<double>(most.value())) {
    return LongerThan(most, absl::StrCat("a copy of ", ToString(copy), " to the host takes"));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
