// Which weight versions of a stage exist during a run, and until when: bookkeeping without tensors.
//
//   WeightVersions versions(VersionUses(schedule)[stage]);       // pipelines/ir/versions.h
//   PIPELAB_RETURN_IF_ERROR(versions.CheckUse(action));
//   if (versions.Use(action.version)) Drop(action.version);      // that was its last use
//
// Versions count from 0 in each run; the newest of a run is version 0 of the next. Weight stashing:
// Narayanan et al., "PipeDream", SOSP 2019.
#ifndef PIPELAB_PIPELINES_RUNTIME_WEIGHT_VERSIONS_H_
#define PIPELAB_PIPELINES_RUNTIME_WEIGHT_VERSIONS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

class WeightVersions {
 public:
  // [version] actions of a run that compute with it. Empty: synchronous; a run is a step, and all
  // actions, steps included, have version 0.
  explicit WeightVersions(std::vector<int32_t> uses) : uses_(std::move(uses)), left_(uses_) {}

  int newest() const { return newest_; }
  int steps_of_run() const { return synchronous() ? 1 : static_cast<int>(uses_.size()) - 1; }
  bool is_last_step() const { return newest_ + 1 == steps_of_run(); }
  // The next step must keep the newest version: actions will compute with it.
  bool newest_is_needed() const { return !synchronous() && left_[newest_] > 0; }

  // The version of a pass exists; a step makes the next one, and the last step of a run leaves no
  // use behind.
  absl::Status CheckUse(const Action& a) const;
  absl::Status CheckStep(const Action& a) const;

  // Counts one use. True: it was the last of a version that is not the newest.
  bool Use(int version);
  // The next version is there; after the last step of a run it is version 0 of the next run.
  void Made();

 private:
  bool synchronous() const { return uses_.empty(); }

  std::vector<int32_t> uses_, left_;  // of a run; of this run, those to come
  int newest_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_WEIGHT_VERSIONS_H_
