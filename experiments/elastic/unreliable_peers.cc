// tools/bazel run //experiments:unreliable_peers
//
// Training on peers that come and go: SWARM's policies (arXiv 2301.11913) in simulation. Peers'
// traces are generated from seeds, or a file's.
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/elastic/swarm_study.h"
#include "experiments/flags/option_checks.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "pipelines/swarm/peer_trace.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace unreliable_peers_study {

STUDY_FLAG(std::string, cluster, "preemptible-t4", "machine of a peer, and its link");
STUDY_FLAG(int, traces, 3, "generated traces, of seeds 1, 2, ...");
STUDY_FLAG(int, hours, 32, "of a trace; the first one is not counted");
STUDY_FLAG(
    std::string, trace_file, "",
    "a trace in their place, a CSV file with columns peer,speed,join,leave (docs/elastic.md)");

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--traces", absl::GetFlag(FLAGS_traces), 1, 100));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--hours", absl::GetFlag(FLAGS_hours), 2, 1000));
  SwarmStudySize size;
  size.cluster = absl::GetFlag(FLAGS_cluster);
  size.traces = absl::GetFlag(FLAGS_traces);
  size.hours = absl::GetFlag(FLAGS_hours);
  if (const std::string file = absl::GetFlag(FLAGS_trace_file); !file.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(size.given.emplace_back(), ReadPeerTrace("--trace_file", file));
  }
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  PIPELAB_ASSIGN_OR_RETURN(const SwarmStudy swarms, SimulateSwarms(size));
  for (Table& table : SwarmTables(swarms)) study->report().AddTable(std::move(table));
  for (Claim& claim : SwarmClaims(swarms)) study->report().AddClaim(std::move(claim));
  return absl::OkStatus();
}

}  // namespace unreliable_peers_study

int RunUnreliablePeersStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "unreliable_peers";
  info.title = "Peers that come and go";
  info.summary =
      "Stages served by swarms of unequal, unreliable peers, simulated: rebalancing under "
      "preemptions, device use by width and delay, peers of unequal speeds.";
  info.quick = {{"traces", "1"}};
  info.quick_leaves_out = "2 of 3 traces";
  return RunStudyMain(argc, argv, info, unreliable_peers_study::Run);
}

}  // namespace pipelab
