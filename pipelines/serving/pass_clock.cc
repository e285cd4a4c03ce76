#include "pipelines/serving/pass_clock.h"

#include <algorithm>

namespace pipelab {

Nanoseconds PassClock::Add(Nanoseconds earliest, bool taken, Pass* pass) {
  const int stages = static_cast<int>(stage_free_.size());
  Nanoseconds there = earliest;
  for (int s = 0; s < stages; ++s) {
    pass->begins.push_back(std::max(there, stage_free_[s]));
    pass->ends.push_back(pass->begins.back() + times_->compute(s, pass->runs));
    there = stage_free_[s] = pass->ends.back();
    const bool sends = s + 1 < stages || (taken && stages > 1);
    if (!sends) continue;
    // It leaves when the message before it has left.
    link_free_[s] = std::max(there, link_free_[s]) + times_->transfer(s, pass->runs);
    there = link_free_[s] + times_->latency;
  }
  return there;
}

}  // namespace pipelab
