// tools/bazel run //experiments:schedule_formulas
//
// Formulas that papers print for bubbles, activations, weights, orders, parameters and flops,
// beside simulated schedules and model graphs.
#include "experiments/formulas/published_formulas.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  PIPELAB_ASSIGN_OR_RETURN(std::vector<FormulaGroup> groups, ScheduleFormulas());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<FormulaGroup> orders, OrderFormulas());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<FormulaGroup> models, ModelFormulas());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<FormulaGroup> rates, BubbleRates());
  for (const auto* more : {&orders, &models, &rates}) {
    groups.insert(groups.end(), more->begin(), more->end());
  }
  for (const FormulaGroup& group : groups) study->report().AddClaim(ClaimOf(group));
  study->report().AddTable(FormulaTable(groups));
  return absl::OkStatus();
}

}  // namespace

int RunScheduleFormulasStudy(int argc, char** argv) {
  StudyInfo info;
  info.name = "schedule_formulas";
  info.title = "Published formulas, counted";
  info.summary =
      "Formulas that papers print for bubbles, activations, weights, orders, parameters and flops, "
      "beside what simulated schedules and model graphs come to.";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
