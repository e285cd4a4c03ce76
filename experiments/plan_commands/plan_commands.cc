#include "experiments/plan_commands/plan_commands.h"

#include <string>
#include <utility>
#include <vector>

#include "pipelines/planners/planners.h"

namespace pipelab {

void LinkPlanCommands() {
  LinkCommand("check_plan", &CheckPlanCommand);
  LinkCommand("plan", &PlanCommand);
  LinkCommand("synthesize", &SynthesizeCommand);
  std::vector<std::string> planners = {"best"};
  for (const Planner& p : Planners()) planners.emplace_back(p.name);
  LinkOptionValues("planner", std::move(planners));
}

}  // namespace pipelab
