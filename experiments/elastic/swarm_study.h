// Swarms of unreliable peers on paper: SWARM's rebalancing, its square-cube law, unequal peers
// (Ryabinin et al., arXiv 2301.11913), simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(const SwarmStudy study, SimulateSwarms(size));
//   for (Table& table : SwarmTables(study)) report.AddTable(std::move(table));
//
// The tables vary one thing each: the rule by which peers come to their stages; the width of a
// layer, at each delay; the speeds of peers.
#ifndef PIPELAB_EXPERIMENTS_ELASTIC_SWARM_STUDY_H_
#define PIPELAB_EXPERIMENTS_ELASTIC_SWARM_STUDY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/swarm/peer_trace.h"
#include "pipelines/swarm/swarm.h"
#include "tools/base/units.h"

namespace pipelab {

struct SwarmStudySize {
  std::string cluster = "preemptible-t4";
  int stages = 32, peers = 400;
  int hours = 32;
  int traces = 3;                     // generated from seeds 1, 2, ...
  std::vector<PeerTrace> given = {};  // in the place of generated ones
  // The times of a generated trace are chosen so that peers which never change their stages reach
  // 80 to 86 % of the optimum, as those of the paper do (82.7 %).
  Nanoseconds up = Milliseconds(6 * 3'600'000ll), away = Milliseconds(2'100'000);
  int samples = 20;   // of a request in the traces
  int in_flight = 2;  // micro-batches a peer there
};

struct RebalanceRow {
  std::string rule;
  Nanoseconds every;
  int trace = 0;
  SwarmFigures figures;
};

struct LawRow {
  int64_t hidden = 0, in_flight = 1;  // micro-batches a peer
  bool eight_bits = true;
  Nanoseconds delay, compute, transfer;  // of a micro-batch, at a peer; into it
  SwarmFigures figures;
};

struct UnequalRow {
  std::string what;
  bool drifts = false;
  SwarmFigures figures;
};

struct SwarmStudy {
  SwarmStudySize size;
  std::vector<PeerTrace> traces;
  std::vector<RebalanceRow> rebalancing;
  std::vector<LawRow> law;
  double fixed_pipelines = 0;  // what pipelines of fixed peers reach, of the slowest stage's speed
  std::vector<UnequalRow> unequal;
};

// InvalidArgument or NotFound of a cluster that is not there, or of a trace.
absl::StatusOr<SwarmStudy> SimulateSwarms(const SwarmStudySize& size);
std::vector<Table> SwarmTables(const SwarmStudy& study);
std::vector<Claim> SwarmClaims(const SwarmStudy& study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ELASTIC_SWARM_STUDY_H_
