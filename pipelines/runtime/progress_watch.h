// Tells a run that computes from one that will never end, from what its devices show at some
// moments.
//
//   ProgressWatch watch(wait_limit, action_limit);
//   watch.Begin(absl::Now());
//   // now and then, at the latest after a quarter of the smaller limit:
//   const ProgressWatch::Finding found = watch.Look(states, absl::Now());
//   if (found.what == ProgressWatch::kAllWait) ...   // found.device has waited longest
//
// A device that computes is progress, however long it takes and whoever waits for it; so is every
// device that has come further since the last look. Where all that are still under way have only
// waited for `wait_limit`, nobody is left who could end it. A device that is in one action for
// `action_limit` counts as stuck.
#ifndef PIPELAB_PIPELINES_RUNTIME_PROGRESS_WATCH_H_
#define PIPELAB_PIPELINES_RUNTIME_PROGRESS_WATCH_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace pipelab {

class ProgressWatch {
 public:
  struct State {
    bool running = false;  // in the step
    bool waits = false;    // for other devices
    int64_t moves = 0;     // another number whenever it has come further
  };
  enum What : uint8_t { kFine, kAllWait, kStuck };
  struct Finding {
    What what = kFine;
    int device = -1;  // kAllWait: has waited longest; kStuck: is in one action
  };

  ProgressWatch(absl::Duration wait_limit, absl::Duration action_limit)
      : wait_limit_(wait_limit), action_limit_(action_limit) {}

  void Begin(absl::Time now);
  Finding Look(const std::vector<State>& states, absl::Time now);

 private:
  const absl::Duration wait_limit_, action_limit_;
  absl::Time progress_;
  std::vector<State> last_;
  std::vector<absl::Time> since_;  // [device] when it was first seen as in last_
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_PROGRESS_WATCH_H_
