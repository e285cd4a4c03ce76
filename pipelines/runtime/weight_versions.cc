#include "pipelines/runtime/weight_versions.h"

#include "absl/strings/str_cat.h"

namespace pipelab {

absl::Status WeightVersions::CheckUse(const Action& a) const {
  if (synchronous()) {
    if (a.version == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(a), ": this stage was made for one version of its weights"));
  }
  if (a.version < 0 || a.version > newest_) {
    return absl::FailedPreconditionError(absl::StrCat(
        ToString(a), " needs a weight version that is not made yet; the newest is ", newest_));
  }
  if (left_[a.version] > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(ToString(a), " is one use of weight version ",
                                                    a.version, " too many: a run has ",
                                                    uses_[a.version]));
}

absl::Status WeightVersions::CheckStep(const Action& a) const {
  if (synchronous()) return CheckUse(a);
  if (newest_ == steps_of_run() || a.version != newest_ + 1) {
    return absl::FailedPreconditionError(absl::StrCat(ToString(a), ": the next weight version is ",
                                                      newest_ + 1, " of ", steps_of_run()));
  }
  if (!is_last_step()) return absl::OkStatus();
  for (size_t v = 0; v < left_.size(); ++v) {
    if (left_[v] == 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(ToString(a), " ends the run, but ", left_[v],
                                                      " uses of weight version ", v,
                                                      " are to come"));
  }
  return absl::OkStatus();
}

bool WeightVersions::Use(int version) {
  if (synchronous()) return false;
  return --left_[version] == 0 && version != newest_;
}

void WeightVersions::Made() {
  if (!is_last_step()) {
    ++newest_;
    return;
  }
  newest_ = 0;
  left_ = uses_;
}

}  // namespace pipelab
