// tools/bazel run //experiments:travel
//
// Weights that travel (WeiPipe, TawPipe) beside activations that do, and beside fully sharded data
// parallelism: throughput on 32 and 24 GPUs, simulated beside what the papers print.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "experiments/travel/tawpipe_table.h"
#include "experiments/travel/travel_table.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, cluster, "dgx-a100",
           "a name or a file; nodes of 8 and one level above them");

absl::Status Run(StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  if (cluster.levels.size() != 2 || cluster.levels[0].size != 8) {
    return absl::InvalidArgumentError(
        "--cluster: must have nodes of 8 devices and one level above");
  }
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  std::vector<TravelCell> cells;
  for (const TravelPlace place : {TravelPlace::kNvlink, TravelPlace::kPcie}) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<TravelCell> more,
                             SimulateTravel(place, /*devices=*/32, cluster));
    cells.insert(cells.end(), more.begin(), more.end());
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<TawPipeRow> tawpipe, SimulateTawPipe(cluster));
  Report& report = study->report();
  for (Claim& claim : TravelClaims(cells)) report.AddClaim(std::move(claim));
  for (Claim& claim : TawPipeClaims(tawpipe)) report.AddClaim(std::move(claim));
  report.AddTable(TawPipeTable(tawpipe));
  report.AddTable(TravelTable(cells));
  report.AddTable(
      SpecificationTable({cluster, PlacedIn(TravelPlace::kPcie, cluster), WithEthernet(cluster)}));
  return absl::OkStatus();
}

}  // namespace

int RunTravelStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "travel";
  info.title = "Weights that travel, and activations that do";
  info.summary = "WeiPipe and TawPipe beside activation pipelines and FSDP, simulated.";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
