// The activations of gated linear units (Backend::Gate), act(g) u, and forms of the GELU.
#ifndef PIPELAB_KERNELS_GATE_KIND_H_
#define PIPELAB_KERNELS_GATE_KIND_H_

#include <cstdint>

namespace pipelab {

enum class GateKind : uint8_t {
  kSwish,  // g / (1 + e^-g)
  kGelu,   // the tanh form
};

enum class GeluForm : uint8_t {
  kTanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kErf,   // 0.5 x (1 + erf(x / sqrt(2))), of which the other is an approximation
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_GATE_KIND_H_
