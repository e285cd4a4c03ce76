#include "models/zoo/transformer_blocks.h"

#include <cmath>
#include <utility>

#include "models/specs/add_spec.h"
#include "models/specs/cross_attention_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/norm_spec.h"

namespace pipelab {
namespace {

double ProjectionStddev(const TransformerSizes& s) {
  return kTransformerStddev / std::sqrt(static_cast<double>(s.residual_branches));
}

int Append(LayerSpec layer, ModelGraph* graph) {
  graph->layers.push_back(std::move(layer));
  return LastLayer(*graph);
}

// With what all layers of a block have.
template <class Sizes>
Sizes LayerSizes(const TransformerSizes& s, const std::string& name, int input) {
  Sizes sizes;
  sizes.name = name;
  sizes.input = input;
  sizes.tokens = s.tokens;
  sizes.hidden = s.hidden;
  sizes.dropout = s.dropout;
  sizes.stddev = kTransformerStddev;
  sizes.projection_stddev = ProjectionStddev(s);
  return sizes;
}

// The branch, the last layer of the graph, with a norm behind it where there are such.
int Close(const TransformerSizes& s, const std::string& name, int input, ModelGraph* graph) {
  if (!s.post_norms) return LastLayer(*graph);
  NormSizes norm{name + "_norm", LastLayer(*graph), s.tokens, s.hidden};
  norm.kind = s.norm;
  const int normed = Append(NormSpec(norm), graph);
  return Append(AddSpec({name + "_sum", {input, normed}, {s.tokens, s.hidden}}), graph);
}

int AddLatentAttention(const TransformerSizes& s, const std::string& name, int input,
                       ModelGraph* graph) {
  auto attention = LayerSizes<GptLatentAttentionSizes>(s, name, input);
  attention.heads = s.heads;
  attention.latent = s.latent;
  attention.rotary_base = s.rotary_base;
  attention.norm = s.norm;
  attention.key_tile = s.key_tile;
  return Append(GptLatentAttentionSpec(attention), graph);
}

}  // namespace

int AddSelfAttention(const TransformerSizes& s, const std::string& name, int input,
                     ModelGraph* graph) {
  if (s.latent.rank > 0) return AddLatentAttention(s, name, input, graph);
  auto attention = LayerSizes<GptAttentionSizes>(s, name, input);
  attention.heads = s.heads;
  attention.kv_heads = s.kv_heads;
  attention.head_size = s.head_size;
  attention.causal = s.causal;
  attention.window = s.window;
  attention.key_lengths = s.key_lengths;
  attention.norm = s.norm;
  attention.key_tile = s.key_tile;
  attention.query_key_norms = s.query_key_norms;
  attention.rotary_base = s.rotary_base;
  attention.sinks = s.sinks;
  attention.biases = s.biases;
  attention.residual = !s.post_norms;
  Append(GptAttentionSpec(attention), graph);
  return Close(s, name, input, graph);
}

int AddFeedForward(const TransformerSizes& s, const std::string& name, int input,
                   ModelGraph* graph) {
  auto mlp = LayerSizes<GptMlpSizes>(s, name, input);
  mlp.inner = s.feed_forward;
  mlp.kind = s.feed_forward_kind;
  mlp.exact_gelu = s.exact_gelu;
  mlp.norm = s.norm;
  mlp.biases = s.biases == Biases::kAll;
  mlp.residual = !s.post_norms;
  Append(GptMlpSpec(mlp), graph);
  return Close(s, name, input, graph);
}

int AddExperts(const TransformerSizes& s, const std::string& name, int input, ModelGraph* graph) {
  auto experts = LayerSizes<GptExpertsSizes>(s, name, input);
  experts.inner = s.feed_forward;
  experts.choice = s.experts;
  experts.kind = s.feed_forward_kind;
  experts.norm = s.norm;
  experts.biases = s.biases == Biases::kAll;
  return Append(GptExpertsSpec(experts), graph);
}

int AddCrossAttention(const TransformerSizes& s, const std::string& name, int input, int memory,
                      const std::string& key_lengths, ModelGraph* graph) {
  auto cross = LayerSizes<CrossAttentionSizes>(s, name, input);
  cross.memory = memory;
  cross.memory_tokens = graph->layers[memory].output_shape[0];
  cross.heads = s.heads;
  cross.head_size = s.head_size;
  cross.key_lengths = key_lengths;
  return Append(CrossAttentionSpec(cross), graph);
}

}  // namespace pipelab
