// Steps of optimizers, and what clipping by a global norm needs.
//
//   OptimizerKernels& k = backend->optimizer();
//   double squares = 0;                                  // over all tensors of all stages, in
//   order for (const Tensor& dw : gradients) squares += k.SumOfSquares(dw); k.Scale(dw,
//   ClipFactor(squares, /*most=*/1.0f)); k.Sgd(options, w, dw, velocity);
//
// A tensor's new value depends on its elements one by one, so any partition of the parameters gives
// the same bits. State tensors (m, v, velocity, squares) start where the caller puts them: zeros,
// except that old TensorFlow starts the squares of RMSProp at one.
#ifndef PIPELAB_KERNELS_OPTIMIZER_KERNELS_H_
#define PIPELAB_KERNELS_OPTIMIZER_KERNELS_H_

#include <cmath>
#include <cstdint>

#include "kernels/shape_checks.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

struct AdamOptions {  // Kingma and Ba 2015, with decoupled weight decay (Loshchilov and Hutter
                      // 2019)
  float learning_rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, weight_decay = 0;
  int64_t step = 1;  // counts from 1
};

// g = dw + weight_decay w; u = momentum u + g; w -= learning_rate u, as PyTorch writes it: a change
// of the rate acts on the whole velocity. Nesterov: w -= learning_rate (g + momentum u).
struct SgdOptions {
  float learning_rate = 1e-2f, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

// g = dw + weight_decay w; s = decay s + (1 - decay) g^2; u = momentum u + g / root;
// w -= learning_rate u. The root is sqrt(s) + epsilon (PyTorch) or sqrt(s + epsilon)
// (TensorFlow: what AmoebaNet's epsilon of 1 means).
struct RmsPropOptions {
  float learning_rate = 1e-2f, decay = 0.9f, momentum = 0, epsilon = 1e-8f, weight_decay = 0;
  bool epsilon_inside_root = false;
};

// What every gradient is scaled by so that their joint norm is at most `most`; 1 where it is. Not a
// number where the squares are not finite: a diverged step must stay visible.
inline float ClipFactor(double sum_of_squares, float most) {
  const double norm = std::sqrt(sum_of_squares);
  if (norm <= most) return 1;
  return std::isinf(norm) ? NAN : static_cast<float>(most / norm);
}

class OptimizerKernels {
 public:
  virtual ~OptimizerKernels() = default;

  void Adam(const AdamOptions& options, const Tensor& w, const Tensor& dw, const Tensor& m,
            const Tensor& v) {
    CheckSameSize("Adam", {&w, &dw, &m, &v});
    DoAdam(options, w, dw, m, v);
  }
  // The velocity may be empty where there is no momentum.
  void Sgd(const SgdOptions& options, const Tensor& w, const Tensor& dw, const Tensor& velocity) {
    CheckSameSize("Sgd", {&w, &dw});
    CheckVelocity("Sgd", w, options.momentum, velocity);
    DoSgd(options, w, dw, velocity);
  }
  void RmsProp(const RmsPropOptions& options, const Tensor& w, const Tensor& dw,
               const Tensor& squares, const Tensor& velocity) {
    CheckSameSize("RmsProp", {&w, &dw, &squares});
    CheckVelocity("RmsProp", w, options.momentum, velocity);
    DoRmsProp(options, w, dw, squares, velocity);
  }

  // In double, in an order that the size alone fixes.
  virtual double SumOfSquares(const Tensor& x) = 0;
  virtual void Scale(const Tensor& x, float factor) = 0;  // in place, of any type

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoAdam(const AdamOptions& options, const Tensor& w, const Tensor& dw,
                      const Tensor& m, const Tensor& v) = 0;
  virtual void DoSgd(const SgdOptions& options, const Tensor& w, const Tensor& dw,
                     const Tensor& velocity) = 0;
  virtual void DoRmsProp(const RmsPropOptions& options, const Tensor& w, const Tensor& dw,
                         const Tensor& squares, const Tensor& velocity) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_OPTIMIZER_KERNELS_H_
