// Rates of exact shapes: what one machine's kernels were measured to do, shape by shape and pass by
// pass. A grid (kernel_rates.h) says what sizes between its own get; this is for a machine whose
// owner timed the shapes of the models that run there.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ShapeRates rates, ShapeRates::Make(OperationKind::kMatmul, {
//       {KernelPass::kForward, 8192, 6144, 4096, /*groups=*/1, /*tflops=*/700}}));
//   rates.RateOf(MatmulOperation(8192, 6144, 4096));       // 7e14 flop/s
//
// Sizes are those of the layer's product y_MN = x_MK w_KN in all three passes; of grouped products,
// those of one group. Attention has tokens, heads and the size of a head as m, n and k, forward and
// as an input gradient; its rates are those of a causal sample. Where a query reads other keys,
// such as with a window or with a part of the tokens, what counts is the sample whose queries read
// as many, with as many heads as make as many queries.
//
// A shape that the list lacks has the rate of its neighbours: the geometric mean of the four
// nearest of its pass, by the distance of the logarithms of all sizes, weighted by one over the
// distance (Shepard, "A two-dimensional interpolation function for irregularly-spaced data", 1968).
// Products have groups, or none, as their neighbours do. Below the smallest size of a pass the time
// is constant, but that of products falls down to a tile (kernel_rates.h). Unlike a grid's, these
// rates may make a larger operation take less time, as measured kernels do.
//
// A weight's gradient has what it takes to add it to sums in 4 bytes in its time.
#ifndef PIPELAB_PIPELINES_CLUSTER_SHAPE_RATES_H_
#define PIPELAB_PIPELINES_CLUSTER_SHAPE_RATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "models/graph/operation.h"

namespace pipelab {

enum class KernelPass : uint8_t { kForward, kInputGradient, kWeightGradient };

const char* KernelPassName(KernelPass pass);  // "input_gradient"
// InvalidArgument lists the names that there are.
absl::StatusOr<KernelPass> FindKernelPass(absl::string_view name);

struct ShapeRate {
  KernelPass pass = KernelPass::kForward;
  int64_t m = 0, n = 0, k = 0;
  int64_t groups = 1;
  double tflops = 0;
};

class ShapeRates {
 public:
  static constexpr size_t kMost = 4096;

  // Equal shapes become one, with the geometric mean of their rates. InvalidArgument says which
  // shape is wrong.
  static absl::StatusOr<ShapeRates> Make(OperationKind kind, std::vector<ShapeRate> shapes);

  // In flop/s. None where no shape of the pass is known, with groups or without.
  absl::optional<double> RateOf(const Operation& operation) const;
  bool Has(const Operation& operation) const;  // this very shape

  // Shapes in order of pass, groups and sizes.
  const std::vector<ShapeRate>& shapes() const { return shapes_; }
  // The median of how far the rule is off for each shape that has neighbours, without it: 0.05 is 5
  // %. Takes time with the square of the shapes.
  double LeftOutError() const;

 private:
  using Sizes = std::array<double, 4>;  // m, n, k, groups
  struct Pass {
    std::vector<size_t> shapes;  // places in shapes_
    Sizes least{};
  };
  using Key = std::pair<KernelPass, bool>;  // whether in groups

  static Key KeyOf(KernelPass pass, double groups) { return {pass, groups > 1}; }
  const ShapeRate* Find(KernelPass pass, const Sizes& sizes) const;
  double Nearest(const Pass& pass, const Sizes& sizes, const ShapeRate* without) const;

  OperationKind kind_ = OperationKind::kMatmul;
  std::vector<ShapeRate> shapes_;
  std::map<Key, Pass> passes_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_SHAPE_RATES_H_
