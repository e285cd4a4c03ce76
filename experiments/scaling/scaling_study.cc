#include "experiments/scaling/scaling_study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "experiments/published/gpipe.h"
#include "experiments/report/report.h"
#include "experiments/scaling/gpipe_claims.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/largest_models.h"
#include "experiments/scaling/real_counterpart.h"
#include "experiments/scaling/scheme_grid.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/scaling/speed_up.h"
#include "experiments/scaling/throughput_grid.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_main.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, cluster, "",
           "cluster instead of the paper's TPUs: a name or a file; empty: the paper's");
STUDY_FLAG(std::string, gpu_cluster, "", "cluster instead of the paper's GPUs; empty: the paper's");
STUDY_FLAG(
    bool, real, false,
    "also train a scaled-down network here on in-process devices, for some minutes, and compare "
    "its step times with the cost model's");
STUDY_FLAG(
    std::string, machine, "",
    "with --real: specification of this machine (//experiments:calibrate); empty: measured in "
    "turns with the runs");

// The clusters of the paper's tables, or the user's in their place.
class Clusters {
 public:
  absl::StatusOr<const ClusterSpec*> Load(const std::string& published) {
    const bool gpus = published == kGpus;
    const std::string given =
        gpus ? absl::GetFlag(FLAGS_gpu_cluster) : absl::GetFlag(FLAGS_cluster);
    const std::string word = given.empty() ? published : given;
    auto found = loaded_.find(word);
    if (found == loaded_.end()) {
      PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster,
                               LoadCluster(gpus ? "--gpu_cluster" : "--cluster", word));
      found = loaded_.emplace(word, std::move(cluster)).first;
    }
    return &found->second;
  }

  // One that was not asked for by name.
  void Add(const ClusterSpec& cluster) { loaded_.emplace("", cluster); }

  std::vector<ClusterSpec> All() const {
    std::vector<ClusterSpec> all;
    for (const auto& [word, cluster] : loaded_) all.push_back(cluster);
    return all;
  }

 private:
  static constexpr char kGpus[] = "p100-pcie";
  std::map<std::string, ClusterSpec> loaded_;
};

// "Median error 5.9 % over 12 cells; beyond 25 %: 1".
std::string ErrorSentence(const std::vector<ThroughputGrid>& grids) {
  std::vector<double> errors;
  for (const ThroughputGrid& grid : grids) {
    for (const ThroughputCell& cell : grid.cells) errors.push_back(std::abs(cell.error()));
  }
  std::sort(errors.begin(), errors.end());
  const size_t n = errors.size();
  const double median = (errors[(n - 1) / 2] + errors[n / 2]) / 2;
  const auto beyond = errors.end() - std::upper_bound(errors.begin(), errors.end(), 0.25);
  return absl::StrFormat(
      "Throughput against the paper's Tables 2 and 3: median error %.1f %% over %d cells (the "
      "first "
      "of each table is 1 by definition), %d beyond 25 %%, each with its reason.",
      ToPercent(median), n, beyond);
}

absl::Status AddThroughput(const GpipeFamily& family, const GpipePaper& paper, Clusters* clusters,
                           Report* report) {
  std::vector<ThroughputGrid> grids;
  for (const PublishedThroughput& published : paper.throughput) {
    if (published.family != family.id) continue;
    PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec* cluster, clusters->Load(published.cluster));
    PIPELAB_ASSIGN_OR_RETURN(ThroughputGrid grid, MakeThroughputGrid(family, published, *cluster));
    report->AddTable(ThroughputTable(grid));
    report->AddTable(OverheadTable(grid, paper.overheads));
    report->AddClaim(ThroughputClaim(grid));
    grids.push_back(std::move(grid));
  }
  report->AddClaim(OverheadClaim(family, paper.overheads));
  report->AddNote(ErrorSentence(grids));
  const PublishedThroughput& first = grids[0].published;
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec* cluster, clusters->Load(first.cluster));
  PIPELAB_ASSIGN_OR_RETURN(const SchemeGrid schemes, MakeSchemeGrid(family, first, *cluster));
  report->AddTable(SchemeGridTable(schemes));
  return absl::OkStatus();
}

absl::Status AddRealCounterpart(const GpipeFamily& family,
                                const absl::optional<ClusterSpec>& machine, Clusters* clusters,
                                Report* report) {
  if (!absl::GetFlag(FLAGS_real)) {
    report->AddNote(
        "Not in this report: the scaled-down network trained on this machine (--real, some "
        "minutes).");
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const RealNet net, ScaledDown(family.id));
  RealCounterpartOptions options;
  options.machine = machine;
  PIPELAB_ASSIGN_OR_RETURN(const RealCounterpart real, RunRealCounterpart(net, options));
  report->AddTable(RealCounterpartTable(real));
  clusters->Add(real.machine);
  return absl::OkStatus();
}

absl::Status Run(const ScalingStudy& study, StudyRun* run) {
  PIPELAB_ASSIGN_OR_RETURN(const GpipeFamily* family, FindGpipeFamily(study.family));
  PIPELAB_ASSIGN_OR_RETURN(const GpipePaper paper, PublishedGpipe());
  Clusters clusters;
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec* cluster, clusters.Load(family->cluster));
  absl::optional<ClusterSpec> machine;
  if (!absl::GetFlag(FLAGS_machine).empty()) {
    PIPELAB_ASSIGN_OR_RETURN(machine, LoadCluster("--machine", absl::GetFlag(FLAGS_machine)));
  }
  PIPELAB_RETURN_IF_ERROR(run->Begin());
  Report& report = run->report();
  report.AddNote(absl::StrCat("Published figures: ", paper.paper, "."));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<LargestModel> largest,
                           LargestModels(*family, paper, *cluster));
  report.AddTable(LargestModelsTable(*family, *cluster, largest));
  for (Claim& claim : LargestModelClaims(*family, largest)) report.AddClaim(std::move(claim));
  PIPELAB_RETURN_IF_ERROR(AddThroughput(*family, paper, &clusters, &report));
  PIPELAB_ASSIGN_OR_RETURN(const SpeedUps speed_ups, MakeSpeedUps(*family, study.speed_up_layers,
                                                                  study.speed_up_width, *cluster));
  report.AddTable(SpeedUpTable(speed_ups));
  PIPELAB_RETURN_IF_ERROR(AddRealCounterpart(*family, machine, &clusters, &report));
  report.AddTable(SpecificationTable(clusters.All()));
  return absl::OkStatus();
}

}  // namespace

int RunScalingStudy(int argc, char** argv, const ScalingStudy& study) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = study.name;
  info.title = study.title;
  info.summary = study.summary;
  info.unrecorded = {"machine"};
  return RunStudyMain(argc, argv, info, [&study](StudyRun* run) { return Run(study, run); });
}

}  // namespace pipelab
