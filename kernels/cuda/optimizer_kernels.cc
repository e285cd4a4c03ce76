#include <cmath>
#include <memory>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

class CudaOptimizerKernels final : public OptimizerKernels {
 public:
  explicit CudaOptimizerKernels(Device* device) : device_(device) {}

  void DoAdam(const AdamOptions& options, const Tensor& w, const Tensor& dw, const Tensor& m,
              const Tensor& v) override {
    const int64_t n = w.size();
    // m^ = m / (1 - beta1^t) and v^ = v / (1 - beta2^t), folded into the rate and into v's root.
    const double step = static_cast<double>(options.step);
    AdamNumbers a;
    a.beta1 = options.beta1;
    a.beta2 = options.beta2;
    a.rate = static_cast<float>(options.learning_rate / (1 - std::pow(double{a.beta1}, step)));
    a.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(double{a.beta2}, step)));
    a.epsilon = options.epsilon;
    a.decay = static_cast<float>(double{options.learning_rate} * options.weight_decay);
    gpu::Adam(*device_, a, Data(dw), n, Data(w), Data(m), Data(v));
  }
  void DoSgd(const SgdOptions& options, const Tensor& w, const Tensor& dw,
             const Tensor& velocity) override {
    const int64_t n = w.size();
    const SgdNumbers s = {options.learning_rate, options.momentum, options.weight_decay,
                          options.nesterov};
    gpu::Sgd(*device_, s, Data(dw), n, Data(w), Data(velocity));
  }
  void DoRmsProp(const RmsPropOptions& options, const Tensor& w, const Tensor& dw,
                 const Tensor& squares, const Tensor& velocity) override {
    const int64_t n = w.size();
    RmsPropNumbers r;
    r.rate = options.learning_rate;
    r.decay = options.decay;
    r.momentum = options.momentum;
    r.weight_decay = options.weight_decay;
    r.inside = options.epsilon_inside_root ? options.epsilon : 0;
    r.outside = options.epsilon_inside_root ? 0 : options.epsilon;
    gpu::RmsProp(*device_, r, Data(dw), n, Data(w), Data(squares), Data(velocity));
  }

  double SumOfSquares(const Tensor& x) override {
    double* const result = device_->result();
    if (result != nullptr) gpu::SumOfSquares(*device_, Data(x), x.size(), result);
    return device_->ReadResult();
  }
  void Scale(const Tensor& x, float factor) override {
    ByType(x, [&](auto at) { gpu::Scale(*device_, factor, x.size(), at(x)); });
  }

 private:
  Device* const device_;
};

}  // namespace

std::unique_ptr<OptimizerKernels> MakeOptimizerKernels(Device* device) {
  return std::make_unique<CudaOptimizerKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
