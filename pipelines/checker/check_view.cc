#include "pipelines/checker/check_view.h"

#include <map>

#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status Cover(PlanView* view) {
  const PlanProblem& problem = view->problem;
  const Plan& plan = view->plan;
  std::vector<int>& stage_of = view->stage_of;
  std::vector<const PlanVariant*>& variant = view->variant;
  const auto id = [&](int v) -> const std::string& { return view->Id(v); };
  stage_of.assign(problem.size(), -1);
  variant.assign(problem.size(), nullptr);
  for (int s = 0; s < view->num_stages(); ++s) {
    const PlanStage& stage = plan.stages[s];
    if (stage.layers.empty()) return PlanError("stage ", s, ": without layers");
    if (stage.variants.size() != stage.layers.size()) {
      return PlanError("stage ", s, ": ", stage.variants.size(), " variants for ",
                       stage.layers.size(), " layers");
    }
    for (size_t i = 0; i < stage.layers.size(); ++i) {
      const int v = stage.layers[i];
      if (v < 0 || v >= problem.size()) return PlanError("stage ", s, ": there is no layer ", v);
      if (stage_of[v] >= 0) {
        return PlanError("layer ", id(v), " is in stage ", stage_of[v], " and in stage ", s);
      }
      stage_of[v] = s;
      const auto variants = problem.operators[v].variants.find(stage.tensor);
      if (variants == problem.operators[v].variants.end()) {
        return PlanError("stage ", s, ": layer ", id(v), " cannot be run with tensor degree ",
                         stage.tensor);
      }
      if (stage.variants[i] < 0 || stage.variants[i] >= static_cast<int>(variants->second.size())) {
        return PlanError("stage ", s, ": layer ", id(v), " has no variant ", stage.variants[i]);
      }
      variant[v] = &variants->second[stage.variants[i]];
    }
  }
  for (int v = 0; v < problem.size(); ++v) {
    if (stage_of[v] < 0) return PlanError("layer ", id(v), " is in no stage");
  }
  std::map<int, int> colours;
  for (int v = 0; v < problem.size(); ++v) {
    if (problem.operators[v].colour < 0) continue;
    const auto added = colours.emplace(problem.operators[v].colour, v);
    const int other = added.first->second;
    if (stage_of[other] != stage_of[v]) {
      return PlanError("layers ", id(other), " and ", id(v),
                       " must share a device, but are in stages ", stage_of[other], " and ",
                       stage_of[v]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanView> PlanView::Make(const PlanProblem& problem, const Plan& plan) {
  PlanView view{problem, plan, {}, {}};
  PIPELAB_RETURN_IF_ERROR(Cover(&view));
  return view;
}

int64_t PlanView::Samples(int s) const {
  const PlanStage& stage = plan.stages[s];
  return stage.micro_batch_size > 0 ? stage.micro_batch_size
                                    : problem.micro_batch_size * stage.data;
}
double PlanView::PartOfCopy(int s) const {
  return static_cast<double>(Samples(s)) /
         static_cast<double>(plan.stages[s].data * problem.micro_batch_size);
}

double PlanView::Compute(int s) const {
  double time = 0;
  for (int v : plan.stages[s].layers) time += variant[v]->time;
  if (!IsGraphObjective(plan.objective) || problem.micro_batch_sizes.empty()) return time;
  // So many runs of a copy's own micro-batch are one of the problem's.
  const double part = PartOfCopy(s);
  time = 0;
  for (int v : plan.stages[s].layers) {
    time +=
        TimesOfSamples(problem, *variant[v], part * static_cast<double>(problem.micro_batch_size))
            .time;
  }
  return time / part;
}
double PlanView::Parameters(int s) const {
  double bytes = 0;
  for (int v : plan.stages[s].layers) bytes += variant[v]->parameter_bytes;
  return bytes;
}

}  // namespace pipelab
