#include "experiments/modern/primus_timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/report/median.h"
#include "nlohmann/json.hpp"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr double kTimeline = 0.02;  // the bar, which was set before the run was first simulated
constexpr int64_t kMostSteps = 10000, kMostMicroBatches = 4096, kMostRanks = 512;
constexpr double kMostMilliseconds = 1e9;

absl::StatusOr<std::vector<double>> PrimusTimes(const JsonObject& step, const char* key,
                                                int64_t count) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, step.List(key));
  std::vector<double> times;
  for (const nlohmann::json& number : *list) {
    const double ms = number.is_number() ? number.get<double>() : -1;
    if (!(ms >= 0 && ms <= kMostMilliseconds)) {
      return step.Error(key, "must have times in ms, not ", number.dump());
    }
    times.push_back(ms);
  }
  if (static_cast<int64_t>(times.size()) != count) {
    return step.Error(key, "must have ", count, " times, one a micro-batch, not ", times.size());
  }
  return times;
}

absl::StatusOr<std::vector<PrimusPass>> PrimusPasses(const JsonObject& step, const char* starts,
                                                     const char* ends, int64_t count) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> start, PrimusTimes(step, starts, count));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> end, PrimusTimes(step, ends, count));
  std::vector<PrimusPass> passes;
  for (size_t i = 0; i < start.size(); ++i) {
    if (end[i] < start[i]) return step.Error(ends, "pass ", i, " must not end before it begins");
    passes.push_back({start[i], end[i]});
  }
  return passes;
}

const PrimusPass& PassOf(const PrimusRun& run, int step, const Action& action) {
  const PrimusRankStep& of = run.ranks[action.stage][step];
  return (action.kind == ActionKind::kForward ? of.forwards : of.backwards)[action.micro_batch];
}

Nanoseconds FromMs(double ms) { return Nanoseconds(std::llround(1e6 * ms)); }

// A measured trace: passes as they were, and nothing else.
Trace TraceOf(const PrimusRun& run, const Program& program, int step) {
  Trace trace;
  trace.origin = TraceOrigin::kMeasured;
  for (const std::vector<Instruction>& list : program.instructions) {
    DeviceTrace& device = trace.devices.emplace_back();
    for (const Instruction& i : list) {
      Span span;
      if (i.op == OpCode::kCompute) {
        const PrimusPass& pass = PassOf(run, step, i.action);
        span.begin_ns = FromMs(pass.start).value();
        span.end_ns = FromMs(pass.end).value();
        span.cpu_ns = span.end_ns - span.begin_ns;
      }
      device.spans.push_back(span);
    }
  }
  return trace;
}

// The mean over passes of how far their begins are off.
double StartError(const Program& program, const Trace& simulated, const Trace& measured) {
  double sum = 0;
  int64_t passes = 0;
  for (size_t d = 0; d < simulated.devices.size(); ++d) {
    const DeviceSpans ours = SpansOf(program, simulated, d);
    for (size_t i = 0; i < ours.size(); ++i) {
      if (ours[i].op != OpCode::kCompute) continue;
      const int64_t off = ours[i].begin_ns - measured.devices[d].spans[i].begin_ns;
      sum += std::abs(static_cast<double>(off)) / 1e6;
      ++passes;
    }
  }
  return sum / static_cast<double>(passes);
}

// The median is over all steps and micro-batches of a rank.
Nanoseconds MedianPass(const PrimusRank& rank,
                       const std::vector<PrimusPass> PrimusRankStep::*passes) {
  std::vector<double> times;
  for (const PrimusRankStep& step : rank) {
    for (const PrimusPass& pass : step.*passes) times.push_back(pass.end - pass.start);
  }
  return FromMs(MedianOf(std::move(times)));
}

CostTable MedianCosts(const PrimusRun& run, const Schedule& schedule) {
  CostTable costs = CostTable::Unit(schedule);
  for (size_t stage = 0; stage < run.ranks.size(); ++stage) {
    StageCost& cost = costs.stages[stage];
    cost.forward = MedianPass(run.ranks[stage], &PrimusRankStep::forwards);
    cost.backward_input = MedianPass(run.ranks[stage], &PrimusRankStep::backwards);
    cost.backward_weight = Nanoseconds(0);  // part of the backward
  }
  return costs;
}

}  // namespace

double PrimusRun::Milliseconds(int step) const {
  double most = 0;
  for (const PrimusRank& rank : ranks) most = std::max(most, rank[step].total);
  return most;
}

absl::StatusOr<PrimusRank> ParsePrimusRank(absl::string_view text, absl::string_view what,
                                           int64_t steps, int64_t micro_batches) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Root(json, what));
  PrimusRank rank;
  for (int64_t number = 2; number <= steps; ++number) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject step, root.Object(absl::StrCat(number)));
    PrimusRankStep& read = rank.emplace_back();
    PIPELAB_ASSIGN_OR_RETURN(read.total, step.Number("total"));
    PIPELAB_ASSIGN_OR_RETURN(read.forwards,
                             PrimusPasses(step, "fwd_start", "fwd_end", micro_batches));
    PIPELAB_ASSIGN_OR_RETURN(read.backwards,
                             PrimusPasses(step, "bwd_start", "bwd_end", micro_batches));
    if (!(read.total > 0)) return step.Error("total", "must be above 0");
  }
  return rank;
}

absl::StatusOr<PrimusRun> ReadPrimusRun(const std::string& folder) {
  const std::string path = JoinPath(folder, "config.json");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json json, FaultOfFile(ParseJson(text, path)));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject config, FaultOfFile(JsonObject::Root(json, path)));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t ranks,
                           FaultOfFile(config.Integer("pp_size", 1, kMostRanks)));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t micro_batches,
                           FaultOfFile(config.Integer("num_mbs", 1, kMostMicroBatches)));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t steps,
                           FaultOfFile(config.Integer("train_iters", 2, kMostSteps)));
  PrimusRun run;
  run.micro_batches = static_cast<int>(micro_batches);
  for (int64_t r = 0; r < ranks; ++r) {
    const std::string file = JoinPath(folder, absl::StrCat("pp_rank_", r, ".json"));
    PIPELAB_ASSIGN_OR_RETURN(const std::string passes, ReadFile(file));
    PIPELAB_ASSIGN_OR_RETURN(PrimusRank rank,
                             FaultOfFile(ParsePrimusRank(passes, file, steps, micro_batches)));
    run.ranks.push_back(std::move(rank));
  }
  return run;
}

absl::StatusOr<PrimusTimeline> ReplayPrimus(const PrimusRun& run) {
  SchemeParams sizes;
  sizes.devices = static_cast<int>(run.ranks.size());
  sizes.micro_batches = run.micro_batches;
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule("1f1b", sizes));
  LoweringOptions lowering;
  lowering.step = false;  // steps were timed to the last backward
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(std::move(schedule), lowering));
  PIPELAB_ASSIGN_OR_RETURN(const Trace of_medians,
                           Simulate(program, MedianCosts(run, program.schedule)));
  PrimusReplay own = {"each step's own"}, medians = {"each stage's median"};
  const double share = 1.0 / run.steps();
  for (int step = 0; step < run.steps(); ++step) {
    const Trace measured = TraceOf(run, program, step);
    PIPELAB_ASSIGN_OR_RETURN(const Trace replayed, Replay(program, {measured}));
    own.measured += run.Milliseconds(step) * share;
    own.simulated += ToMilliseconds(replayed.makespan) * share;
    own.start_error += StartError(program, replayed, measured) * share;
    medians.start_error += StartError(program, of_medians, measured) * share;
  }
  medians.measured = own.measured;
  medians.simulated = ToMilliseconds(of_medians.makespan);
  return PrimusTimeline{own, medians};
}

Table PrimusTimelineTable(const PrimusTimeline& timeline) {
  Table t("primus", "Primus, a step of 1F1B from its passes' durations");
  t.AddKey("times", "durations");
  t.AddColumn({"measured", "measured, mean", "", "ms", Origin::kPublished, 1});
  t.AddColumn({"replayed", "replayed", "", "ms", Origin::kReplayed, 1});
  t.AddColumn({"error", "replayed against measured", "error", "%", Origin::kComputed, 2});
  t.AddColumn({"starts", "begins of passes, mean error", "", "ms", Origin::kComputed, 1});
  for (const PrimusReplay& r : timeline) {
    t.AddRow({Label(r.times), Published(r.measured, "read"), Replayed(r.simulated),
              Computed(100 * r.error()), Computed(r.start_error)});
  }
  return t;
}

Claim PrimusTimelineClaim(const PrimusTimeline& timeline) {
  Claim c = OwnClaim("primus.timeline", "a step of 1F1B from the durations of its passes, Primus");
  c.unit = "%";
  if (timeline.empty()) {
    NotMade(&c, "no run could be read");
    return c;
  }
  const PrimusReplay &own = timeline[0], &medians = timeline[1];
  Found(&c, Origin::kReplayed, 100 * own.error(),
        absl::StrFormat("%+.1f %%, begins %.0f ms off; with each stage's median %+.1f %%",
                        100 * own.error(), own.start_error, 100 * medians.error()));
  MetIf(&c, std::abs(own.error()) <= kTimeline, absl::StrFormat("within %.0f %%", 100 * kTimeline),
        "what a rank does between two passes was not recorded");
  return c;
}

}  // namespace pipelab
