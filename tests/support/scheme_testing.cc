#include "tests/support/scheme_testing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/sim/simulate.h"

namespace pipelab {
namespace {

std::pair<Program, Trace> SimulateOrDie(const Schedule& schedule, const CostTable& costs) {
  absl::StatusOr<Program> program = Lower(schedule, {});
  CHECK(program.ok()) << program.status();
  absl::StatusOr<Trace> trace = Simulate(*program, costs);
  CHECK(trace.ok()) << trace.status();
  return {*std::move(program), *std::move(trace)};
}

bool HasSplitBackwards(const Schedule& schedule) {
  for (const std::vector<Action>& list : schedule.order) {
    for (const Action& a : list) {
      if (a.kind == ActionKind::kBackwardWeight) return true;
    }
  }
  return false;
}

char Mark(ActionKind kind) {
  if (kind == ActionKind::kForward) return ' ';
  return kind == ActionKind::kBackwardWeight ? '.' : '\'';
}

}  // namespace

Schedule MakeOrDie(absl::string_view scheme, const SchemeParams& params) {
  absl::StatusOr<Schedule> schedule = MakeSchedule(scheme, params);
  CHECK(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

std::string Picture(absl::string_view scheme, const SchemeParams& params) {
  const Schedule schedule = MakeOrDie(scheme, params);
  std::string picture = "\n";
  for (size_t d = 0; d < schedule.order.size(); ++d) {
    absl::StrAppend(&picture, d, ": ",
                    absl::StrJoin(schedule.order[d], " ",
                                  [](std::string* out, const Action& a) { *out += ToString(a); }),
                    "\n");
  }
  return picture;
}

std::string Timeline(const Schedule& schedule) {
  CostTable costs = CostTable::Unit(schedule, Nanoseconds(schedule.num_slices));
  if (!HasSplitBackwards(schedule)) {
    for (StageCost& stage : costs.stages) stage.backward_weight = Nanoseconds(0);
  }
  const auto [program, trace] = SimulateOrDie(schedule, costs);
  std::string picture = "\n";
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    std::string line(2 * trace.makespan.value(), ' ');
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
      if (span.op != OpCode::kCompute) continue;
      for (int64_t slot = span.begin_ns; slot < span.end_ns; ++slot) {
        line[2 * slot] = Mark(span.action.kind);
        const int item = span.action.micro_batch * schedule.num_slices + span.action.slice;
        line[2 * slot + 1] = absl::StrFormat("%x", item)[0];
      }
    }
    absl::StrAppend(&picture, line, "|\n");
  }
  return picture;
}

UnitFigures Figures(const Schedule& schedule) {
  const Nanoseconds unit(schedule.num_slices);  // a slice takes 1
  const auto [program, trace] = SimulateOrDie(schedule, CostTable::Unit(schedule, unit));
  UnitFigures figures;
  figures.makespan = trace.makespan.value();
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    int64_t busy = 0, begin = trace.makespan.value(), end = 0;
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
      if (span.op != OpCode::kCompute) continue;
      busy += span.end_ns - span.begin_ns;
      begin = std::min(begin, span.begin_ns);
      end = std::max(end, span.end_ns);
    }
    figures.span.push_back(end - begin);
    CHECK(d == 0 || busy == figures.busy) << "device " << d << " works " << busy;
    figures.busy = busy;
    figures.peak.push_back(trace.devices[d].peak_activation.value());
  }
  figures.idle = figures.makespan - figures.busy;
  return figures;
}

std::string Refusal(absl::string_view scheme, const SchemeParams& params) {
  const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme, params);
  if (schedule.ok()) return "not refused";
  CHECK_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(schedule.status().message());
}

std::vector<LoweringOptions> AllOptions(int num_stages) {
  std::vector<LoweringOptions> all;
  for (bool eager : {false, true}) {
    for (Sharding sharding :
         {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
      const bool runs = sharding == Sharding::kGradients || sharding == Sharding::kFully;
      for (bool overlap : {false, true}) {
        for (Residency residency : {Residency::kRun, Residency::kMicroBatch}) {
          if (!runs && (overlap || residency != Residency::kRun)) continue;
          LoweringOptions options;
          if (num_stages > 1) options.ties = {{"embedding", {0, num_stages - 1}}};
          options.eager_reductions = eager;
          options.sharding = sharding;
          options.overlap = overlap;
          options.residency = residency;
          options.norm_values = overlap != eager ? 7 : 0;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

}  // namespace pipelab
