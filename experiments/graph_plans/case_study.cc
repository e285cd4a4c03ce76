#include "experiments/graph_plans/case_study.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kBranches = 2, kRepeats = 4, kStages = kBranches * kRepeats;

// One repeat a stage: the embedding with the first of its branch, the join with the last of all.
Plan StageARepeat(const StudyNet& net, const PlanProblem& problem) {
  Plan plan;
  plan.state = PlanState::kFeasible;
  plan.stages.resize(kStages);
  for (int v = 0; v < problem.size(); ++v) {
    const std::string& name = net.model.graph.layers[problem.operators[v].layers[0]].name;
    int stage = kStages - 1;
    for (int b = 0; b < kBranches; ++b) {
      if (absl::StartsWith(name, absl::StrCat("branch", b, "/embedding"))) stage = b * kRepeats;
      for (int r = 0; r < kRepeats; ++r) {
        if (absl::StartsWith(name, absl::StrCat("branch", b, "/repeat", r, "/"))) {
          stage = b * kRepeats + r;
        }
      }
    }
    plan.stages[stage].layers.push_back(v);
    plan.stages[stage].variants.push_back(0);
  }
  return plan;
}

// The last repeats of both branches and the join on two devices: depth four. A join with one branch
// alone would be one stage behind the other.
Plan WithLastRepeatsTogether(Plan plan) {
  PlanStage& last = plan.stages.back();
  PlanStage& other = plan.stages[kRepeats - 1];
  last.layers.insert(last.layers.begin(), other.layers.begin(), other.layers.end());
  last.variants.assign(last.layers.size(), 0);
  last.data = kBranches;
  plan.stages.erase(plan.stages.begin() + kRepeats - 1);
  return plan;
}

}  // namespace

double CaseStudy::Gain() const { return ThroughputRatio(graph.best(), chain.best()); }

absl::StatusOr<CaseStudy> RunCaseStudy(PlanSweepOptions options) {
  options.devices = kStages;
  const StudyNet net = CaseStudyNet();
  const int64_t batch = BatchOf(net, options);
  CaseStudy study;
  for (int64_t size = 1; size <= batch; size *= 2) {
    PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem,
                             StudyProblem(net, PiperMethod(), size, options));
    const Plan chain = StageARepeat(net, problem);
    Plan graph = WithLastRepeatsTogether(chain);
    for (PlanStage& stage : graph.stages) stage.micro_batch_size = size;
    study.chain.runs.push_back(RunPlan(net, problem, chain, /*chain=*/true, options));
    study.graph.runs.push_back(RunPlan(net, problem, graph, /*chain=*/false, options));
    study.chain.runs.back().micro_batch_size = size;
    study.graph.runs.back().micro_batch_size = size;
  }
  return study;
}

Table CaseStudyTable(const CaseStudy& study) {
  Table t("case_study",
          "The case study: a chain of eight stages, one repeat each, and a graph of depth four");
  t.AddKey("micro_batch", "micro-batch");
  for (const auto& [metric, title] : {std::make_pair("chain", "chain"), {"graph", "graph"}}) {
    t.AddColumn({metric, title, "", "samples/s", Origin::kSimulated, 1});
    t.AddColumn(
        {absl::StrCat(metric, "_memory"), "fullest device", "", "GiB", Origin::kSimulated, 2});
  }
  t.AddColumn({"gain", "graph over chain", "gain", "", Origin::kComputed, 2});
  for (size_t i = 0; i < study.chain.runs.size(); ++i) {
    const PlanRun &chain = study.chain.runs[i], &graph = study.graph.runs[i];
    std::vector<Cell> row = {Label(static_cast<double>(chain.micro_batch_size))};
    for (const PlanRun* run : {&chain, &graph}) {
      const bool fits = run->missing.empty();
      row.push_back(fits ? Simulated(run->throughput) : Missing(run->missing));
      row.push_back(fits ? Simulated(ToGiB(run->memory)) : Missing(run->missing));
    }
    const bool both = chain.missing.empty() && graph.missing.empty();
    row.push_back(both ? Computed(graph.throughput / chain.throughput)
                       : Missing("nothing to compare"));
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "Published (read): depth 8 and 4, micro-batches of 2 and 4, +20 %, half of it from each. The "
      "net's widths and its batch are assumed.");
  return t;
}

}  // namespace pipelab
