// Groups of three or more layouts that were measured of one model, on as many GPUs of a kind, with
// the same batch: would who takes the layout that is predicted to be the fastest have got one of
// the fastest?
//
//   std::vector<LayoutGroup> groups = GroupsOf(layouts);             // measured_layouts.h
//   PIPELAB_RETURN_IF_ERROR(ExplainMisses(&groups));
//   report.AddTable(GroupTable(groups));  report.AddTable(MissTable(groups));
//   report.AddClaim(GroupClaim(groups));
#ifndef PIPELAB_EXPERIMENTS_MODERN_LAYOUT_GROUPS_H_
#define PIPELAB_EXPERIMENTS_MODERN_LAYOUT_GROUPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/modern/step_parts.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "tools/base/units.h"

namespace pipelab {

// A search lists a step of so much memory on a device, since it leaves free what it reserves.
bool IsListed(Bytes memory, Bytes device_memory);

// A measured run beside what is predicted.
struct MeasuredLayout {
  std::string source;
  std::string request;   // the same for the runs of a group: model, numbers, GPUs and batch
  std::string layout;    // the same for the runs of one configuration
  std::string words;     // that, in few words
  double measured = 0;   // s
  double predicted = 0;  // s
  // A search lists it: in a device's memory, by the memory model, less what it keeps free.
  bool listed = true;
  std::function<absl::StatusOr<std::vector<StepPart>>()> parts;  // of the predicted step
};

struct LayoutGroup {
  int64_t layouts = 0;
  const MeasuredLayout* first = nullptr;  // predicted to be the fastest of those that are listed
  const MeasuredLayout* best = nullptr;   // measured as the fastest
  // The part of a step in which `best` is predicted to lose most against `first`; of misses alone.
  std::string component;

  // The choice costs this share of the best's measured time more: 0.05 is 5 %.
  double lost() const { return first->measured / best->measured - 1; }
  bool near() const { return lost() <= 0.05; }
};

// A layout that was measured several times counts once, with its fastest run; of layouts with the
// same prediction `first` is the slowest. Where none is listed, all are. The runs must outlive the
// groups.
std::vector<LayoutGroup> GroupsOf(const std::vector<MeasuredLayout>& runs);
// Sets `component`. Predicts both runs of each miss again.
absl::Status ExplainMisses(std::vector<LayoutGroup>* groups);

Table GroupTable(const std::vector<LayoutGroup>& groups);  // by source
Table MissTable(const std::vector<LayoutGroup>& groups);
Claim GroupClaim(const std::vector<LayoutGroup>& groups);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_LAYOUT_GROUPS_H_
