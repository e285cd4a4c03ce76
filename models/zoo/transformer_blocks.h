// What models made of Transformer blocks have in common: the half blocks, added to a graph with the
// sizes of the model.
//
//   TransformerSizes s;
//   s.tokens = 128;  ...
//   int last = AddSelfAttention(s, "block0/attention", /*input=*/0, &graph);
//   last = AddFeedForward(s, "block0/mlp", last, &graph);
//
// Each returns the index of the layer that it added. Matrices start as GPT-2's: normal 0.02, those
// into the residual divided by the root of the number of branches that it has.
#ifndef PIPELAB_MODELS_ZOO_TRANSFORMER_BLOCKS_H_
#define PIPELAB_MODELS_ZOO_TRANSFORMER_BLOCKS_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"

namespace pipelab {

inline constexpr double kTransformerStddev = 0.02;

struct TransformerSizes {
  int64_t tokens = 0, hidden = 0, heads = 0;
  int64_t head_size = 0;  // 0: hidden / heads
  int64_t kv_heads = 0;   // of self attention: GptAttentionSizes::kv_heads
  int64_t feed_forward = 0;
  FeedForwardKind feed_forward_kind = FeedForwardKind::kGelu;
  bool exact_gelu = false;    // GptMlpSizes::exact_gelu
  ExpertChoice experts = {};  // of AddExperts
  NormKind norm = NormKind::kLayer;
  // Behind self attention and feed-forward, too, in front of the sum: a norm and a sum are layers
  // of their own then, "NAME_norm" and "NAME_sum".
  bool post_norms = false;
  bool query_key_norms = false;  // of self attention
  LatentHeads latent = {};       // of self attention; rank > 0: latent attention
  double rotary_base = 0;        // of self attention: GptAttentionSizes::rotary_base
  bool sinks = false;            // of self attention
  Biases biases = Biases::kAll;  // of the products of self attention, feed-forward and experts
  double dropout = 0;
  int64_t residual_branches = 1;  // half blocks of the residual stream
  bool causal = true;
  int64_t window = 0;            // of self attention: GptAttentionSizes::window
  int64_t key_tile = 0;          // of self attention: GptAttentionSizes::key_tile
  std::string key_lengths = {};  // not causal: GptAttentionSizes::key_lengths
};

// The last layer of the graph.
inline int LastLayer(const ModelGraph& graph) { return static_cast<int>(graph.layers.size()) - 1; }

int AddSelfAttention(const TransformerSizes& sizes, const std::string& name, int input,
                     ModelGraph* graph);
int AddFeedForward(const TransformerSizes& sizes, const std::string& name, int input,
                   ModelGraph* graph);
// Experts of `feed_forward` each, in the place of a feed-forward.
int AddExperts(const TransformerSizes& sizes, const std::string& name, int input,
               ModelGraph* graph);
// To the layer `memory`, all of whose rows are keys, or as many as the data field `key_lengths`
// says.
int AddCrossAttention(const TransformerSizes& sizes, const std::string& name, int input, int memory,
                      const std::string& key_lengths, ModelGraph* graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_TRANSFORMER_BLOCKS_H_
