#include "kernels/comm/in_process_world.h"

#include <utility>

#include "glog/logging.h"

namespace pipelab {

std::shared_ptr<Meeting> Group::Next(int member) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t at = begun_[member]++ - first_;
  while (static_cast<int64_t>(meetings_.size()) <= at) {
    meetings_.push_back(std::make_shared<Meeting>(ranks_.size()));
  }
  return meetings_[at];
}

void Group::Tidy() {
  std::lock_guard<std::mutex> lock(mutex_);
  while (!meetings_.empty() && meetings_.front()->Missing(CollectivePhase::kFinished) < 0) {
    meetings_.pop_front();
    ++first_;
  }
}

InProcessWorld::InProcessWorld(int size, const InProcessOptions& options)
    : size_(size),
      rendezvous_(options.rendezvous),
      devices_(options.devices),
      pairs_(size * size),
      parkers_(size) {
  CHECK(devices_.empty() || static_cast<int>(devices_.size()) == size);
}

Group& InProcessWorld::group(absl::Span<const int> ranks) {
  std::lock_guard<std::mutex> lock(groups_mutex_);
  std::unique_ptr<Group>& group = groups_[std::vector<int>(ranks.begin(), ranks.end())];
  if (group == nullptr) group = std::make_unique<Group>(ranks);
  return *group;
}

absl::Status InProcessWorld::Fail(absl::Status why) {
  {
    std::lock_guard<std::mutex> lock(why_mutex_);
    if (!why_.ok()) return MarkAsFollowUp(why_);
    why_ = why;
  }
  aborted_.store(true);
  for (Parker& parker : parkers_) parker.Unpark();
  return why;
}

absl::Status InProcessWorld::Ended() const {
  std::lock_guard<std::mutex> lock(why_mutex_);
  return MarkAsFollowUp(why_);
}

}  // namespace pipelab
