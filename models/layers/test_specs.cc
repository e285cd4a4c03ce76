#include "models/layers/test_specs.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/specs/cross_attention_spec.h"
#include "models/specs/data_input_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/element_loss_spec.h"
#include "models/specs/embedding_bag_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/norm_spec.h"
#include "models/specs/patch_embedding_spec.h"

namespace pipelab {
namespace {

void AddAttention(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t tokens, hidden, heads, head_size;
    bool causal, padded;
    double dropout;
  };
  const Sizes sizes[] = {
      {5, 8, 2, 0, false, false, 0},     {6, 8, 2, 0, false, true, 0.25},
      {6, 8, 2, 3, true, false, 0},      {5, 12, 1, 2, false, true, 0},
      {5, 12, 1, 2, false, false, 0.25}, {70, 4, 2, 8, false, true, 0.1},
  };
  for (const Sizes& s : sizes) {
    GptAttentionSizes attention;
    attention.name = absl::StrCat("attention", layers->size());
    attention.tokens = s.tokens;
    attention.hidden = s.hidden;
    attention.heads = s.heads;
    attention.head_size = s.head_size;
    attention.causal = s.causal;
    if (s.padded) attention.key_lengths = "tokens_length";
    attention.dropout = s.dropout;
    layers->push_back(GptAttentionSpec(attention));
  }
}

// Windows: over one block of rows and two, wider than the samples; with dropout; tiles of keys.
void AddWindows(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t tokens, hidden, heads, kv_heads, window, key_tile;
    double dropout;
  };
  for (const Sizes& s : {Sizes{6, 8, 2, 1, 2, 0, 0}, Sizes{70, 4, 2, 2, 5, 0, 0.2},
                         Sizes{130, 4, 1, 1, 40, 0, 0}, Sizes{5, 8, 2, 2, 9, 0, 0},
                         Sizes{130, 4, 2, 1, 0, 48, 0.1}, Sizes{130, 4, 1, 1, 100, 64, 0}}) {
    GptAttentionSizes attention;
    attention.name = absl::StrCat("window", layers->size());
    attention.tokens = s.tokens;
    attention.hidden = s.hidden;
    attention.heads = s.heads;
    attention.kv_heads = s.kv_heads;
    attention.window = s.window;
    attention.key_tile = s.key_tile;
    attention.rotary_base = 10000;
    attention.dropout = s.dropout;
    layers->push_back(GptAttentionSpec(attention));
  }
}

// Heads that share keys and values: some, all; narrower and wider than the rows; with norms of q
// and k.
void AddGroupedQueries(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t tokens, hidden, heads, kv_heads, head_size;
    bool causal;
    Biases biases;
    double dropout;
  };
  const Sizes sizes[] = {
      {5, 8, 4, 2, 0, true, Biases::kNone, 0},
      {6, 12, 3, 1, 2, true, Biases::kQueryKeyValue, 0.25},
      {70, 4, 4, 2, 4, true, Biases::kNone, 0},
      {4, 8, 4, 1, 6, false, Biases::kAll, 0.25},
  };
  for (int i = 0; i < 8; ++i) {
    const Sizes& s = sizes[i % 4];
    GptAttentionSizes attention;
    attention.name = absl::StrCat("attention", layers->size());
    attention.tokens = s.tokens;
    attention.hidden = s.hidden;
    attention.heads = s.heads;
    attention.kv_heads = s.kv_heads;
    attention.head_size = s.head_size;
    attention.causal = s.causal;
    attention.rotary_base = 100;
    attention.norm = NormKind::kRms;
    attention.query_key_norms = i >= 4;
    attention.biases = s.biases;
    attention.dropout = s.dropout;
    layers->push_back(GptAttentionSpec(attention));
  }
}

// Blocks of later models: RMS norms, gates, no biases.
void AddGatedBlocks(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t tokens, hidden, inner;
    FeedForwardKind kind;
    NormKind norm;
    bool biases;
    double dropout;
  };
  const Sizes sizes[] = {
      {5, 8, 6, FeedForwardKind::kSwiGlu, NormKind::kRms, false, 0},
      {6, 4, 20, FeedForwardKind::kSwiGlu, NormKind::kRms, false, 0.25},
      {3, 12, 1, FeedForwardKind::kGeGlu, NormKind::kLayer, true, 0.25},
      {4, 6, 40, FeedForwardKind::kGeGlu, NormKind::kLayer, true, 0},
      {5, 8, 32, FeedForwardKind::kGelu, NormKind::kRms, true, 0},
  };
  for (const Sizes& s : sizes) {
    GptMlpSizes mlp;
    mlp.name = absl::StrCat("mlp", layers->size());
    mlp.tokens = s.tokens;
    mlp.hidden = s.hidden;
    mlp.inner = s.inner;
    mlp.kind = s.kind;
    mlp.norm = s.norm;
    mlp.biases = s.biases;
    mlp.dropout = s.dropout;
    layers->push_back(GptMlpSpec(mlp));
    GptAttentionSizes attention;
    attention.name = absl::StrCat("attention", layers->size());
    attention.tokens = s.tokens;
    attention.hidden = s.hidden;
    attention.heads = 2;
    attention.norm = s.norm;
    if (!s.biases && s.hidden / 2 % 2 == 0) attention.rotary_base = 100;
    attention.biases = s.biases ? Biases::kAll : Biases::kQueryKeyValue;
    attention.dropout = s.dropout;
    layers->push_back(GptAttentionSpec(attention));
  }
  AddGroupedQueries(layers);
  GptHeadSizes head;
  head.name = "rms_head";
  head.tokens = 5;
  head.hidden = 8;
  head.vocabulary = 7;
  head.norm = NormKind::kRms;
  layers->push_back(GptHeadSpec(head));
}

// Softmax and sigmoids, shared experts, dropped tokens; experts narrower and wider than the rows,
// one, and more than there are tokens. No logits are close to a tie, where the output jumps.
void AddExperts(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t tokens, hidden, inner, experts, chosen, shared;
    bool sigmoid, normalized;
    double scale, capacity_factor, dropout;
    NormKind norm;
    FeedForwardKind kind;
  };
  constexpr FeedForwardKind kSwish = FeedForwardKind::kSwiGlu, kGelu = FeedForwardKind::kGeGlu;
  const Sizes sizes[] = {
      {2, 10, 6, 4, 2, 0, false, true, 1, 0, 0, NormKind::kRms, kSwish},
      {3, 20, 2, 4, 1, 1, true, false, 2.5, 0, 0.25, NormKind::kRms, kSwish},
      {4, 4, 40, 3, 2, 0, false, false, 1, 1, 0, NormKind::kLayer, kGelu},
      {3, 16, 10, 8, 3, 2, true, false, 1, 0, 0, NormKind::kRms, kSwish},
      {5, 12, 2, 1, 1, 0, true, false, 1, 0, 0, NormKind::kRms, kSwish},
      {2, 64, 1, 2, 2, 0, false, true, 1, 0, 0, NormKind::kRms, kSwish},
  };
  for (const Sizes& s : sizes) {
    GptExpertsSizes experts;
    experts.name = absl::StrCat("experts", layers->size());
    experts.tokens = s.tokens;
    experts.hidden = s.hidden;
    experts.inner = s.inner;
    experts.choice.experts = s.experts;
    experts.choice.chosen = s.chosen;
    experts.choice.shared = s.shared;
    experts.choice.sigmoid = s.sigmoid;
    experts.choice.normalized = s.normalized;
    experts.choice.scale = s.scale;
    experts.choice.capacity_factor = s.capacity_factor;
    experts.dropout = s.dropout;
    experts.norm = s.norm;
    experts.kind = s.kind;
    layers->push_back(GptExpertsSpec(experts));
  }
}

void AddCrossAttention(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t tokens, memory_tokens, hidden, heads, head_size;
    bool padded;
    double dropout;
  };
  const Sizes sizes[] = {
      {5, 3, 8, 2, 0, false, 0},     {3, 6, 8, 2, 0, true, 0.25}, {70, 4, 4, 2, 3, true, 0},
      {4, 30, 4, 1, 16, false, 0.1}, {2, 9, 12, 1, 2, true, 0},   {9, 2, 12, 1, 4, false, 0},
  };
  for (const Sizes& s : sizes) {
    CrossAttentionSizes cross;
    cross.name = absl::StrCat("cross", layers->size());
    cross.input = 1;
    cross.tokens = s.tokens;
    cross.memory_tokens = s.memory_tokens;
    cross.hidden = s.hidden;
    cross.heads = s.heads;
    cross.head_size = s.head_size;
    if (s.padded) cross.key_lengths = "memory_length";
    cross.dropout = s.dropout;
    layers->push_back(CrossAttentionSpec(cross));
  }
}

// Ranks and heads below and above the hidden size: memory is fullest elsewhere.
void AddLatentAttention(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t tokens, hidden, heads;
    LatentHeads latent;
    NormKind norm;
    double dropout;
  };
  const Sizes sizes[] = {{5, 12, 2, {6, 5, 4, 2, 3}, NormKind::kRms, 0},
                         {5, 8, 2, {0, 6, 4, 6, 5}, NormKind::kRms, 0.25},
                         {70, 6, 2, {9, 20, 1, 2, 1}, NormKind::kLayer, 0.2},
                         {3, 40, 1, {0, 2, 2, 2, 2}, NormKind::kRms, 0},
                         {4, 9, 1, {50, 3, 1, 2, 2}, NormKind::kRms, 0}};
  for (const Sizes& s : sizes) {
    GptLatentAttentionSizes attention;
    attention.name = absl::StrCat("latent", s.latent.query_rank, "of", s.latent.rank);
    attention.tokens = s.tokens;
    attention.hidden = s.hidden;
    attention.heads = s.heads;
    attention.latent = s.latent;
    attention.key_tile = s.tokens / 2;
    attention.norm = s.norm;
    attention.dropout = s.dropout;
    layers->push_back(GptLatentAttentionSpec(attention));
  }
}

void AddEnds(std::vector<LayerSpec>* layers) {
  NormSizes norm;
  norm.name = "norm";
  norm.tokens = 5;
  norm.hidden = 9;
  layers->push_back(NormSpec(norm));
  GptEmbeddingSizes embedding;
  embedding.name = "embedding";
  embedding.field = "source";
  embedding.positions = Positions::kSinusoidal;
  embedding.tokens = 5;
  embedding.hidden = 9;
  embedding.vocabulary = 7;
  layers->push_back(GptEmbeddingSpec(embedding));
  embedding.name = "tokens_alone";
  embedding.positions = Positions::kNone;
  layers->push_back(GptEmbeddingSpec(embedding));
  embedding.name = "token_types";
  embedding.positions = Positions::kLearned;
  embedding.types = 2;
  layers->push_back(GptEmbeddingSpec(embedding));
  for (const auto& [bias, tie] :
       {std::make_pair(false, ""), std::make_pair(true, ""), std::make_pair(true, "tie")}) {
    GptHeadSizes head;
    head.name = absl::StrCat("head", bias, tie);
    head.tie = tie;
    head.tokens = 5;
    head.hidden = 9;
    head.vocabulary = 7;
    head.output_bias = bias;
    head.padded_targets = true;
    layers->push_back(GptHeadSpec(head));
  }
}

// BERT's: norms are layers of their own.
void AddWithoutNorms(std::vector<LayerSpec>* layers) {
  for (const double dropout : {0.0, 0.25}) {
    GptAttentionSizes attention;
    attention.name = absl::StrCat("attention_alone", dropout);
    attention.tokens = 5;
    attention.hidden = 12;
    attention.heads = 2;
    attention.causal = false;
    attention.norm = NormKind::kNone;
    attention.dropout = dropout;
    layers->push_back(GptAttentionSpec(attention));
    for (const bool exact : {false, true}) {
      GptMlpSizes mlp;
      mlp.name = absl::StrCat("mlp_alone", dropout, exact);
      mlp.tokens = 4;
      mlp.hidden = 6;
      mlp.inner = exact ? 20 : 3;
      mlp.exact_gelu = exact;
      mlp.norm = NormKind::kNone;
      mlp.dropout = dropout;
      layers->push_back(GptMlpSpec(mlp));
    }
  }
  DenseSizes dense;
  dense.name = "scaled";
  dense.tokens = 3;
  dense.in = 5;
  dense.out = 4;
  dense.activation = Activation::kGelu;
  dense.exact_gelu = true;
  dense.scale = 1.5;
  layers->push_back(DenseSpec(dense));
}

void AddExactGelu(std::vector<LayerSpec>* layers) {
  GptMlpSizes mlp;
  mlp.name = "exact_gelu";
  mlp.tokens = 4;
  mlp.hidden = 6;
  mlp.inner = 20;
  mlp.exact_gelu = true;
  mlp.dropout = 0.25;
  layers->push_back(GptMlpSpec(mlp));
}

// Branches alone, and the norm behind them.
void AddPostNormBlock(std::vector<LayerSpec>* layers) {
  GptMlpSizes mlp;
  mlp.name = "mlp_branch";
  mlp.tokens = 6;
  mlp.hidden = 8;
  mlp.inner = 5;
  mlp.kind = FeedForwardKind::kGeGlu;
  mlp.norm = NormKind::kRms;
  mlp.biases = mlp.residual = false;
  for (const double dropout : {0.0, 0.25}) {
    mlp.name += "s";
    mlp.dropout = dropout;
    layers->push_back(GptMlpSpec(mlp));
  }
  GptAttentionSizes attention;
  attention.name = "attention_branch";
  attention.tokens = 6;
  attention.hidden = 8;
  attention.heads = 2;
  attention.norm = NormKind::kRms;
  attention.residual = false;
  layers->push_back(GptAttentionSpec(attention));
  NormSizes norm;
  norm.name = "rms_norm";
  norm.tokens = 5;
  norm.hidden = 9;
  norm.kind = NormKind::kRms;
  layers->push_back(NormSpec(norm));
}

void AddPatches(std::vector<LayerSpec>* layers) {
  struct Sizes {
    int64_t height, width, channels, patch, hidden;
  };
  const Sizes sizes[] = {{6, 4, 3, 2, 5}, {4, 8, 1, 4, 17}, {3, 3, 2, 1, 3}, {6, 6, 2, 6, 9}};
  for (const Sizes& s : sizes) {
    PatchEmbeddingSizes patches;
    patches.name = absl::StrCat("patches", layers->size());
    patches.height = s.height;
    patches.width = s.width;
    patches.channels = s.channels;
    patches.patch = s.patch;
    patches.hidden = s.hidden;
    layers->push_back(PatchEmbeddingSpec(patches));
    patches.name += "_class";
    patches.class_token = true;
    layers->push_back(PatchEmbeddingSpec(patches));
  }
}

void AddRecommendation(std::vector<LayerSpec>* layers) {
  DataInputSizes input;
  input.name = "input";
  input.field = "dense";
  input.shape = {6};
  layers->push_back(DataInputSpec(input));
  input.name = "image";
  input.field = "image";
  input.shape = {3, 2, 2};
  layers->push_back(DataInputSpec(input));
  for (bool mean : {false, true}) {
    EmbeddingBagSizes bag;
    bag.name = absl::StrCat("bag", mean);
    bag.field = "bag";
    bag.ids = 4;
    bag.rows = 5;
    bag.width = 3;
    bag.mean = mean;
    layers->push_back(EmbeddingBagSpec(bag));
  }
  for (auto kind : {ElementLossKind::kSquaredError, ElementLossKind::kBinaryCrossEntropy}) {
    ElementLossSizes loss;
    loss.name = absl::StrCat("loss", static_cast<int>(kind));
    loss.width = 3;
    loss.kind = kind;
    layers->push_back(ElementLossSpec(loss));
  }
}

}  // namespace

std::vector<LayerSpec> NetLayers() {
  std::vector<LayerSpec> layers;
  AddAttention(&layers);
  AddCrossAttention(&layers);
  AddGatedBlocks(&layers);
  AddExperts(&layers);
  AddEnds(&layers);
  AddPatches(&layers);
  AddRecommendation(&layers);
  AddWindows(&layers);
  AddLatentAttention(&layers);
  AddExactGelu(&layers);
  AddWithoutNorms(&layers);
  AddPostNormBlock(&layers);
  return layers;
}

}  // namespace pipelab
