// Groups of three or more layouts that were measured of one model, on as many GPUs of a kind, with
// the same batch: would who takes the layout that is predicted to be the fastest have got one of
// the fastest?
//
//   std::vector<ModernGroup> groups = GroupsOf(all);
//   PIPELAB_RETURN_IF_ERROR(ExplainMisses(data, machines, &groups));
//   report.AddTable(GroupTable(groups));  report.AddTable(MissTable(groups));
//   report.AddClaim(GroupClaim(groups));
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_GROUPS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_results.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct ModernGroup {
  std::string source, name;
  int64_t layouts = 0;
  const ModernResult* first = nullptr;  // predicted to be the fastest
  const ModernResult* best = nullptr;   // measured as the fastest
  // The part of a step in which `best` is predicted to lose most against `first`; of misses alone.
  std::string component;

  // The choice costs this share of the best's measured time more: 0.05 is 5 %.
  double lost() const;
  bool near() const { return lost() <= 0.05; }
};

// Groups the judged rows. A layout that was measured several times counts once, with its fastest run; of
// layouts with the same prediction `first` is the slowest. The results must outlive the groups.
std::vector<ModernGroup> GroupsOf(const ModernResults& all);
// Sets `component`. Predicts both rows of each miss again.
absl::Status ExplainMisses(const ModernData& data, const ModernMachines& machines,
                           std::vector<ModernGroup>* groups);

Table GroupTable(const std::vector<ModernGroup>& groups);  // by source
Table MissTable(const std::vector<ModernGroup>& groups);
Claim GroupClaim(const std::vector<ModernGroup>& groups);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_GROUPS_H_
