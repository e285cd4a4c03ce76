// Which schedule, sharding and grid trains a 52B GPT fastest at each batch: the question of
// Breadth-First Pipeline Parallelism (Lamy-Poirier, MLSys 2023), by search over everything that
// fits.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "experiments/grids/ablation.h"
#include "experiments/grids/batch_sweep.h"
#include "experiments/grids/large_scale.h"
#include "experiments/grids/megatron_losses.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/files/model_file.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/step_config.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, model, "gpt-52b", "a published model's name, or a file (docs/models.md)");
STUDY_FLAG(std::string, cluster, "dgx1-v100", "a cluster's name, or a file (docs/clusters.md)");
STUDY_FLAG(std::string, other_clusters, "p3.16xlarge,dgx-a100,dgx-h100",
           "clusters to compare with, where they have as many GPUs");
STUDY_FLAG(int64_t, devices, 64, "GPUs to use");
STUDY_FLAG(std::string, recompute, "blocks",
           "what is recomputed at a time, where everything is: blocks (within the backward, as in "
           "Megatron-LM) or full (a stage, as in GPipe)");
STUDY_FLAG(std::string, batches, "8,16,32,64,128,256,512", "samples of a step, ascending");
STUDY_FLAG(std::string, large_devices, "64,256,1024,4096", "GPUs to extrapolate to; empty: none");
STUDY_FLAG(double, critical_batch, 1000, "critical batch of the extrapolation, samples");
STUDY_FLAG(double, least_steps, 50000, "steps that very large batches need, in the extrapolation");

absl::StatusOr<std::vector<int64_t>> Numbers(absl::string_view option, const std::string& text) {
  std::vector<int64_t> numbers;
  for (absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t n = 0;
    if (!absl::SimpleAtoi(word, &n) || n < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, "=", text, ": \"", word, "\" is not a whole number of at least 1"));
    }
    numbers.push_back(n);
  }
  return numbers;
}

struct Setting {
  GroupedModel model;
  ClusterSpec cluster;
  std::vector<int64_t> batches;
  Recompute recompute = Recompute::kBlocks;
  int64_t gpus = 0;

  StepModel Grid(const ClusterSpec& on) const {
    StepModel grid;
    grid.model = &model;
    grid.cluster = &on;
    grid.type = NarrowestType(on.device);
    return grid;
  }
};

absl::Status Read(Setting* s) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, FindModel("--model", absl::GetFlag(FLAGS_model)));
  s->model = GroupByName(std::move(graph));
  s->model.graph.name = absl::GetFlag(FLAGS_model);
  PIPELAB_ASSIGN_OR_RETURN(s->cluster, LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  PIPELAB_ASSIGN_OR_RETURN(s->batches, Numbers("--batches", absl::GetFlag(FLAGS_batches)));
  if (s->batches.empty()) return absl::InvalidArgumentError("--batches=: must name one");
  const std::string name = absl::GetFlag(FLAGS_recompute);
  s->recompute = FindRecompute(name).value_or(Recompute::kNone);
  if (s->recompute != Recompute::kBlocks && s->recompute != Recompute::kFull) {
    return absl::InvalidArgumentError(
        absl::StrCat("--recompute=", name, ": must be blocks or full"));
  }
  s->gpus = absl::GetFlag(FLAGS_devices);
  if (s->gpus >= 1 && s->gpus <= s->cluster.max_devices()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--devices=", s->gpus, ": must be from 1 to ",
                                                 s->cluster.max_devices(), ", those of ",
                                                 s->cluster.name));
}

std::string Where(const Setting& s) {
  return absl::StrCat(s.model.graph.name, " on ", s.gpus, " of ", s.cluster.title);
}

// The published baseline at the smallest batch, where the headline is from.
absl::Status AddMegatron(const Setting& s, const BatchSweep& sweep, Report* report) {
  const StepModel grid = s.Grid(s.cluster);
  const int64_t batch = s.batches[0];
  const RankedStep* megatron = sweep.Find(kMegatron, batch);
  const RankedStep* breadth = sweep.Find("breadth-first", batch);
  if (megatron != nullptr && breadth != nullptr) {
    PIPELAB_ASSIGN_OR_RETURN(Table losses,
                             MegatronLossesTable(grid, *megatron, breadth->step_time));
    report->AddTable(std::move(losses));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<SensitivityCase> cases,
                           MegatronSensitivity(grid, s.gpus, batch, s.recompute));
  report->AddTable(SensitivityTable(cases));
  report->AddClaim(HeadlineClaim(cases, s.gpus, batch));
  return absl::OkStatus();
}

// The paper's setting: everything recomputed, as large models were trained then.
absl::StatusOr<BatchSweep> AddPublished(const Setting& s, Report* report) {
  const StepModel grid = s.Grid(s.cluster);
  PIPELAB_ASSIGN_OR_RETURN(BatchSweep sweep,
                           SweepBatches(grid, {s.gpus, s.batches, PublishedMethods(),
                                               /*recompute=*/{s.recompute}}));
  report->AddTable(BatchSweepTable(
      "methods", "The best of each method, everything recomputed: " + Where(s), sweep));
  report->AddCurves("Throughput of the best configurations, everything recomputed",
                    "batch, samples", "Tflop/s a GPU", BatchSweepSeries(sweep));
  PIPELAB_RETURN_IF_ERROR(AddMegatron(s, sweep, report));
  for (Claim& claim : OrderingClaims(sweep, s.batches)) report->AddClaim(std::move(claim));
  for (const std::string& note : HeadlineNotes(sweep, s.batches)) report->AddNote(note);
  // The smallest batch, where the headline is from, and the last one below a sample a GPU.
  PIPELAB_ASSIGN_OR_RETURN(const Table smallest, AblationTable(grid, sweep, s.batches[0]));
  report->AddTable(smallest);
  int64_t larger = s.batches[0];
  for (const int64_t batch : s.batches) larger = batch < s.gpus ? batch : larger;
  if (larger == s.batches[0]) return sweep;
  PIPELAB_ASSIGN_OR_RETURN(const Table below_one, AblationTable(grid, sweep, larger));
  report->AddTable(below_one);
  return sweep;
}

// Recomputation where the search finds it worthwhile; the newer schedules with them.
absl::StatusOr<BatchSweep> AddChosen(const Setting& s, Report* report) {
  std::vector<SearchMethod> methods = PublishedMethods();
  for (SearchMethod& method : NewerMethods()) methods.push_back(std::move(method));
  PIPELAB_ASSIGN_OR_RETURN(
      BatchSweep sweep,
      SweepBatches(s.Grid(s.cluster),
                   {s.gpus, s.batches, methods, {Recompute::kNone, s.recompute}}));
  report->AddTable(BatchSweepTable(
      "methods_chosen",
      "The best of each method and of the newer schedules, recomputing where it helps: " + Where(s),
      sweep));
  for (const std::string& faster : FasterThan(sweep, "breadth-first", s.batches)) {
    report->AddNote(absl::StrCat("Recomputing where it helps. ", faster, "."));
  }
  return sweep;
}

absl::Status AddMethods(const Setting& s, Report* report) {
  PIPELAB_ASSIGN_OR_RETURN(const BatchSweep published, AddPublished(s, report));
  PIPELAB_ASSIGN_OR_RETURN(const BatchSweep chosen, AddChosen(s, report));
  report->AddNote(absl::StrCat("The searches looked at ", published.considered + chosen.considered,
                               " configurations and simulated ",
                               published.simulated + chosen.simulated,
                               "; the others' lower bounds were beyond what had been found."));
  return absl::OkStatus();
}

absl::Status AddClusters(const Setting& s, std::vector<ClusterSpec>* used, Report* report) {
  const std::string names = absl::GetFlag(FLAGS_other_clusters);
  for (absl::string_view name : absl::StrSplit(names, ',', absl::SkipEmpty())) {
    PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, LoadCluster("--other_clusters", name));
    used->push_back(cluster);
    if (s.gpus > cluster.max_devices()) {
      report->AddNote(absl::StrCat(cluster.name, " has ", cluster.max_devices(), " GPUs, not ",
                                   s.gpus, ": left out."));
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(
        const BatchSweep sweep,
        SweepBatches(s.Grid(cluster), {s.gpus, s.batches, PublishedMethods(), {s.recompute}}));
    report->AddTable(BatchSweepTable(
        absl::StrCat("methods_", used->size()),
        absl::StrCat("The best of each method, everything recomputed: ", s.model.graph.name, " on ",
                     s.gpus, " of ", cluster.title),
        sweep));
  }
  return absl::OkStatus();
}

absl::Status AddLargeScale(const Setting& s, Report* report) {
  LargeScaleOptions options;
  PIPELAB_ASSIGN_OR_RETURN(options.devices,
                           Numbers("--large_devices", absl::GetFlag(FLAGS_large_devices)));
  if (options.devices.empty()) return absl::OkStatus();
  options.critical_batch = absl::GetFlag(FLAGS_critical_batch);
  options.least_steps = absl::GetFlag(FLAGS_least_steps);
  options.methods = PublishedMethods();
  options.recompute = {Recompute::kNone, s.recompute};
  const ClusterSpec cluster =
      WithNodesFor(*std::max_element(options.devices.begin(), options.devices.end()), s.cluster);
  for (int64_t batch = 64; batch <= 4096; batch *= 2) options.batches.push_back(batch);
  PIPELAB_ASSIGN_OR_RETURN(Table table, LargeScaleTable(s.Grid(cluster), options));
  report->AddTable(std::move(table));
  return absl::OkStatus();
}

absl::Status Run(StudyRun* study) {
  Setting setting;
  PIPELAB_RETURN_IF_ERROR(Read(&setting));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  std::vector<ClusterSpec> used = {setting.cluster};
  PIPELAB_RETURN_IF_ERROR(AddMethods(setting, &report));
  PIPELAB_RETURN_IF_ERROR(AddClusters(setting, &used, &report));
  PIPELAB_RETURN_IF_ERROR(AddLargeScale(setting, &report));
  report.AddTable(SpecificationTable(used));
  return absl::OkStatus();
}

}  // namespace

int RunGpt52bScalingStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "gpt52b_scaling";
  info.title = "A 52B GPT: breadth-first, depth-first, non-looped, no pipeline";
  info.summary =
      "Searches the fastest schedule, sharding and grid for a GPT of 52B parameters at each batch.";
  info.description =
      "For each batch, the fastest grid, sharding and schedule of each method that fits into "
      "memory, and where its time goes. All figures are simulated from one cluster specification; "
      "the paper's own tables per batch are not at hand, so only its headline and orderings are "
      "compared.";
  info.quick = {{"batches", "8,32,512"}, {"other_clusters", ""}, {"large_devices", "64,256"}};
  info.quick_leaves_out =
      "4 of 7 batches, the other clusters, and the extrapolation beyond 256 GPUs";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
