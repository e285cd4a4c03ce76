// What half blocks of a Transformer may be of besides their sizes: the norm in front of them, and
// the nonlinearity of the feed-forward.
//
//   NormStatistics(NormKind::kRms)   // 1: the reciprocal deviation of a row
#ifndef PIPELAB_MODELS_SPECS_BLOCK_KINDS_H_
#define PIPELAB_MODELS_SPECS_BLOCK_KINDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

enum class NormKind : uint8_t {
  kLayer,  // gamma and beta; a row's mean and reciprocal deviation are kept
  kRms,    // gamma alone, about 0 (Zhang and Sennrich, NeurIPS 2019)
  kNone,   // a half block without: its norm is a layer behind it, as in BERT
};

enum class FeedForwardKind : uint8_t {
  kGelu,    // gelu(x w1 + b1) w2 + b2
  kSwiGlu,  // (swish(g) u) w2, with g and u from one product (Shazeer, arXiv 2002.05202)
  kGeGlu,   // (gelu(g) u) w2
};

// The attribute of a half block that does not add its input: its output is the branch.
inline constexpr char kNoResidual[] = "no_residual";

// How tokens choose among experts (gpt_experts_spec.h).
struct ExpertChoice {
  int64_t experts = 0, chosen = 0;  // 0 experts: there is a feed-forward for all
  int64_t shared = 0;               // experts besides, that all tokens take with weight 1
  // Experts lie on so many nodes, and a token's come from `most_nodes` of them, which changes no
  // cost (kernels/router_shape.h); 0: from all.
  int64_t nodes = 0, most_nodes = 0;
  // Scores are each expert's sigmoid, as in DeepSeek-V3, or the softmax over all.
  bool sigmoid = false;
  bool normalized = true;  // weights are shares of the chosen scores
  double scale = 1;        // of the weights
  // An expert takes at most so many times its even share of a sample's choices; 0: all.
  double capacity_factor = 0;
  double balance = 0;  // factor of the balancing loss
};

// Whether a choice with nodes has room on them; NodesRule says what is wrong where it has not.
inline bool HasRoomOnNodes(const ExpertChoice& e) {
  return 0 < e.nodes && e.nodes <= 64 && e.experts % e.nodes == 0 && 0 < e.most_nodes &&
         e.most_nodes <= e.nodes && e.chosen <= e.most_nodes * (e.experts / e.nodes);
}
inline std::string NodesRule(const ExpertChoice& e) {
  return "must be at most 64 and divide the " + std::to_string(e.experts) + " experts, and " +
         std::to_string(e.most_nodes) + " of them (most_nodes) must have " +
         std::to_string(e.chosen);
}

// Multi-head latent attention (gpt_latent_attention_spec.h). A head's queries and keys are
// rope_size + nope_size wide, of which the first turn with their position.
struct LatentHeads {
  int64_t query_rank = 0;  // of q's low-rank product; 0: q is one product
  int64_t rank = 0;        // of keys and values; 0: attention is no such
  int64_t nope_size = 0, rope_size = 0, value_size = 0;

  int64_t head_size() const { return nope_size + rope_size; }
};

// Which products of self attention add a bias.
enum class Biases : uint8_t { kAll, kNone, kQueryKeyValue };

// Numbers that a norm keeps of a row.
inline int64_t NormStatistics(NormKind norm) {
  return norm == NormKind::kNone ? 0 : norm == NormKind::kLayer ? 2 : 1;
}

// The norm's parameters, in front of a layer's others.
inline std::vector<ParameterSpec> NormParameters(NormKind norm, const std::string& name,
                                                 int64_t hidden) {
  if (norm == NormKind::kNone) return {};
  std::vector<ParameterSpec> parameters = {{name + "/gamma", {hidden}, InitKind::kOnes, 0, ""}};
  if (norm == NormKind::kLayer) {
    parameters.push_back({name + "/beta", {hidden}, InitKind::kZeros, 0, ""});
  }
  return parameters;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_BLOCK_KINDS_H_
