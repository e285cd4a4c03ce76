#include "pipelines/cost/offload.h"

namespace pipelab {

double OffloadRatio(int64_t hidden, int64_t sequence, FlopsPerSecond compute, BytesPerSecond host) {
  return 10.0 / (3.0 * static_cast<double>(6 * hidden + sequence)) * compute.value() / host.value();
}

double OffloadRatio(Bytes kept, const StageCost& stage, BytesPerSecond host) {
  if (host.value() == 0) return 0;
  const Nanoseconds compute = stage.forward + stage.backward_input + stage.backward_weight;
  const double copies = 2 * static_cast<double>(kept.value()) / host.value() * 1e9;
  return copies / static_cast<double>(compute.value());
}

}  // namespace pipelab
