#include "pipelines/swarm/updates.h"

#include "glog/logging.h"

namespace pipelab {

int64_t StepLedger::Begin() {
  CHECK(MayBegin());
  if (step_ > 0 && next_ % step_ == 0) {
    Step& step = steps_[next_ / step_];
    step.missing = step_ * stages_;
    step.counted.resize(step.missing);
  }
  return next_++;
}

std::vector<bool>::reference StepLedger::Counted(int stage, int64_t micro_batch) {
  const auto step = steps_.find(micro_batch / step_);
  CHECK(step != steps_.end()) << micro_batch;
  return step->second.counted[micro_batch % step_ * stages_ + stage];
}

void StepLedger::Count(int stage, int64_t micro_batch) {
  if (step_ == 0) return;
  auto counted = Counted(stage, micro_batch);
  CHECK(!counted) << "micro-batch " << micro_batch << " twice at stage " << stage;
  counted = true;
  --steps_[micro_batch / step_].missing;
}

void StepLedger::Lose(int stage, int64_t micro_batch) {
  auto counted = Counted(stage, micro_batch);
  CHECK(counted) << "micro-batch " << micro_batch << " was not counted at stage " << stage;
  counted = false;
  ++steps_[micro_batch / step_].missing;
}

bool StepLedger::MayAverage() const {
  const auto step = steps_.find(averaged_);
  return !averaging_ && step != steps_.end() && step->second.missing == 0;
}

int64_t StepLedger::BeginAverage() {
  CHECK(MayAverage());
  averaging_ = true;
  steps_.erase(averaged_);
  return averaged_;
}

void StepLedger::EndAverage() {
  CHECK(averaging_);
  averaging_ = false;
  ++averaged_;
}

}  // namespace pipelab
