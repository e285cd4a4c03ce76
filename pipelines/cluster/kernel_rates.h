// How fast the kernels of a GPU were measured to be, by the three sizes of one: products by m, n
// and k, attention by tokens, heads and the size of a head.
//
//   PIPELAB_ASSIGN_OR_RETURN(const RateGrid table, RateGrid::Make({m, n, k}, rates));
//   table.At({4096, 8192, 8192});                         // flop/s
//   device.rates->Find(OperationKind::kMatmul, NumberType::kFp8);
//
// Between the sizes of a table its rates are straight on paper with logarithms on all sides. Beyond
// the largest size the rate is constant; below the smallest it falls with the size, so that the
// time is constant there. Products have the smallest size's rate down to a tile of 128: libraries
// have smaller tiles and divided sums for few rows, and reading the weights takes longer then
// (OperationTime). A larger operation is never slower, and never takes less time
// (RateGrid::Make refuses the rest), which is what bounds of a search rest on; the tables of the
// catalogue are measured times after a regression with these two constraints
// (tools/cluster/kernel_rates.py).
//
// A machine may have a list of exact shapes and passes in a table's place (shape_rates.h).
//
// A table takes the place of the share of the peak, of the product's tile and of its ramp. Kernels
// were timed alone, before clocks throttle, so a step has `sustained` of their rates.
//
// Grouped products run in one kernel, at the rate of one product with the rows of all of them. A
// weight's gradient is added to sums in 4 bytes, which are read and written beside the product.
// Attention's length is twice the keys that a query reads in the mean, so that a causal sample's is
// its tokens. Backward it has `attention_backward` of the forward's rate.
#ifndef PIPELAB_PIPELINES_CLUSTER_KERNEL_RATES_H_
#define PIPELAB_PIPELINES_CLUSTER_KERNEL_RATES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/graph/operation.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cluster/shape_rates.h"

namespace pipelab {

// Rows, columns or terms of a product below which it takes no less time.
inline constexpr double kProductTile = 128;

// Keys that a query reads in the mean. All sizes of the attention must be known.
double KeysRead(const Operation& attention);

class RateGrid {
 public:
  using Sizes = std::array<double, 3>;

  // `rates`, in flop/s, of each size of the first axis, of the second, of the third in turn.
  // InvalidArgument says which number is wrong.
  static absl::StatusOr<RateGrid> Make(std::array<std::vector<double>, 3> axes,
                                       std::vector<double> rates);

  double At(const Sizes& sizes) const;

  const std::array<std::vector<double>, 3>& axes() const { return axes_; }
  const std::vector<double>& rates() const { return rates_; }

 private:
  std::array<std::vector<double>, 3> axes_;
  std::vector<double> rates_;
  std::array<std::vector<double>, 3> log_axes_;
  std::vector<double> log_rates_;
};

struct KernelRates {
  // "h100-sxm": a file of pipelines/cluster/rates. Empty: the cluster's file holds the tables.
  std::string name;
  std::map<std::pair<OperationKind, NumberType>, Sourced<RateGrid>> tables;
  // They take the place of a table, for the passes that they have.
  std::map<std::pair<OperationKind, NumberType>, Sourced<ShapeRates>> shapes;
  // The share of the forward's rate that the backward pass has. Unset: 1.
  absl::optional<Sourced<double>> attention_backward;
  // The share of all rates that a training step has. Unset: 1.
  absl::optional<Sourced<double>> sustained;

  // bf16's for fp16, which has the same units; null where there is none.
  const RateGrid* Find(OperationKind kind, NumberType type) const;
  const ShapeRates* FindShapes(OperationKind kind, NumberType type) const;

  // In flop/s, of an operation that a table has; none of others.
  absl::optional<double> RateOf(const Operation& operation, NumberType type) const;
  // Whether rates of weights' gradients have in them what adds these to sums.
  bool HasSums(NumberType type) const;
};

// The share of the peak counts there again.
void DropRates(OperationKind kind, NumberType type, DeviceSpec* device);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_KERNEL_RATES_H_
