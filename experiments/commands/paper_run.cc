#include "experiments/commands/paper_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/sim/atomic_pairs.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostDecimals = 9;
constexpr int64_t kMostDigits = int64_t{1000000000000000};  // 10^15

// digits / 10^decimals
struct Decimal {
  int64_t digits = 0;
  int decimals = 0;
};

absl::StatusOr<Decimal> ParseDecimal(absl::string_view text, absl::string_view option,
                                     absl::string_view value) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", value,
                     ": must be a decimal number such as 1.5, not negative, "
                     "with at most ",
                     kMostDecimals,
                     " digits after the point"
                     " and 15 in all, or one a stage, separated by commas"));
  };
  Decimal d;
  bool point = false, any = false;
  for (char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') return error();
    any = true;
    d.digits = d.digits * 10 + (c - '0');
    d.decimals += point ? 1 : 0;
    if (d.digits >= kMostDigits || d.decimals > 3 * kMostDecimals) return error();
  }
  // Zeros at the end cost nothing.
  while (d.decimals > 0 && d.digits % 10 == 0) {
    d.digits /= 10;
    --d.decimals;
  }
  if (!any || d.decimals > kMostDecimals) return error();
  return d;
}

// One option: a time for each stage.
struct Times {
  absl::string_view option;
  std::vector<Decimal> of_stage;
};

absl::StatusOr<Times> ParseTimes(absl::string_view option, const std::string& value, int stages) {
  Times times{option, {}};
  for (absl::string_view part : absl::StrSplit(value, ',')) {
    PIPELAB_ASSIGN_OR_RETURN(const Decimal d, ParseDecimal(part, option, value));
    times.of_stage.push_back(d);
  }
  if (times.of_stage.size() == 1) times.of_stage.resize(stages, times.of_stage[0]);
  if (static_cast<int>(times.of_stage.size()) != stages) {
    return absl::InvalidArgumentError(absl::StrCat(option, "=", value, ": ", times.of_stage.size(),
                                                   " times, but the schedule has ", stages,
                                                   " stages; give one time or one a stage"));
  }
  return times;
}

int64_t PowerOfTen(int n) {
  int64_t power = 1;
  for (; n > 0; --n) power *= 10;
  return power;
}

Nanoseconds Scaled(const Decimal& d, int decimals) {
  return Nanoseconds(d.digits * PowerOfTen(decimals - d.decimals));
}

// Everything one after another must fit 63 bits: no timeline is longer.
absl::Status CheckFits(const std::vector<Times>& all, const Program& program, int decimals) {
  double longest = 0;
  for (const Times& times : all) {
    for (const Decimal& d : times.of_stage) {
      longest = std::max(longest, static_cast<double>(d.digits) *
                                      static_cast<double>(PowerOfTen(decimals - d.decimals)));
    }
  }
  double count = static_cast<double>(program.messages.size());
  for (const auto& list : program.schedule.order) count += 2 * static_cast<double>(list.size());
  if (longest * count < 9e18) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(all[0].option, ", ", all[1].option, ", ", all[2].option, ", ", all[3].option,
                   ": too large or too fine for ", static_cast<int64_t>(count),
                   " actions; use a larger unit or fewer digits after the point"));
}

struct ScaledTimes {
  CostTable costs;
  int decimals = 0;
};

absl::StatusOr<ScaledTimes> Scale(const Program& program, const PaperTimes& times) {
  const int stages = program.schedule.num_stages();
  std::vector<Times> all;
  for (const auto& [option, value] : {std::make_pair("--forward", &times.forward),
                                      std::make_pair("--backward_input", &times.backward_input),
                                      std::make_pair("--backward_weight", &times.backward_weight),
                                      std::make_pair("--hop", &times.hop)}) {
    const bool hop = all.size() == 3;
    PIPELAB_ASSIGN_OR_RETURN(Times parsed, ParseTimes(option, *value, hop ? 1 : stages));
    all.push_back(std::move(parsed));
  }
  ScaledTimes scaled;
  scaled.decimals = times.least_decimals;
  for (const Times& t : all) {
    for (const Decimal& d : t.of_stage) scaled.decimals = std::max(scaled.decimals, d.decimals);
  }
  PIPELAB_RETURN_IF_ERROR(CheckFits(all, program, scaled.decimals));
  scaled.costs = CostTable::Unit(program.schedule);
  for (int stage = 0; stage < stages; ++stage) {
    StageCost& cost = scaled.costs.stages[stage];
    cost.forward = cost.recompute = Scaled(all[0].of_stage[stage], scaled.decimals);
    cost.backward_input = Scaled(all[1].of_stage[stage], scaled.decimals);
    cost.backward_weight = Scaled(all[2].of_stage[stage], scaled.decimals);
  }
  scaled.costs.hop_latency = Scaled(all[3].of_stage[0], scaled.decimals);
  return scaled;
}

bool IsCompute(const Span& s) {
  return s.op == OpCode::kCompute && s.action.kind != ActionKind::kStep;
}

}  // namespace

absl::StatusOr<PaperRun> RunOnPaper(Schedule schedule, const PaperTimes& times) {
  PaperRun run;
  LoweringOptions lowering;
  lowering.step = false;
  PIPELAB_ASSIGN_OR_RETURN(run.program, Lower(std::move(schedule), lowering));
  PIPELAB_ASSIGN_OR_RETURN(const ScaledTimes scaled, Scale(run.program, times));
  if (times.atomic_pairs) PairForwardBackward(&run.program);
  PIPELAB_ASSIGN_OR_RETURN(run.trace, Simulate(run.program, scaled.costs));
  run.nanoseconds_per_unit = PowerOfTen(scaled.decimals);
  return run;
}

Figures FiguresOf(const PaperRun& run) {
  // Whole nanoseconds to the end, then one division: 33 tenths are 3.3.
  const auto units = [&](int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(run.nanoseconds_per_unit);
  };
  int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
  for (const DeviceTrace& d : run.trace.devices) {
    for (const Span& s : d.spans) {
      if (!IsCompute(s)) continue;
      begin = std::min(begin, s.begin_ns);
      end = std::max(end, s.end_ns);
    }
  }
  const int64_t makespan = std::max<int64_t>(0, end - begin);
  Figures figures;
  figures.makespan = units(makespan);
  double idle = 0;
  for (const DeviceTrace& d : run.trace.devices) {
    int64_t busy = 0, first = -1, last = 0;
    for (const Span& s : d.spans) {
      if (!IsCompute(s)) continue;
      busy += s.end_ns - s.begin_ns;
      if (first < 0) first = s.begin_ns;
      last = s.end_ns;
    }
    DeviceFigures& device = figures.devices.emplace_back();
    device.busy = units(busy);
    device.idle = units(makespan - busy);
    device.span = first < 0 ? 0 : units(last - first);
    for (const InFlightPoint& p : InFlight(d)) {
      device.peak_in_flight = std::max(device.peak_in_flight, p.count);
    }
    idle += static_cast<double>(makespan - busy);
  }
  if (makespan > 0) {
    figures.bubble =
        idle / (static_cast<double>(makespan) * static_cast<double>(run.trace.devices.size()));
  }
  return figures;
}

}  // namespace pipelab
