#include "models/zoo/gpt.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/specs/further_token_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostMlpRatio = 1 << 6;

absl::Status CheckLatent(const GptConfig& c) {
  const LatentHeads& l = c.latent;
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("heads", c.heads, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("latent.rank", l.rank, kMostHidden));
  if (l.query_rank != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("latent.query_rank", l.query_rank, kMostHidden));
  }
  const int64_t most = kMostHidden / c.heads;
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("latent.nope_size", l.nope_size, most));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("latent.rope_size", l.rope_size, most));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("latent.value_size", l.value_size, most));
  if (l.rope_size % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--latent.rope_size=", l.rope_size, ": must be even"));
  }
  if (!(c.rotary_base > 0) || c.biases != Biases::kNone || c.kv_heads != 0 || c.head_size != 0 ||
      c.query_key_norms || c.sinks) {
    return absl::InvalidArgumentError(
        absl::StrCat("--latent.rank=", l.rank,
                     ": latent attention has rotary positions, and no biases, "
                     "kv_heads, head_size, query_key_norms or sinks"));
  }
  return absl::OkStatus();
}

absl::Status CheckAttention(const GptConfig& c) {
  for (const int64_t window : c.windows) {
    if (window < 0 || (window > 0 && c.latent.rank != 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--windows=", window, ": must be at least 0, and 0 with latent attention"));
    }
  }
  if (c.key_tile != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("key_tile", c.key_tile, kMostTokens));
  }
  if (c.latent.rank != 0) return CheckLatent(c);
  if (c.head_size == 0) {
    PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  } else {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("heads", c.heads, kMostHidden));
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("head_size", c.head_size, kMostHidden / c.heads));
  }
  if (c.kv_heads < 0 || (c.kv_heads > 0 && c.heads % c.kv_heads != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kv_heads=", c.kv_heads, ": must divide --heads=", c.heads));
  }
  const int64_t head_size = c.head_size == 0 ? c.hidden / c.heads : c.head_size;
  if (c.rotary_base < 0 || (c.rotary_base > 0 && head_size % 2 != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--rotary_base=", c.rotary_base, ": heads of ",
                                                   head_size,
                                                   " numbers; must be at least 0, and even heads"));
  }
  return absl::OkStatus();
}

absl::Status CheckExperts(const GptConfig& c) {
  const ExpertChoice& e = c.experts;
  constexpr int64_t kMostExperts = 1 << 12;
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("experts", e.experts, kMostExperts));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("chosen", e.chosen, e.experts));
  if (c.feed_forward_kind == FeedForwardKind::kGelu || (c.biases == Biases::kAll && e.shared > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--experts=", e.experts, ": they have gates, and shared ones no biases"));
  }
  if (c.expert_feed_forward != 0) {
    PIPELAB_RETURN_IF_ERROR(
        CheckModelSize("expert_feed_forward", c.expert_feed_forward, kMostHidden * 64));
  }
  const int64_t said = static_cast<int64_t>(c.expert_blocks.size());
  if (said != 0 && said != c.layers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--expert_blocks: says ", said, " blocks; must be none, or --layers=", c.layers));
  }
  if (e.nodes != 0 && !HasRoomOnNodes(e)) {
    return absl::InvalidArgumentError(absl::StrCat("--nodes=", e.nodes, ": ", NodesRule(e)));
  }
  // The comparisons are false for NaN.
  if (0 <= e.shared && e.shared <= kMostExperts && 0 <= c.dense_blocks &&
      c.dense_blocks <= c.layers && e.capacity_factor >= 0 && e.capacity_factor <= 1e6 &&
      e.balance >= 0 && e.balance <= 1e6 && e.scale > 0 && e.scale <= 1e6) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--experts=", e.experts, ": with ", e.shared, " shared ones, ", c.dense_blocks,
      " dense blocks, a capacity factor of ", e.capacity_factor, ", a balancing factor of ",
      e.balance, " and weights times ", e.scale,
      "; none may be negative, weights times something above 0, and dense blocks at most ",
      c.layers));
}

absl::Status CheckGpt(const GptConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("mlp_ratio", c.mlp_ratio, kMostMlpRatio));
  PIPELAB_RETURN_IF_ERROR(CheckAttention(c));
  if (c.feed_forward != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, kMostHidden * 64));
  }
  if (c.experts.experts != 0) PIPELAB_RETURN_IF_ERROR(CheckExperts(c));
  if (c.biases != Biases::kAll && c.feed_forward_kind == FeedForwardKind::kGelu) {
    return absl::InvalidArgumentError("biases: a GELU has them; give a gated feed-forward");
  }
  if (c.post_norms && (c.experts.experts != 0 || c.latent.rank != 0)) {
    return absl::InvalidArgumentError("--post_norms: not with experts or latent attention");
  }
  if (c.window_rotary_base < 0 || (c.window_rotary_base > 0 && c.rotary_base == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--window_rotary_base=", c.window_rotary_base,
                     ": must be at least 0, and rotary_base above 0"));
  }
  if (c.output_bias && (c.tied_embeddings || c.further_tokens > 0)) {
    return absl::InvalidArgumentError(
        "--output_bias: not with --tied_embeddings or further tokens");
  }
  if (c.further_tokens != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("further_tokens", c.further_tokens, kMostFurtherTokens));
  }
  return CheckDropout(c.dropout);
}

}  // namespace

void GptConfig::SetExpertBlocks(const std::vector<bool>& have) {
  const auto first = std::find(have.begin(), have.end(), true);
  dense_blocks = first - have.begin();
  expert_blocks.clear();
  if (std::find(first, have.end(), false) != have.end()) expert_blocks = have;
}

GptConfig LlamaConfig(int64_t layers, int64_t hidden, int64_t heads, int64_t feed_forward,
                      int64_t tokens, int64_t vocabulary) {
  GptConfig c;
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.tokens = tokens;
  c.vocabulary = vocabulary;
  c.feed_forward = feed_forward;
  c.feed_forward_kind = FeedForwardKind::kSwiGlu;
  c.norm = NormKind::kRms;
  c.positions = Positions::kNone;
  c.rotary_base = 10000;
  c.biases = Biases::kNone;
  return c;
}

namespace {

TransformerSizes SizesOf(const GptConfig& c) {
  TransformerSizes sizes;
  sizes.tokens = c.tokens;
  sizes.hidden = c.hidden;
  sizes.heads = c.heads;
  sizes.kv_heads = c.kv_heads;
  sizes.head_size = c.head_size;
  sizes.feed_forward = c.feed_forward_width();
  sizes.feed_forward_kind = c.feed_forward_kind;
  sizes.norm = c.norm;
  sizes.post_norms = c.post_norms;
  sizes.query_key_norms = c.query_key_norms;
  sizes.latent = c.latent;
  sizes.key_tile = c.key_tile;
  sizes.rotary_base = c.rotary_base;
  sizes.sinks = c.sinks;
  sizes.biases = c.biases;
  sizes.dropout = c.dropout;
  sizes.residual_branches = 2 * c.layers;
  return sizes;
}

// Returns its last layer.
int AddBlock(const GptConfig& c, int64_t block, const std::string& name, int input,
             ModelGraph* graph) {
  TransformerSizes sizes = SizesOf(c);
  if (!c.windows.empty()) {
    sizes.window = c.windows[block % static_cast<int64_t>(c.windows.size())];
    if (sizes.window > 0 && c.window_rotary_base > 0) sizes.rotary_base = c.window_rotary_base;
  }
  const int attention = AddSelfAttention(sizes, name + "/attention", input, graph);
  if (!c.HasExperts(block)) return AddFeedForward(sizes, name + "/mlp", attention, graph);
  sizes.experts = c.experts;
  if (c.expert_feed_forward > 0) sizes.feed_forward = c.expert_feed_forward;
  return AddExperts(sizes, name + "/experts", attention, graph);
}

void AddHead(const GptConfig& c, const std::string& name, int input, const std::string& tie,
             ModelGraph* graph) {
  GptHeadSizes head;
  head.name = name;
  head.input = input;
  head.tokens = c.tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  head.norm = c.norm;
  head.stddev = kTransformerStddev;
  head.tie = tie;
  head.output_bias = c.output_bias;
  graph->layers.push_back(GptHeadSpec(head));
}

}  // namespace

absl::StatusOr<ModelGraph> BuildGpt(const GptConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckGpt(c));
  const bool further = c.further_tokens > 0;
  const std::string table = c.tied_embeddings || further ? "embedding" : "";
  const std::string logits = c.tied_embeddings ? table : further ? "logits" : "";
  ModelGraph graph;
  graph.name = "gpt";
  GptEmbeddingSizes embedding;
  embedding.name = "embedding";
  embedding.positions = c.positions;
  embedding.tokens = c.tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
  embedding.stddev = kTransformerStddev;
  embedding.tie = table;
  graph.layers.push_back(GptEmbeddingSpec(embedding));
  int last = 0;
  for (int64_t block = 0; block < c.layers; ++block) {
    last = AddBlock(c, block, absl::StrCat("block", block), last, &graph);
  }
  // Their names put them into the head's group, so that no stage comes between them.
  int state = last;
  for (int64_t i = 0; i < c.further_tokens; ++i) {
    const std::string name = absl::StrCat(kFurtherTokens, i);
    graph.layers.push_back(FurtherTokenSpec({name + "/input", state, c.tokens, c.hidden,
                                             c.vocabulary, c.norm, kTransformerStddev, table}));
    state = AddBlock(c, c.layers - 1, name, LastLayer(graph), &graph);
    AddHead(c, name + "_loss", state, logits, &graph);
    graph.layers.back().priced_alone = kFurtherHeads;
  }
  AddHead(c, "head", last, logits, &graph);
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
