#include "pipelines/runtime/progress_watch.h"

namespace pipelab {

void ProgressWatch::Begin(absl::Time now) {
  progress_ = now;
  last_.clear();
  since_.clear();
}

ProgressWatch::Finding ProgressWatch::Look(const std::vector<State>& states, absl::Time now) {
  last_.resize(states.size());
  since_.resize(states.size(), progress_);
  int longest = -1;
  for (size_t d = 0; d < states.size(); ++d) {
    const State& state = states[d];
    State& last = last_[d];
    if (state.moves != last.moves || state.running != last.running) {
      since_[d] = progress_ = now;
    }
    last = state;
    if (!state.running) continue;
    if (!state.waits) {
      progress_ = now;
      if (now - since_[d] >= action_limit_) return {kStuck, static_cast<int>(d)};
    } else if (longest < 0 || since_[d] < since_[longest]) {
      longest = static_cast<int>(d);
    }
  }
  if (longest >= 0 && now - progress_ >= wait_limit_) return {kAllWait, longest};
  return {};
}

}  // namespace pipelab
