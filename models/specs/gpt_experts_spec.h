// A mixture of experts in the place of a GPT block's feed-forward (gpt_mlp_spec.h): each token
// takes a few of many gated feed-forwards of one size. y = x + dropout(sum over the chosen experts
// e of weight_e (act(g_e) u_e) w2_e), with norm(x) in front of the router, a product without bias,
// and of the experts. What it costs; gpt_experts.cc runs it.
//
//   LayerSpec layer = GptExpertsSpec({.name = "block0/experts", .input = 1, .tokens = 128,
//                                     .hidden = 256, .inner = 256, .choice = {8, 2}});
//
// Flops count what a token takes, parameters all there are. Rows of M tokens with K choices are
// R = M K whatever the tokens choose, and also where a capacity drops some, so nothing that one
// device holds of all experts depends on data. It keeps the norm's statistics, the logits [M, E],
// where the choices go, and the gates and values [R, 2 inner]; the rest is computed again, as in
// gpt_mlp. S shared experts, which all tokens take, are one feed-forward of S inner columns.
//
// The balancing loss is one for each sample (ExpertKernels::RouteGradient), averaged over the
// batch's samples as if each token had one target. Its gradient is added in the layer's backward;
// the model's loss does not show it. With it, or with a capacity, which is one for each sample too,
// the layer takes whole samples. Thus training does not depend on how samples are divided.
//
// A group splits it as gpt_mlp: each expert's inner columns. The router is whole on all devices;
// they sum the gradient of the weights besides.
//
// Expert parallelism (TensorParallel::experts): rows go to the devices of their experts and stay
// there for the weight gradient, with the gradients of rows; so two all-to-alls of rows forward and
// two backward. Besides these go how many rows each expert gets from each device, the weights of
// rows, and their gradients. Shared experts are on every device. Costs are of an even load;
// GptExpertsCosts has the memory of any.
#ifndef PIPELAB_MODELS_SPECS_GPT_EXPERTS_SPEC_H_
#define PIPELAB_MODELS_SPECS_GPT_EXPERTS_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"  // IWYU pragma: export

namespace pipelab {

inline constexpr char kGptExperts[] = "gpt_experts";
inline constexpr char kExpertBiases[] = "biases";  // the attribute of biases

struct GptExpertsSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0, inner = 0;
  ExpertChoice choice;
  FeedForwardKind kind = FeedForwardKind::kSwiGlu;  // one with a gate
  NormKind norm = NormKind::kRms;
  bool biases = false;  // of the router and the routed experts' products (gpt-oss)
  double dropout = 0;
  double stddev = 0.02, projection_stddev = 0.02;  // of the router and w1, of w2
};

// In the order of LayerSpec::parameters, which lacks an RMS norm's beta and what no shared experts
// have: [C], [C], [C, E], [E, C, 2F], [E, F, C], [C, 2SF], [SF, C]; or of biases: [E], [E, 2F], [E,
// C].
struct GptExpertsParameter {
  enum { kGamma, kBeta, kRouter, kW1, kW2, kSharedW1, kSharedW2, kRouterBias, kB1, kB2 };
};

LayerSpec GptExpertsSpec(const GptExpertsSizes& sizes);

// Where the device's experts get `came` rows of all devices that divide them.
LayerCosts GptExpertsCosts(const GptExpertsSizes& sizes, int64_t samples, TensorParallel split,
                           int64_t came, NumberWidth width = NumberWidth());

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_GPT_EXPERTS_SPEC_H_
