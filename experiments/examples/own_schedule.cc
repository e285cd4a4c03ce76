// A schedule of one's own, from an order of actions to figures and a drawing; nothing but the paper
// side of pipelab, which links no kernels.
//
//   tools/bazel run //experiments/examples:own_schedule
#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/trace.h"
#include "pipelines/ir/validate.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Four micro-batches through two stages, in pairs.
Schedule InPairs() {
  Schedule s;
  s.name = "pairs";
  s.stages = StageGraph::Chain(2);
  s.num_micro_batches = 4;
  s.placement = Placement::Single({0, 1}, /*num_devices=*/2, s.num_micro_batches);
  s.order.resize(2);
  for (int16_t d = 0; d < 2; ++d) {
    for (int pair = 0; pair < 4; pair += 2) {
      for (int m : {pair, pair + 1}) s.order[d].push_back({ActionKind::kForward, d, m});
      for (int m : {pair, pair + 1}) s.order[d].push_back({ActionKind::kBackward, d, m});
    }
  }
  return s;
}

// A forward of 1 ms, a backward of 2, messages that take a tenth of one.
absl::Status Print(const Schedule& schedule) {
  PIPELAB_RETURN_IF_ERROR(Validate(schedule));  // names the action that cannot be where it is
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(schedule, {}));  // adds messages
  CostTable costs = CostTable::Unit(program.schedule);
  costs.hop_latency = Nanoseconds(100000);
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis figures, Analyze(program, trace));
  std::printf("%s: step %s, bubble %.1f %%, %d messages\n", schedule.name.c_str(),
              ToString(trace.makespan).c_str(), 100 * figures.overall.bubble,
              static_cast<int>(figures.overall.messages_sent));
  return absl::OkStatus();
}

absl::Status Run() {
  const Schedule own = InPairs();
  std::fputs(ToText(own).c_str(), stdout);  // reads back with ParseText
  PIPELAB_RETURN_IF_ERROR(Print(own));
  for (const char* name : {"gpipe", "1f1b", "zb_h1"}) {
    SchemeParams sizes;
    sizes.devices = 2;
    sizes.micro_batches = 4;
    PIPELAB_ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule(name, sizes));
    PIPELAB_RETURN_IF_ERROR(Print(schedule));
  }
  Schedule wrong = own;
  std::swap(wrong.order[1][0], wrong.order[1][2]);  // a backward before its forward
  std::printf("%s\n", std::string(Validate(wrong).message()).c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main() {
  const absl::Status status = pipelab::Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
