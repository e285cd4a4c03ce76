// The kernels that a machine is measured with: each kind of operation, over sizes, forward and
// backward, called as layers call them.
//
//   ProbeTensors tensors(backend.get());
//   std::function<void()> call = KernelProbes(ProbeSizes::kAll)[0].prepare(&tensors);
//   call();
//
// An operation is stated as the layers' specifications state it (models/layers): the time of the
// call is then the time of that operation. Shapes are a grid of powers of two; none is taken from a
// model.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_KERNEL_PROBE_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_KERNEL_PROBE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "models/graph/operation.h"

namespace pipelab {

// Where a call's tensors come from, as a network's would: what the kernel before it has written is
// in the caches next to the core (hot), weights and what was kept for the backward are not (cold).
// Contents are normal.
class ProbeTensors {
 public:
  explicit ProbeTensors(Backend* backend) : backend_(backend) {}

  Backend* backend() { return backend_; }
  Tensor Cold(Shape shape);
  Tensor Hot(Shape shape);
  // As the kernel before the call would.
  void WriteHot();

 private:
  Backend* const backend_;
  std::vector<Tensor> hot_;
};

struct KernelProbe {
  std::string name;  // "Linear/256x128x512"
  Operation operation;
  // Numbers that the call copies besides (a convolution's weights, into the library's layout and
  // back), an operation of its own where layers state it.
  int64_t copied = 0;
  int64_t bytes = 0;  // of its tensors
  // Makes the tensors of one call; the result calls the kernel on them, and allocates its output
  // where layers do.
  std::function<std::function<void()>(ProbeTensors*)> prepare;
};

enum class ProbeSizes { kAll, kQuick };  // quick: two sizes of each

std::vector<KernelProbe> KernelProbes(ProbeSizes sizes);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_KERNEL_PROBE_H_
