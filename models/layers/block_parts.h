// What the two halves of a transformer block have in common: the norm in front and the residual
// around. y = x + dropout(branch(norm(x))).
//
//   ResidualDropout residual(spec);                        // keyed by the layer's name
//   Tensor y = residual.Join(ctx, x, std::move(branch));   // in the branch's memory
//
// Nothing here keeps a mask or a norm's output: masks are drawn again, outputs are computed again.
#ifndef PIPELAB_MODELS_LAYERS_BLOCK_PARTS_H_
#define PIPELAB_MODELS_LAYERS_BLOCK_PARTS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "models/layers/layer.h"

namespace pipelab {

// Parameters of which a layer may lack some, by their places in the list of all of them.
//
//   PresentParameters all(spec, {"gamma", "beta", "w"});
//   all.Of(parameters_, kBeta).value                     // empty where there is no "NAME/beta"
class PresentParameters {
 public:
  PresentParameters(const LayerSpec& spec, std::initializer_list<const char*> names);

  const Parameter& Of(const std::vector<Parameter>& parameters, int place) const {
    return places_[place] < 0 ? none_ : parameters[places_[place]];
  }

 private:
  std::vector<int> places_;
  const Parameter none_;
};

// The means of a norm's rows; empty without a beta, of an RMS norm.
Tensor AllocateMeans(const LayerContext& ctx, const Parameter& beta, int64_t rows);
// Reciprocal ones; empty without a gamma, where there is no norm.
Tensor AllocateDeviations(const LayerContext& ctx, const Parameter& gamma, int64_t rows);

class ResidualDropout {
 public:
  // Takes the layer's name, its attribute "dropout" and its output's shape: [tokens, ...].
  explicit ResidualDropout(const LayerSpec& spec);

  // x + dropout(branch), in the memory of `branch`; without x where the layer has no residual.
  Tensor Join(const LayerContext& ctx, const Tensor& x, Tensor branch_MC) const;
  // The gradient that goes around the branch: dy, or none.
  Tensor Around(const Tensor& dy_MC) const { return residual_ ? dy_MC : Tensor(); }
  // The gradient of the branch's output: `dy` itself where there is no dropout, else a new tensor.
  Tensor BranchGradient(const LayerContext& ctx, const Tensor& dy_MC) const;

 private:
  DropoutMask Mask(const LayerContext& ctx) const;
  // Calls fn(begin, end, mask) for each range of rows that follow one another in the samples: all
  // at once, or a slice's or the device's tokens of each sample, which may be two chunks of them.
  // These thus have the mask of the whole.
  template <typename Fn>
  void ForEachRange(const LayerContext& ctx, int64_t rows, Fn&& fn) const;

  std::string prefix_;  // of the random stream: one a step
  float rate_;
  bool residual_;
  RowPart rows_;
  ContextPart context_;
  int64_t tokens_, elements_per_token_;  // of whole samples
};

// The rows of a layer's products, all of them, and those outside on this device: the same, but
// where a group splits them by tokens.
class ProductRows {
 public:
  explicit ProductRows(const LayerSpec& spec) : part_(spec.rows) {}

  RowPart part() const { return part_; }
  int64_t all(int64_t own) const { return own * part_.parts; }
  // What a product takes: gathered in a new tensor, or as it is.
  Tensor Gather(const LayerContext& ctx, Tensor own_MC) const;
  // What the group's partial results of all rows add up to, on the own ones: in a new tensor, or in
  // place.
  Tensor Sum(const LayerContext& ctx, Tensor all_MC) const;

 private:
  RowPart part_;
};

// norm(x) once more, bit for bit, in a new tensor: with the same mean and deviation, which it
// writes again. Without a gamma x itself.
Tensor NormAgain(const LayerContext& ctx, const Tensor& x_MC, const Parameter& gamma,
                 const Parameter& beta, const Tensor& mean_M, const Tensor& rstd_M);

// The gradient of x = the residual's own dy, if any, + the norm's, in a new tensor; without a gamma
// in that of the norm's.
Tensor NormResidualGradient(const LayerContext& ctx, const Tensor& dnorm_MC, const Tensor& x_MC,
                            const Parameter& gamma, const Tensor& mean_M, const Tensor& rstd_M,
                            const Tensor& dy_MC);

// Adds to the gradients of gamma and beta. Without a gamma nothing.
void NormWeightGradient(const LayerContext& ctx, const Tensor& dnorm_MC, const Tensor& x_MC,
                        const Parameter& gamma, const Parameter& beta, const Tensor& mean_M,
                        const Tensor& rstd_M);

// A parameter's numbers are added to each row, kRowsAtOnce at a time; and their gradient, from that
// of the rows.
inline constexpr int64_t kRowsAtOnce = 64;
void AddToRows(const LayerContext& ctx, const Tensor& value_C, const Tensor& y_MC);
void AddRowsTo(const LayerContext& ctx, const Tensor& dy_MC, const Tensor& gradient_C);

// A tensor as large as `like`, of its type.
Tensor AllocateLike(const LayerContext& ctx, const Tensor& like);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_BLOCK_PARTS_H_
