#include "models/zoo/transformer_blocks.h"

#include <cmath>
#include <utility>

#include "models/specs/cross_attention_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"

namespace pipelab {
namespace {

double ProjectionStddev(const TransformerSizes& s) {
  return kTransformerStddev / std::sqrt(static_cast<double>(s.residual_branches));
}

int Add(LayerSpec layer, ModelGraph* graph) {
  graph->layers.push_back(std::move(layer));
  return LastLayer(*graph);
}

int AddLatentAttention(const TransformerSizes& s, const std::string& name, int input,
                       ModelGraph* graph) {
  GptLatentAttentionSizes attention;
  attention.name = name;
  attention.input = input;
  attention.tokens = s.tokens;
  attention.hidden = s.hidden;
  attention.heads = s.heads;
  attention.latent = s.latent;
  attention.rotary_base = s.rotary_base;
  attention.norm = s.norm;
  attention.dropout = s.dropout;
  attention.stddev = kTransformerStddev;
  attention.projection_stddev = ProjectionStddev(s);
  return Add(GptLatentAttentionSpec(attention), graph);
}

}  // namespace

int AddSelfAttention(const TransformerSizes& s, const std::string& name, int input,
                     ModelGraph* graph) {
  if (s.latent.rank > 0) return AddLatentAttention(s, name, input, graph);
  GptAttentionSizes attention;
  attention.name = name;
  attention.input = input;
  attention.tokens = s.tokens;
  attention.hidden = s.hidden;
  attention.heads = s.heads;
  attention.kv_heads = s.kv_heads;
  attention.head_size = s.head_size;
  attention.causal = s.causal;
  attention.window = s.window;
  attention.key_lengths = s.key_lengths;
  attention.norm = s.norm;
  attention.query_key_norms = s.query_key_norms;
  attention.rotary_base = s.rotary_base;
  attention.biases = s.biases;
  attention.dropout = s.dropout;
  attention.stddev = kTransformerStddev;
  attention.projection_stddev = ProjectionStddev(s);
  return Add(GptAttentionSpec(attention), graph);
}

int AddFeedForward(const TransformerSizes& s, const std::string& name, int input,
                   ModelGraph* graph) {
  GptMlpSizes mlp;
  mlp.name = name;
  mlp.input = input;
  mlp.tokens = s.tokens;
  mlp.hidden = s.hidden;
  mlp.inner = s.feed_forward;
  mlp.kind = s.feed_forward_kind;
  mlp.norm = s.norm;
  mlp.biases = s.biases == Biases::kAll;
  mlp.dropout = s.dropout;
  mlp.stddev = kTransformerStddev;
  mlp.projection_stddev = ProjectionStddev(s);
  return Add(GptMlpSpec(mlp), graph);
}

int AddExperts(const TransformerSizes& s, const std::string& name, int input, ModelGraph* graph) {
  GptExpertsSizes experts;
  experts.name = name;
  experts.input = input;
  experts.tokens = s.tokens;
  experts.hidden = s.hidden;
  experts.inner = s.feed_forward;
  experts.choice = s.experts;
  experts.kind = s.feed_forward_kind;
  experts.norm = s.norm;
  experts.dropout = s.dropout;
  experts.stddev = kTransformerStddev;
  experts.projection_stddev = ProjectionStddev(s);
  return Add(GptExpertsSpec(experts), graph);
}

int AddCrossAttention(const TransformerSizes& s, const std::string& name, int input, int memory,
                      const std::string& key_lengths, ModelGraph* graph) {
  CrossAttentionSizes cross;
  cross.name = name;
  cross.input = input;
  cross.memory = memory;
  cross.tokens = s.tokens;
  cross.memory_tokens = graph->layers[memory].output_shape[0];
  cross.hidden = s.hidden;
  cross.heads = s.heads;
  cross.head_size = s.head_size;
  cross.key_lengths = key_lengths;
  cross.dropout = s.dropout;
  cross.stddev = kTransformerStddev;
  cross.projection_stddev = ProjectionStddev(s);
  return Add(CrossAttentionSpec(cross), graph);
}

}  // namespace pipelab
