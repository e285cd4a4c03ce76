#include "pipelines/recipes/recipe.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "pipelines/step/block_layout.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/step_fields.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Recipe> WithUnknown(const std::vector<std::string>& unknown,
                                   absl::StatusOr<Recipe> recipe) {
  if (recipe.ok() || unknown.empty()) return recipe;
  return absl::Status(recipe.status().code(), absl::StrCat(recipe.status().message(), "; besides, ",
                                                           absl::StrJoin(unknown, "; ")));
}

absl::Status SetStages(std::vector<MegatronStage> stages, Recipe* recipe) {
  const int64_t further = recipe->model.further_tokens;
  if (std::none_of(stages.begin(), stages.end(),
                   [](const MegatronStage& s) { return s.token_heads > 0; })) {
    stages.back().token_heads = further;
  }
  // A block has two of our layers, and a head for a further token four.
  std::vector<int64_t> layers;
  for (size_t s = 0; s < stages.size(); ++s) {
    const int64_t heads = stages[s].token_heads;
    if (heads != (stages[s].loss ? further : 0)) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", s, " has ", heads,
                                                     " heads for further tokens (m); all ", further,
                                                     " of the model are with the loss here"));
    }
    if (stages[s].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", s, " is empty, and every stage here has a layer; give it a t"));
    }
    layers.push_back(2 * stages[s].transformers + stages[s].embedding + stages[s].loss + 4 * heads);
  }
  recipe->config.layout = layers.size() == 1 ? "" : absl::StrJoin(layers, "+");
  recipe->stages = std::move(stages);
  return absl::OkStatus();
}

absl::Status GatherByBlock(Recipe* recipe) {
  if (!GatherByBlock(recipe->model.layers, &recipe->config)) return absl::OkStatus();
  return SetStages(StagesOfTransformers(std::vector<int64_t>(recipe->model.layers, 1)), recipe);
}

absl::StatusOr<ModelGraph> RecipeGraph(const Recipe& recipe) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildGpt(recipe.model));
  graph = MegatronCoreGraph(std::move(graph), recipe.attention, recipe.type, recipe.loss);
  return WithLaunchedKernels(std::move(graph), recipe.kernels);
}

bool HasExperts(const GptConfig& m) { return m.experts.experts > 0 && m.dense_blocks < m.layers; }

int64_t ExpertWidth(const GptConfig& m) {
  return m.expert_feed_forward > 0 ? m.expert_feed_forward : m.feed_forward_width();
}

namespace {

// What a dense model with full attention does not have.
std::string MoreOfModel(const GptConfig& m) {
  std::string more;
  const LatentHeads& l = m.latent;
  if (l.rank > 0) {
    absl::StrAppend(&more, ", latent attention of ", l.rank,
                    l.query_rank > 0 ? absl::StrCat(" (queries ", l.query_rank, ")") : "");
  }
  if (m.query_key_norms) absl::StrAppend(&more, ", norms of q and k");
  if (m.sinks) absl::StrAppend(&more, ", sinks");
  if (m.further_tokens > 0) {
    absl::StrAppend(
        &more, ", ", m.further_tokens,
        m.further_tokens == 1 ? " head for a further token" : " heads for further tokens");
  }
  if (!m.windows.empty()) absl::StrAppend(&more, ", windows ", absl::StrJoin(m.windows, "+"));
  if (!HasExperts(m)) return more;
  const ExpertChoice& e = m.experts;
  absl::StrAppend(&more, ", ", e.experts, " experts of ", ExpertWidth(m), " (", e.chosen, " chosen",
                  e.shared > 0 ? absl::StrCat(", ", e.shared, " shared") : "", ")");
  if (!m.expert_blocks.empty()) {
    const auto have = std::count(m.expert_blocks.begin(), m.expert_blocks.end(), true);
    absl::StrAppend(&more, " in ", have, " of ", m.layers, " layers");
  } else if (m.dense_blocks > 0) {
    absl::StrAppend(&more, " behind ", m.dense_blocks, " dense layers");
  }
  return more;
}

}  // namespace

std::string ModelText(const GptConfig& m) {
  const int64_t kv = m.kv_heads == 0 ? m.heads : m.kv_heads;
  const char* kind = m.feed_forward_kind == FeedForwardKind::kSwiGlu  ? "SwiGLU"
                     : m.feed_forward_kind == FeedForwardKind::kGeGlu ? "GeGLU"
                                                                      : "GELU";
  return absl::StrFormat(
      "%d layers, hidden %d, %d heads%s, feed-forward %d (%s), %d words%s, %d tokens%s", m.layers,
      m.hidden, m.heads, kv == m.heads ? "" : absl::StrCat(" (", kv, " of keys and values)"),
      m.feed_forward_width(), kind, m.vocabulary, m.tied_embeddings ? " (tied)" : "", m.tokens,
      MoreOfModel(m));
}

void NoteState(StateNumbers state, StateNumbers of_system, absl::string_view system, Settings* s) {
  const std::string own = StateNumbersName(state), theirs = StateNumbersName(of_system);
  if (own == theirs) return;
  s->Note(absl::StrCat("state=", own, ": ", system, " has ", theirs, ", which takes other memory"));
}

namespace {

// Keys that each system has words of its own for, notes or refusals; `cut` is in the layout, and
// the last three are said elsewhere.
constexpr absl::string_view kOfAll[] = {"P",
                                        "T",
                                        "D",
                                        "V",
                                        "b",
                                        "M",
                                        "sharding",
                                        "recompute",
                                        "sequence",
                                        "layout",
                                        "group",
                                        "gathers_each",
                                        "no_pipeline_overlap",
                                        "steady_overlap",
                                        "no_data_overlap",
                                        "whole_messages",
                                        "ranks",
                                        "cut",
                                        "model",
                                        "cluster",
                                        "dtype"};

}  // namespace

absl::Status CheckExportable(const StepConfig& config, absl::string_view system,
                             std::initializer_list<absl::string_view> writes) {
  const auto is_in = [](const auto& keys, absl::string_view key) {
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
  };
  const StepConfig defaults;
  for (const StepField& f : StepFields()) {
    if (is_in(kOfAll, f.key) || is_in(writes, f.key)) continue;
    if (f.get(config) == f.get(defaults)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(f.key, "=", f.get(config), ": ", system, " is not told of it; leave it out"));
  }
  if (config.recompute == Recompute::kFull) {
    return absl::InvalidArgumentError(
        absl::StrCat("recompute=full: ", system,
                     " rebuilds a layer at a time and no whole stage; recompute=blocks would do"));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
