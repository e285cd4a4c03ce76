#include "experiments/grids/megatron_losses.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pipelines/step/execution.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A configuration of Megatron-LM's with some of its losses.
struct Losses {
  uint32_t execution = 0;
  bool launch_gaps = false, gathers = false, late_sums = false;
};

struct Loss {
  const char* name;
  std::function<void(bool on, Losses*)> set;
  Losses beside;  // what it needs to be there at all
};

Loss PartLoss(const char* name, uint32_t part) {
  return {name,
          [part](bool on, Losses* l) { l->execution = (l->execution & ~part) | (on ? part : 0); },
          {}};
}

std::vector<Loss> AllLosses() {
  Losses late, calls;
  late.late_sums = calls.late_sums = true;
  calls.execution = kGroupedCalls;
  Loss grouped = PartLoss("messages in calls, beside which nothing runs", kGroupedCalls);
  grouped.beside = late;
  return {grouped,
          {"launch gap after each call", [](bool on, Losses* l) { l->launch_gaps = on; }, calls},
          {"gather of each message", [](bool on, Losses* l) { l->gathers = on; }, calls},
          PartLoss("all forwards first", kAllForwardsFirst),
          PartLoss("broadcast of inputs", kInputBroadcasts),
          {"gradients summed at the end", [](bool on, Losses* l) { l->late_sums = on; }, {}},
          PartLoss("sums that the optimizer waits for", kStepChecks),
          PartLoss("passes over gradients and weights", kStepPasses)};
}

absl::StatusOr<Nanoseconds> StepTime(const StepModel& model, StepConfig c, const Losses& losses) {
  c.execution = losses.execution;
  // Calls overlap nothing in any case.
  c.overlap_data = !losses.late_sums && (c.execution & kGroupedCalls) == 0;
  PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(model, c));
  if (!losses.launch_gaps) step.costs.launch_gap = Nanoseconds(0);
  if (!losses.gathers) step.costs.message_gather = PathCost();
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  return p.step_time;
}

double GainOver(Nanoseconds slow, Nanoseconds fast) { return ToPercent(slow / fast - 1); }

}  // namespace

absl::StatusOr<Table> MegatronLossesTable(const StepModel& model, const RankedStep& megatron,
                                          Nanoseconds breadth_first) {
  Table t("megatron_losses", "What Megatron-LM of 2022 loses, each loss alone and all but it");
  t.AddKey("loss");
  const Origin simulated = Origin::kSimulated, computed = Origin::kComputed;
  t.AddColumn({"alone", "step with it alone", "alone", "ms", simulated, 1});
  t.AddColumn({"adds", "it adds alone", "adds", "ms", simulated, 1});
  t.AddColumn({"without", "step with all but it", "without", "ms", simulated, 1});
  t.AddColumn({"takes", "it adds to all the others", "takes", "ms", simulated, 1});
  t.AddColumn({"gain", "breadth-first's gain over all but it", "gain", "%", computed, 1});
  t.AddColumn({"explains", "points of its gain over all", "points", "points", computed, 1});
  const Losses none, all = {kAllExecutionParts, true, true, true};
  PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds bare, StepTime(model, megatron.config, none));
  PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds whole, StepTime(model, megatron.config, all));
  const double gain = GainOver(whole, breadth_first);
  const auto end_of_row = [&](Nanoseconds without) {
    const double rest = GainOver(without, breadth_first);
    return std::make_pair(Computed(rest), Computed(gain - rest));
  };
  double sum = 0;
  for (const Loss& loss : AllLosses()) {
    Losses alone = loss.beside, but = all;
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds before, StepTime(model, megatron.config, alone));
    loss.set(true, &alone);
    loss.set(false, &but);
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds with, StepTime(model, megatron.config, alone));
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds without, StepTime(model, megatron.config, but));
    sum += ToMs(with - before);
    t.AddRow({Label(loss.name), Simulated(ToMs(with)), Simulated(ToMs(with - before)),
              Simulated(ToMs(without)), Simulated(ToMs(whole - without)), end_of_row(without).first,
              end_of_row(without).second});
  }
  t.AddRow({Label("all"), Simulated(ToMs(whole)), Simulated(ToMs(whole - bare)),
            Simulated(ToMs(bare)), Simulated(ToMs(whole - bare)), end_of_row(bare).first,
            end_of_row(bare).second});
  t.AddNote(absl::StrFormat(
      "%s. Breadth-first gains %.1f %% over it, of the published 43 %%. Without any of them the "
      "step "
      "takes %.1f ms, with all %.1f ms: %.1f ms more, where the "
      "losses alone add up to %.1f ms. Breadth-first's best takes %.1f ms. Gaps and gathers are "
      "there in calls alone, so without calls they are gone, too, and alone they are those of "
      "calls; where messages are on their own, their gather is latency beside compute. \"All but "
      "it\" of the last row is none.",
      megatron.config.ToString(), gain, ToMs(bare), ToMs(whole), ToMs(whole - bare), sum,
      ToMs(breadth_first)));
  return t;
}

}  // namespace pipelab
