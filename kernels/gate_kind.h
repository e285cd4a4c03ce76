// The activations of gated linear units (Backend::Gate): act(g) u.
#ifndef PIPELAB_KERNELS_GATE_KIND_H_
#define PIPELAB_KERNELS_GATE_KIND_H_

#include <cstdint>

namespace pipelab {

enum class GateKind : uint8_t {
  kSwish,  // g / (1 + e^-g)
  kGelu,   // the tanh form
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_GATE_KIND_H_
