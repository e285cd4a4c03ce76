#include "pipelines/step/step_model.h"

namespace pipelab {

NumberType NarrowestType(const DeviceSpec& device) {
  NumberType narrowest = device.peaks.begin()->first;
  for (const auto& [type, peak] : device.peaks) {
    if (BytesOf(type) < BytesOf(narrowest)) narrowest = type;
  }
  return narrowest;
}

}  // namespace pipelab
