#include "experiments/synthesis/real_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "experiments/calibration/link_times.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kDevices = 4, kMicroBatches = 12, kSkippedSteps = 2;
constexpr int kMostHeld = 4;  // activations a device, as under zb1p

struct TrainedRun {
  std::unique_ptr<PipelineTraining> training;
  std::vector<Trace> traces;
  std::vector<double> losses;
};

absl::StatusOr<TrainedRun> Train(const ModelGraph& gpt, const TextBatchSource& text,
                                 const TrainingOptions& options, int steps) {
  TrainedRun run;
  PIPELAB_ASSIGN_OR_RETURN(run.training, PipelineTraining::Create(gpt, text, options));
  for (int i = 0; i < steps; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(TrainingStep step, run.training->Step());
    run.losses.push_back(step.loss);
    if (i >= kSkippedSteps) run.traces.push_back(std::move(step.trace));
  }
  return run;
}

struct ReplayedRun {
  CostTable costs;
  double passes_ms = 0;  // from the first pass's begin to the last one's end
};

absl::StatusOr<ReplayedRun> ReplayPasses(const TrainedRun& run, Nanoseconds hop) {
  ReplayedRun replayed;
  CostTable base = run.training->costs();
  base.hop_latency = hop;
  PIPELAB_ASSIGN_OR_RETURN(replayed.costs,
                           ReplayCosts(run.training->program(), run.traces, std::move(base)));
  PIPELAB_ASSIGN_OR_RETURN(
      const Trace trace, Simulate(run.training->program(), replayed.costs, TraceOrigin::kReplayed));
  int64_t begin = trace.makespan.value(), end = 0;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& span : SpansOf(run.training->program(), trace, d)) {
      if (span.op != OpCode::kCompute) continue;
      begin = std::min(begin, span.begin_ns);
      end = std::max(end, span.end_ns);
    }
  }
  replayed.passes_ms = static_cast<double>(end - begin) * 1e-6;
  return replayed;
}

// The mean over micro-batches of what the replay gives each: so a stage's work is as measured.
SynthesisProblem ReplayedProblem(const Program& program, const ReplayedRun& replayed,
                                 Nanoseconds hop) {
  SynthesisProblem p = UnitProblem(kDevices, kMicroBatches, LoopedDevices(kDevices, 1));
  for (auto* list : {&p.lengths.forward, &p.lengths.backward_input, &p.lengths.backward_weight}) {
    list->assign(kDevices, 0);
  }
  for (int d = 0; d < kDevices; ++d) {
    for (size_t i = 0; i < program.instructions[d].size(); ++i) {
      const Instruction& instruction = program.instructions[d][i];
      const int64_t time = replayed.costs.instruction_time[d][i].value();
      const int stage = instruction.action.stage;
      if (instruction.op != OpCode::kCompute) continue;
      (instruction.action.kind == ActionKind::kForward ? p.lengths.forward
       : instruction.action.kind == ActionKind::kBackwardInput
           ? p.lengths.backward_input
           : p.lengths.backward_weight)[stage] += time;
    }
  }
  for (auto* list : {&p.lengths.forward, &p.lengths.backward_input, &p.lengths.backward_weight}) {
    for (int64_t& time : *list) time /= kMicroBatches;
  }
  p.lengths.hop.assign(kDevices, hop.value());
  p.limits.free.assign(kDevices, Bytes(kMostHeld));
  return p;
}

}  // namespace

absl::StatusOr<RealOrder> RunRealOrder(int steps) {
  PIPELAB_ASSIGN_OR_RETURN(TextData text, MakeTextData(SyntheticCorpus(1 << 18, 1), 64, 1));
  GptConfig config;
  config.layers = 6;
  config.hidden = 128;
  config.heads = 4;
  config.tokens = 64;
  config.vocabulary = text.train->vocabulary();
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph gpt, BuildGpt(config));
  LinkTimesOptions link;
  link.large_bytes = 0;
  PIPELAB_ASSIGN_OR_RETURN(const LinkTimes times, MeasureLink(link));
  const Nanoseconds hop(std::llround(times.latency_seconds * 1e9));

  TrainingOptions options;
  options.config.scheme = "zb1p";
  options.config.pipeline = kDevices;
  options.config.micro_batches = kMicroBatches;
  options.config.micro_batch_size = 8;
  PIPELAB_ASSIGN_OR_RETURN(const TrainedRun before, Train(gpt, *text.train, options, steps));
  PIPELAB_ASSIGN_OR_RETURN(const ReplayedRun first, ReplayPasses(before, hop));
  const SynthesisProblem problem = ReplayedProblem(before.training->program(), first, hop);
  SynthesisOptions search;
  search.rounds = 6;
  PIPELAB_ASSIGN_OR_RETURN(const Synthesis found, Synthesize(problem, search));

  options.schedule = ScheduleOf(problem, found.proof.words);
  PIPELAB_ASSIGN_OR_RETURN(const TrainedRun after, Train(gpt, *text.train, options, steps));
  PIPELAB_ASSIGN_OR_RETURN(const ReplayedRun second, ReplayPasses(after, hop));
  RealOrder real;
  real.promised_ms = static_cast<double>(found.proof.makespan) * 1e-6;
  real.replayed_ms = second.passes_ms;
  real.catalogue_ms = first.passes_ms;
  real.same_losses = before.losses == after.losses;
  return real;
}

Table RealOrderTable(const RealOrder& real) {
  Table t("real_order", "A small GPT on four devices of this process: time of all passes");
  t.AddKey("order");
  t.AddColumn({.metric = "promised",
               .title = "promised",
               .unit = "ms",
               .origin = Origin::kComputed,
               .decimals = 3});
  t.AddColumn({.metric = "replayed",
               .title = "replayed",
               .unit = "ms",
               .origin = Origin::kReplayed,
               .decimals = 3});
  t.AddRow({Label("zb1p"), Missing("its passes are what the other is made for"),
            Replayed(real.catalogue_ms)});
  t.AddRow({Label("synthesized"), Computed(real.promised_ms), Replayed(real.replayed_ms)});
  return t;
}

Claim RealOrderClaim(const RealOrder& real) {
  Claim c = OwnClaim("synthesis.promise_kept",
                     "a synthesized order on four in-process devices: replayed over promised - 1");
  c.unit = "%";
  const double error = 100 * (real.replayed_ms / real.promised_ms - 1);
  Found(&c, Origin::kReplayed, error,
        absl::StrFormat("%+.1f %%, losses %s zb1p's", error,
                        real.same_losses ? "the same bits as" : "other than"));
  MetIf(&c, std::abs(error) <= 10 && real.same_losses, "within 10 %, the same losses",
        "passes took longer or shorter in the second run than in the first");
  return c;
}

}  // namespace pipelab
