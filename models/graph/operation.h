// What one pass of a layer asks of a device, operation by operation: a cost model turns it into
// time (pipelines/cluster/device.h).
//
//   LayerOperations ops = layer.operations(/*samples=*/4, TokenSlice());
//   ops.forward[1].flops;                   // of a matrix product
//
// These are the operations of the mathematics, one kernel each as frameworks launch them: a bias is
// part of its product, attention one operation that writes no scores. `numbers` are those read and
// written, each once. What only the layers of this project do beside (models/layers: computing
// again to save memory, copies into a library's layout) is there too, and says so (`own`); it
// counts on devices that run our kernels, and nowhere else.
//
// A layer whose times were measured, on some device, says them instead (MeasuredOperation).
#ifndef PIPELAB_MODELS_GRAPH_OPERATION_H_
#define PIPELAB_MODELS_GRAPH_OPERATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/cost_math.h"
#include "tools/base/units.h"

namespace pipelab {

// What efficiencies are known for. Products first; the others have none and their flops are not
// counted. Elementwise: sums, copies, look-ups.
enum class OperationKind : uint8_t {
  kMatmul,
  kConvolution,
  kAttention,
  kElementwise,
  kLayerNorm,
  kBatchNorm,
  kActivation,  // ReLU and the like: a comparison a number
  kGelu,        // GELU and others with an exponential in them
  kPool,
  kLoss,       // softmax and its loss
  kOptimizer,  // a step
  kMeasured,
};

const char* OperationKindName(OperationKind kind);  // "matmul": as files write it
// InvalidArgument lists the names that there are.
absl::StatusOr<OperationKind> FindOperationKind(absl::string_view name);

constexpr bool HasProducts(OperationKind kind) { return kind <= OperationKind::kAttention; }

// What adds a product's weight gradient to those of earlier micro-batches.
enum class GradientSums : uint8_t {
  kMachine,  // the product, on machines whose products were measured
  kApart,    // another operation, or none
  kProduct,
};

struct Operation {
  OperationKind kind = OperationKind::kElementwise;
  Flops flops;
  int64_t numbers = 0;
  // y_MN = x_MK w_KN, for devices that compute whole tiles. A convolution: output pixels, output
  // channels, taps x input channels. Attention: queries of a sample, heads of all samples, the size
  // of a head. 0: not known.
  int64_t m = 0, n = 0, k = 0;
  Nanoseconds time;  // kMeasured: this long on any device
  bool own = false;  // only our kernels do it
  // Products of this m, n and k in one kernel: it is as efficient as one of them.
  int64_t groups = 1;
  // Read as they are stored, whatever the type of numbers; not among `numbers`.
  Bytes packed = Bytes(0);
  bool half = false;  // a product of numbers of 2 bytes where others take 1 (fp8)
  // k counts rows (tokens, pixels), as in a weight's gradient. Numbers of a row are next to each
  // other, so of the sizes that are, m is one here and k is not.
  bool sums_rows = false;
  bool backward = false;  // attention's gradient, or a product's for its input
  // Adds a parameter's gradient to those of earlier micro-batches: of a product's weights, or not.
  bool adds_gradient = false, of_product = false;
  GradientSums sums = GradientSums::kMachine;  // of a product that sums rows
  // The host's launches for it: none as a part of a CUDA graph, several for products in groups that
  // are called one by one.
  int64_t calls = 1;
};

// Flops of a pass are those of the layer's costs.
struct LayerOperations {
  std::vector<Operation> forward, backward_input, backward_weight;
};

// x_MK w_KN.
inline Operation MatmulOperation(int64_t m, int64_t n, int64_t k) {
  return {OperationKind::kMatmul, MatmulFlops(m, n, k), m * k + k * n + m * n, m, n, k,
          Nanoseconds(0),         /*own=*/false};
}

inline Operation SumsRows(Operation operation) {
  operation.sums_rows = true;
  return operation;
}

// x_MK^T y_MN, where M are rows: a weight's gradient.
inline Operation WeightGradientOperation(int64_t m, int64_t n, int64_t k) {
  return SumsRows(MatmulOperation(k, n, m));
}

// x_MK w_KN with weights in 4 bits and a scale of 2 bytes for each `group` of them (MARLIN, arXiv
// 2408.11743): flops as before, and so the larger of packed bytes / bandwidth and flops / peak.
inline Operation Int4MatmulOperation(int64_t m, int64_t n, int64_t k, int64_t group) {
  Operation operation = MatmulOperation(m, n, k);
  operation.numbers -= k * n;
  operation.packed = Bytes((k * n + 1) / 2 + (k + group - 1) / group * n * 2);
  return operation;
}

inline Operation ConvolutionOperation(int64_t m, int64_t n, int64_t k, int64_t numbers) {
  return {OperationKind::kConvolution,
          MatmulFlops(m, n, k),
          numbers,
          m,
          n,
          k,
          Nanoseconds(0),
          /*own=*/false};
}

// One without products.
inline Operation MemoryOperation(OperationKind kind, int64_t numbers) {
  Operation operation;
  operation.kind = kind;
  operation.numbers = numbers;
  return operation;
}

inline Operation ElementwiseOperation(int64_t numbers) {
  return MemoryOperation(OperationKind::kElementwise, numbers);
}

// One that only our kernels do.
inline Operation OwnOperation(OperationKind kind, int64_t numbers) {
  Operation operation = MemoryOperation(kind, numbers);
  operation.own = true;
  return operation;
}

inline Operation MeasuredOperation(Nanoseconds time) {
  Operation operation;
  operation.kind = OperationKind::kMeasured;
  operation.time = time;
  return operation;
}

// Queries of a sample, heads of all samples. 0: not known.
struct AttentionSize {
  int64_t queries = 0, heads = 0, head_size = 0;
};

inline Operation AttentionOperation(Flops flops, int64_t numbers, const AttentionSize& size) {
  Operation operation = MemoryOperation(OperationKind::kAttention, numbers);
  operation.flops = flops;
  operation.m = size.queries;
  operation.n = size.heads;
  operation.k = size.head_size;
  return operation;
}

inline Operation AttentionGradientOperation(Flops flops, int64_t numbers,
                                            const AttentionSize& size) {
  Operation operation = AttentionOperation(flops, numbers, size);
  operation.backward = true;
  return operation;
}

// y_MN w_KN^T: the gradient for the input of x_MK w_KN.
inline Operation InputGradientOperation(int64_t m, int64_t n, int64_t k) {
  Operation operation = MatmulOperation(m, k, n);
  operation.backward = true;
  return operation;
}

// The usual three passes of y_MN = x_MK w_KN, added to what is there.
inline void AddMatmul(int64_t m, int64_t n, int64_t k, LayerOperations* ops) {
  ops->forward.push_back(MatmulOperation(m, n, k));
  ops->backward_input.push_back(InputGradientOperation(m, n, k));
  ops->backward_weight.push_back(WeightGradientOperation(m, n, k));
}

// Forward and input gradient of something without products: numbers of each.
inline void AddMemory(OperationKind kind, int64_t forward, int64_t backward, LayerOperations* ops) {
  if (forward > 0) ops->forward.push_back(MemoryOperation(kind, forward));
  if (backward > 0) ops->backward_input.push_back(MemoryOperation(kind, backward));
}

inline void AddElementwise(int64_t forward, int64_t backward, LayerOperations* ops) {
  AddMemory(OperationKind::kElementwise, forward, backward, ops);
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_OPERATION_H_
