#include "pipelines/ir/version_checks.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/dependency.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

class VersionChecker {
 public:
  explicit VersionChecker(const Schedule& s) : s_(s), cell_(s), forward_(cell_.size()) {}

  absl::Status CheckDevice(int d) {
    const std::vector<Action>& list = s_.order[d];
    // Two passes: a backward that comes before its forward is somebody else's complaint.
    for (const Action& a : list) {
      if (a.kind == ActionKind::kForward) forward_[Cell(a)] = a.version;
    }
    last_gradient_.assign(s_.num_stages(), kNone);
    for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) {
      PIPELAB_RETURN_IF_ERROR(CheckAction(d, i, list[i]));
    }
    for (int stage = 0; stage < s_.num_stages(); ++stage) {
      const int64_t i = last_gradient_[stage];
      if (i == kNone) continue;
      return InvalidAt(d, i, ToString(list[i]), ": no step (S) of stage ", stage,
                       " comes after it, so no weight version has its gradients");
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kNone = -1;

  int64_t Cell(const Action& a) const { return cell_(a.stage, a.micro_batch, a.slice); }

  absl::Status CheckAction(int d, int64_t i, const Action& a) {
    if (a.kind == ActionKind::kStep) {
      if (last_gradient_[a.stage] == kNone) {
        return InvalidAt(d, i, ToString(a), ": there are no gradients of stage ", a.stage,
                         " since its last step");
      }
      last_gradient_[a.stage] = kNone;
      return absl::OkStatus();
    }
    if (a.version != forward_[Cell(a)]) {
      return InvalidAt(d, i, ToString(a),
                       " uses another weight version than its forward: ", forward_[Cell(a)]);
    }
    if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight) {
      last_gradient_[a.stage] = i;
    }
    return absl::OkStatus();
  }

  const Schedule& s_;
  const CellIndex cell_;
  std::vector<int16_t> forward_;        // [cell] the version of its forward on this device
  std::vector<int64_t> last_gradient_;  // [stage] position of the last one that is in no step yet
};

}  // namespace

absl::Status CheckVersions(const Schedule& schedule) {
  VersionChecker checker(schedule);
  for (int d = 0; d < schedule.num_devices(); ++d) {
    PIPELAB_RETURN_IF_ERROR(checker.CheckDevice(d));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
