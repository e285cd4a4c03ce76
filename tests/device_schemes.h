// Every scheme of the catalogue, trained on given devices beside the serial loop on one of them:
// losses to the bit where the order of sums is the same, else within the derived tolerance; and
// near the CPU's serial training. Small nets of every kind in pipelines, sharding and
// tensor-parallel groups too.
//
//   for (const SchemeOutcome& o : CheckSchemes(gpu::CudaDevices("cuda"), /*quick=*/false)) ...
//
// On devices with bfloat16 activations all is compared in bfloat16: the serial loop too, and the
// bytes.
//
// No GoogleTest here: tools/gpu/suite.sh runs it where there is none.
#ifndef PIPELAB_TESTS_DEVICE_SCHEMES_H_
#define PIPELAB_TESTS_DEVICE_SCHEMES_H_

#include <string>
#include <vector>

#include "kernels/compute_device.h"

namespace pipelab {

struct SchemeOutcome {
  std::string name;     // "1f1b", "zb_h1 on resnet"
  std::string outcome;  // "ok", "WRONG", or "skipped" with a reason in `text`
  std::string text;     // "equal to the bit at all 3 steps", or what is wrong
};

// `quick`: a few of each kind.
std::vector<SchemeOutcome> CheckSchemes(const ComputeDevices& devices, bool quick);

// What CheckSchemes would check, each "skipped" with this reason.
std::vector<SchemeOutcome> SkippedSchemes(const std::string& why);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_DEVICE_SCHEMES_H_
