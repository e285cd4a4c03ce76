// What a graph network does along the edges of a block: rows of sources to rows of targets, and
// gradients back.
//
//   GraphKernels& graphs = backend->graphs();
//   graphs.Gather(vertices_M, x_VC, y_MC);                        // rows by number
//   graphs.Aggregate(index, AggregateMode::kMean, x_SC, y_TC);    // of each target's sources
//   graphs.AggregateGradient(index, AggregateMode::kMean, dy_TC, dx_SC);
//
// S sources, T targets, E edges; the first T sources are the targets themselves. Edges lie by
// target; the index also has them by source, so that a gradient is a sum in a fixed order and
// nobody adds to what another adds to: no atomics, and the same bits in every run.
// AggregateGradient with kSum is a scatter-add of rows by the index.
//
// Papers: Hamilton et al. (GraphSAGE), NeurIPS 2017; Xu et al. (GIN), ICLR 2019; Velickovic et al.
// (GAT), ICLR 2018.
#ifndef PIPELAB_KERNELS_GRAPH_KERNELS_H_
#define PIPELAB_KERNELS_GRAPH_KERNELS_H_

#include <cstdint>

#include "kernels/tensor/tensor.h"

namespace pipelab {

struct DropoutMask;  // kernels/backend.h

// A block's edges: int32 tensors on the backend's device (models/layers/graph_index.h makes them).
struct GraphIndex {
  int64_t num_sources = 0, num_targets = 0, num_edges = 0;
  Tensor offsets_T1, sources_E;          // by target
  Tensor targets_E;                      // of each edge
  Tensor back_offsets_S1, back_edges_E;  // by source: places of edges, ascending
  Tensor vertices_T;                     // numbers of the targets in the graph; keys dropout
};

enum class AggregateMode : uint8_t {
  kSum,
  kMean,        // zeros for a target without edges
  kSelfAndSum,  // the target's own row too
};

// Sizes that fit, or CHECK, naming the kernel. Of an index on the host the numbers are checked too.
void CheckGraphIndex(const char* kernel, const GraphIndex& index);
// x_SC and y_TC of one width.
void CheckAggregate(const char* kernel, const GraphIndex& index, const Tensor& x_SC,
                    const Tensor& y_TC);
// [edges, heads], and heads that divide the columns of x_MC (where it is not empty).
void CheckHeads(const char* kernel, const Tensor& a_EH, int64_t rows, const Tensor& x_MC);
void CheckGather(const char* kernel, const Tensor& ids_M, const Tensor& x_VC, const Tensor& y_MC);

class GraphKernels {
 public:
  virtual ~GraphKernels() = default;

  // y[i] = x[ids[i]].
  void Gather(const Tensor& ids_M, const Tensor& x_VC, const Tensor& y_MC) {
    CheckGather("Gather", ids_M, x_VC, y_MC);
    DoGather(ids_M, x_VC, y_MC);
  }
  // y = dropout(x), where a row's mask is that of its number: element c of row i is element
  // ids[i] C + c of the mask's stream. So a vertex has one mask wherever its row lies. y may be x.
  void DropRows(const Tensor& ids_M, const DropoutMask& mask, const Tensor& x_MC,
                const Tensor& y_MC) {
    CheckGather("DropRows", ids_M, Tensor(), y_MC);
    CheckGather("DropRows", ids_M, Tensor(), x_MC);
    DoDropRows(ids_M, mask, x_MC, y_MC);
  }

  void Aggregate(const GraphIndex& index, AggregateMode mode, const Tensor& x_SC,
                 const Tensor& y_TC) {
    CheckAggregate("Aggregate", index, x_SC, y_TC);
    DoAggregate(index, mode, x_SC, y_TC);
  }
  void AggregateGradient(const GraphIndex& index, AggregateMode mode, const Tensor& dy_TC,
                         const Tensor& dx_SC) {
    CheckAggregate("AggregateGradient", index, dx_SC, dy_TC);
    DoAggregateGradient(index, mode, dy_TC, dx_SC);
  }

  // The rest is in float32 alone.

  // y[m, h] = x[m, head h] . w[head h]; dx += dy w; dw += x dy.
  void HeadProducts(const Tensor& x_MC, const Tensor& w_C, const Tensor& y_MH) {
    CheckHeads("HeadProducts", y_MH, x_MC.dim(0), x_MC);
    DoHeadProducts(x_MC, w_C, y_MH);
  }
  void HeadProductsInputGradient(const Tensor& dy_MH, const Tensor& w_C, const Tensor& dx_MC) {
    CheckHeads("HeadProductsInputGradient", dy_MH, dx_MC.dim(0), dx_MC);
    DoHeadProductsInputGradient(dy_MH, w_C, dx_MC);
  }
  void HeadProductsWeightGradient(const Tensor& x_MC, const Tensor& dy_MH, const Tensor& dw_C) {
    CheckHeads("HeadProductsWeightGradient", dy_MH, x_MC.dim(0), x_MC);
    DoHeadProductsWeightGradient(x_MC, dy_MH, dw_C);
  }
  // a[e, h] = softmax over the target's edges of leaky_relu(source[s, h] + target[t, h]).
  void EdgeSoftmax(const GraphIndex& index, float slope, const Tensor& source_SH,
                   const Tensor& target_TH, const Tensor& a_EH) {
    CheckAggregate("EdgeSoftmax", index, source_SH, target_TH);
    CheckHeads("EdgeSoftmax", a_EH, index.num_edges, Tensor());
    DoEdgeSoftmax(index, slope, source_SH, target_TH, a_EH);
  }
  // da becomes the gradient of the sums under leaky_relu.
  void EdgeSoftmaxGradient(const GraphIndex& index, float slope, const Tensor& source_SH,
                           const Tensor& target_TH, const Tensor& a_EH, const Tensor& da_EH,
                           const Tensor& dsource_SH, const Tensor& dtarget_TH) {
    CheckAggregate("EdgeSoftmaxGradient", index, dsource_SH, dtarget_TH);
    CheckHeads("EdgeSoftmaxGradient", da_EH, index.num_edges, Tensor());
    DoEdgeSoftmaxGradient(index, slope, source_SH, target_TH, a_EH, da_EH, dsource_SH, dtarget_TH);
  }
  // y[t, head h] = the sum over edges of a[e, h] x[s, head h].
  void Weighed(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
               const Tensor& y_TC) {
    CheckAggregate("Weighed", index, x_SC, y_TC);
    CheckHeads("Weighed", a_EH, index.num_edges, x_SC);
    DoWeighed(index, a_EH, x_SC, y_TC);
  }
  void WeighedGradient(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                       const Tensor& dy_TC, const Tensor& da_EH, const Tensor& dx_SC) {
    CheckAggregate("WeighedGradient", index, dx_SC, dy_TC);
    CheckHeads("WeighedGradient", da_EH, index.num_edges, x_SC);
    DoWeighedGradient(index, a_EH, x_SC, dy_TC, da_EH, dx_SC);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoGather(const Tensor& ids_M, const Tensor& x_VC, const Tensor& y_MC) = 0;
  virtual void DoDropRows(const Tensor& ids_M, const DropoutMask& mask, const Tensor& x_MC,
                          const Tensor& y_MC) = 0;
  virtual void DoAggregate(const GraphIndex& index, AggregateMode mode, const Tensor& x_SC,
                           const Tensor& y_TC) = 0;
  virtual void DoAggregateGradient(const GraphIndex& index, AggregateMode mode, const Tensor& dy_TC,
                                   const Tensor& dx_SC) = 0;
  virtual void DoHeadProducts(const Tensor& x_MC, const Tensor& w_C, const Tensor& y_MH) = 0;
  virtual void DoHeadProductsInputGradient(const Tensor& dy_MH, const Tensor& w_C,
                                           const Tensor& dx_MC) = 0;
  virtual void DoHeadProductsWeightGradient(const Tensor& x_MC, const Tensor& dy_MH,
                                            const Tensor& dw_C) = 0;
  virtual void DoEdgeSoftmax(const GraphIndex& index, float slope, const Tensor& source_SH,
                             const Tensor& target_TH, const Tensor& a_EH) = 0;
  virtual void DoEdgeSoftmaxGradient(const GraphIndex& index, float slope, const Tensor& source_SH,
                                     const Tensor& target_TH, const Tensor& a_EH,
                                     const Tensor& da_EH, const Tensor& dsource_SH,
                                     const Tensor& dtarget_TH) = 0;
  virtual void DoWeighed(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                         const Tensor& y_TC) = 0;
  virtual void DoWeighedGradient(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                                 const Tensor& dy_TC, const Tensor& da_EH, const Tensor& dx_SC) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_GRAPH_KERNELS_H_
