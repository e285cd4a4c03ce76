#include "models/files/hugging_face_config.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "models/files/hugging_face_keys.h"
#include "models/files/hugging_face_wrappers.h"
#include "models/zoo/size_check.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/json_object.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

class LanguageModelKeys : public HuggingFaceKeys {
 public:
  using HuggingFaceKeys::HuggingFaceKeys;

  absl::StatusOr<GptConfig> Gpt2() {
    GptConfig c;
    PIPELAB_ASSIGN_OR_RETURN(c.layers, Size("n_layer", kMostLayers));
    PIPELAB_ASSIGN_OR_RETURN(c.hidden, Size("n_embd", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.heads, Heads("n_head"));
    PIPELAB_RETURN_IF_ERROR(DividesHidden("n_head", c.heads, c.hidden));
    PIPELAB_ASSIGN_OR_RETURN(c.feed_forward, Size("n_inner", 64 * kMostHidden, 4 * c.hidden));
    PIPELAB_ASSIGN_OR_RETURN(c.vocabulary, Size("vocab_size", kMostVocabulary));
    PIPELAB_ASSIGN_OR_RETURN(c.tied_embeddings, Flag("tie_word_embeddings", true));
    PIPELAB_RETURN_IF_ERROR(OneOf("activation_function", {"gelu_new", "gelu_pytorch_tanh"}));
    // A table of positions, which other lengths than the file's shorten.
    PIPELAB_ASSIGN_OR_RETURN(c.tokens, Tokens("n_positions"));
    return c;
  }

  absl::StatusOr<GptConfig> DeepSeekV3() {
    GptConfig c = LlamaConfig(1, 1, 1, 1, 1, 1);
    PIPELAB_ASSIGN_OR_RETURN(c.layers, Size("num_hidden_layers", kMostLayers));
    PIPELAB_ASSIGN_OR_RETURN(c.hidden, Size("hidden_size", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.heads, Heads("num_attention_heads"));
    PIPELAB_RETURN_IF_ERROR(TakeLatent(&c));
    PIPELAB_RETURN_IF_ERROR(TakeRotaryBase(&c));
    PIPELAB_ASSIGN_OR_RETURN(c.feed_forward, Size("intermediate_size", 64 * kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.vocabulary, Size("vocab_size", kMostVocabulary));
    PIPELAB_ASSIGN_OR_RETURN(c.tied_embeddings, Flag("tie_word_embeddings", false));
    PIPELAB_RETURN_IF_ERROR(OneOf("hidden_act", {"silu"}));
    PIPELAB_RETURN_IF_ERROR(OneOf("scoring_func", {"sigmoid"}));
    PIPELAB_ASSIGN_OR_RETURN(c.tokens, Tokens("max_position_embeddings"));
    PIPELAB_ASSIGN_OR_RETURN(const bool biases, Flag("attention_bias", false));
    if (biases) {
      return file_.Error("attention_bias", "true: no latent attention has biases; must be false");
    }
    PIPELAB_RETURN_IF_ERROR(TakeExperts("n_routed_experts", &c));
    PIPELAB_RETURN_IF_ERROR(TakeGroups(&c));
    c.experts.sigmoid = true;
    PIPELAB_ASSIGN_OR_RETURN(c.further_tokens,
                             SizeOrNone("num_nextn_predict_layers", kMostFurtherTokens));
    PIPELAB_ASSIGN_OR_RETURN(c.experts.shared, SizeOrNone("n_shared_experts", 1 << 12));
    PIPELAB_ASSIGN_OR_RETURN(c.experts.normalized, Flag("norm_topk_prob", true));
    if (file_.HasValue("routed_scaling_factor")) {
      PIPELAB_ASSIGN_OR_RETURN(c.experts.scale, file_.Number("routed_scaling_factor"));
    }
    PIPELAB_ASSIGN_OR_RETURN(c.expert_feed_forward,
                             Size("moe_intermediate_size", 64 * kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t dense, SizeOrNone("first_k_dense_replace", c.layers));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t step, Size("moe_layer_freq", kMostLayers, 1));
    std::vector<bool> have(c.layers);
    for (int64_t i = dense; i < c.layers; ++i) have[i] = i % step == 0;
    c.SetExpertBlocks(have);
    return c;
  }

  absl::StatusOr<GptConfig> Llama(absl::string_view type) {
    GptConfig c = LlamaConfig(1, 1, 1, 1, 1, 1);
    PIPELAB_ASSIGN_OR_RETURN(c.layers, Size("num_hidden_layers", kMostLayers));
    PIPELAB_ASSIGN_OR_RETURN(c.hidden, Size("hidden_size", kMostHidden));
    // Where the file does not say it.
    const bool gemma = absl::StartsWith(type, "gemma");
    const int64_t head_size = gemma ? 256 : type == "qwen3" ? 128 : 0;
    PIPELAB_RETURN_IF_ERROR(TakeHeads(head_size, &c));
    PIPELAB_ASSIGN_OR_RETURN(c.feed_forward, Size("intermediate_size", 64 * kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.vocabulary, Size("vocab_size", kMostVocabulary));
    PIPELAB_ASSIGN_OR_RETURN(c.tied_embeddings, Flag("tie_word_embeddings", gemma));
    PIPELAB_RETURN_IF_ERROR(TakeActivation(type, &c));
    PIPELAB_ASSIGN_OR_RETURN(c.tokens, Tokens("max_position_embeddings"));
    if (type == "qwen2") {
      c.biases = Biases::kQueryKeyValue;
    } else if (type != "gpt_oss") {
      PIPELAB_ASSIGN_OR_RETURN(c.biases, LlamaBiases());
    }
    c.query_key_norms = type == "qwen3" || type == "qwen3_moe" || type == "gemma3_text";
    c.post_norms = type == "gemma2" || type == "gemma3_text";
    if (type == "gemma3_text") PIPELAB_RETURN_IF_ERROR(TakeGemma3(&c));
    if (type == "mixtral") PIPELAB_RETURN_IF_ERROR(TakeExperts("num_local_experts", &c));
    if (type == "qwen3_moe") PIPELAB_RETURN_IF_ERROR(TakeQwenExperts(&c));
    if (type == "llama4_text") PIPELAB_RETURN_IF_ERROR(TakeLlama4(&c));
    if (type == "gpt_oss") PIPELAB_RETURN_IF_ERROR(TakeGptOss(&c));
    // Qwen's files have a window's size where none is used.
    const bool has_window =
        type == "mistral" || type == "mixtral" || type == "phi3" || c.sinks || c.post_norms;
    PIPELAB_ASSIGN_OR_RETURN(const bool window, Flag("use_sliding_window", has_window));
    const int64_t pattern = type == "gemma2" || c.sinks ? 2 : type == "gemma3_text" ? 6 : 0;
    if (window) PIPELAB_RETURN_IF_ERROR(TakeWindows(pattern, &c));
    return c;
  }

 private:
  // Gemma's first files say "gelu" and mean its tanh form, which "hidden_activation" says since.
  absl::Status TakeActivation(absl::string_view type, GptConfig* c) const {
    if (!absl::StartsWith(type, "gemma")) return OneOf("hidden_act", {"silu"});
    c->feed_forward_kind = FeedForwardKind::kGeGlu;
    if (!file_.HasValue("hidden_activation")) {
      if (type != "gemma") return absl::OkStatus();
      return OneOf("hidden_act", {"gelu", "gelu_pytorch_tanh"});
    }
    return OneOf("hidden_activation", {"gelu_pytorch_tanh"});
  }

  // The base of rotary positions is in an object of its own in newer files.
  absl::Status TakeRotaryBase(GptConfig* c) const {
    if (file_.HasObject("rope_parameters")) {
      PIPELAB_ASSIGN_OR_RETURN(const JsonObject rotary, file_.Object("rope_parameters"));
      return TakeBase(rotary, &c->rotary_base);
    }
    return TakeBase(file_, &c->rotary_base);
  }
  static absl::Status TakeBase(const JsonObject& of, double* base,
                               absl::string_view key = "rope_theta") {
    if (!of.HasValue(key)) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(*base, of.Number(key));
    if (*base >= 1 && *base <= 1e12) return absl::OkStatus();
    return of.Error(key, *base, ": must be from 1 to 1e12");
  }

  // Blocks with windows have another base; newer files have an object of each kind.
  absl::Status TakeGemma3(GptConfig* c) const {
    PIPELAB_ASSIGN_OR_RETURN(const bool both, Flag("use_bidirectional_attention", false));
    if (both) {
      return file_.Error("use_bidirectional_attention", "true: no language model; must be false");
    }
    if (!file_.HasValue("rope_theta")) c->rotary_base = 1000000;
    c->window_rotary_base = 10000;
    if (!file_.HasObject("rope_parameters")) {
      return TakeBase(file_, &c->window_rotary_base, "rope_local_base_freq");
    }
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject rotary, file_.Object("rope_parameters"));
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject full, rotary.Object("full_attention"));
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject near, rotary.Object("sliding_attention"));
    PIPELAB_RETURN_IF_ERROR(TakeBase(full, &c->rotary_base));
    return TakeBase(near, &c->window_rotary_base);
  }

  // `head_size` counts where the file has none; 0: the hidden size over the heads.
  absl::Status TakeHeads(int64_t head_size, GptConfig* c) const {
    constexpr absl::string_view kHeads = "num_attention_heads", kKeyHeads = "num_key_value_heads";
    PIPELAB_ASSIGN_OR_RETURN(c->heads, Heads(kHeads));
    PIPELAB_ASSIGN_OR_RETURN(c->kv_heads, Size(kKeyHeads, kMostHidden, c->heads));
    if (c->heads % c->kv_heads != 0) {
      return file_.Error(kKeyHeads, c->kv_heads, ": must divide ", kHeads, ", ", c->heads,
                         "; nearest: ", NearestDivisor(c->kv_heads, c->heads));
    }
    if (!file_.HasValue("head_dim") && head_size == 0) {
      PIPELAB_RETURN_IF_ERROR(DividesHidden(kHeads, c->heads, c->hidden));
      head_size = c->hidden / c->heads;
    }
    PIPELAB_ASSIGN_OR_RETURN(c->head_size, Size("head_dim", kMostHidden, head_size));
    if (c->head_size % 2 != 0) {
      return file_.Error(file_.HasValue("head_dim") ? "head_dim" : kHeads, "heads of ",
                         c->head_size, " numbers; rotary positions take an even number");
    }
    return TakeRotaryBase(c);
  }

  absl::Status TakeLatent(GptConfig* c) const {
    PIPELAB_ASSIGN_OR_RETURN(c->latent.query_rank, SizeOrNone("q_lora_rank", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c->latent.rank, Size("kv_lora_rank", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c->latent.nope_size, Size("qk_nope_head_dim", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c->latent.rope_size, Size("qk_rope_head_dim", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c->latent.value_size, Size("v_head_dim", kMostHidden));
    if (c->latent.rope_size % 2 == 0) return absl::OkStatus();
    return file_.Error("qk_rope_head_dim", c->latent.rope_size,
                       ": rotary positions take an even number");
  }

  absl::Status TakeExperts(absl::string_view key, GptConfig* c) const {
    constexpr absl::string_view kChosen = "num_experts_per_tok";
    PIPELAB_ASSIGN_OR_RETURN(c->experts.experts, Size(key, 1 << 12));
    PIPELAB_ASSIGN_OR_RETURN(c->experts.chosen, Size(kChosen, 1 << 12));
    if (c->experts.chosen > c->experts.experts) {
      return file_.Error(kChosen, c->experts.chosen, ": must be at most ", key, ", ",
                         c->experts.experts);
    }
    if (c->biases == Biases::kNone) return absl::OkStatus();
    return file_.Error("attention_bias", "true: no experts have biases; must be false");
  }

  // A token's experts are of some groups; of all where the file says nothing.
  absl::Status TakeGroups(GptConfig* c) const {
    ExpertChoice groups = c->experts;
    PIPELAB_ASSIGN_OR_RETURN(groups.nodes, Size("n_group", 1 << 12, 1));
    PIPELAB_ASSIGN_OR_RETURN(groups.most_nodes, Size("topk_group", groups.nodes, groups.nodes));
    if (groups.most_nodes == groups.nodes) return absl::OkStatus();
    c->experts = groups;
    if (HasRoomOnNodes(groups)) return absl::OkStatus();
    return file_.Error("n_group", groups.nodes, ": must be at most 64 and divide the ",
                       groups.experts, " experts, and topk_group, ", groups.most_nodes,
                       ", of them must have ", groups.chosen);
  }

  // Qwen's experts have a width of their own.
  absl::Status TakeQwenExperts(GptConfig* c) const {
    PIPELAB_RETURN_IF_ERROR(TakeExperts("num_experts", c));
    PIPELAB_ASSIGN_OR_RETURN(c->expert_feed_forward,
                             Size("moe_intermediate_size", 64 * kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c->experts.normalized, Flag("norm_topk_prob", false));
    PIPELAB_ASSIGN_OR_RETURN(std::vector<bool> have, EveryBlock("decoder_sparse_step", *c));
    PIPELAB_RETURN_IF_ERROR(SetListed("mlp_only_layers", false, &have));
    c->SetExpertBlocks(have);
    return absl::OkStatus();
  }

  // Dense blocks are wider, and a token takes a shared expert and some of the others, by a sigmoid.
  // Norms of q and k have no parameters there.
  absl::Status TakeLlama4(GptConfig* c) const {
    PIPELAB_RETURN_IF_ERROR(TakeExperts("num_local_experts", c));
    c->expert_feed_forward = c->feed_forward;
    PIPELAB_ASSIGN_OR_RETURN(c->feed_forward, Size("intermediate_size_mlp", 64 * kMostHidden));
    c->experts.shared = 1;
    c->experts.sigmoid = true;
    c->experts.normalized = false;
    PIPELAB_ASSIGN_OR_RETURN(std::vector<bool> have, EveryBlock("interleave_moe_layer_step", *c));
    if (file_.HasValue("moe_layers")) {
      have.assign(c->layers, false);
      PIPELAB_RETURN_IF_ERROR(SetListed("moe_layers", true, &have));
    }
    c->SetExpertBlocks(have);
    constexpr absl::string_view kChunk = "attention_chunk_size";
    PIPELAB_ASSIGN_OR_RETURN(const int64_t chunk, Size(kChunk, int64_t{1} << 30, 8192));
    if (c->tokens <= chunk || (file_.Has(kChunk) && !file_.HasValue(kChunk))) {
      return absl::OkStatus();
    }
    return file_.Error(kChunk, chunk, ": samples of ", c->tokens,
                       " tokens are longer, and no layer attends within chunks; give at most @",
                       chunk);
  }

  // All products have biases, and each head a learned number beside its scores.
  absl::Status TakeGptOss(GptConfig* c) const {
    PIPELAB_RETURN_IF_ERROR(TakeExperts("num_local_experts", c));
    PIPELAB_ASSIGN_OR_RETURN(const bool biases, Flag("attention_bias", true));
    if (!biases) return file_.Error("attention_bias", "false: experts have biases; must be true");
    c->biases = Biases::kAll;
    c->sinks = true;
    return absl::OkStatus();
  }

  // The last of every so many blocks, as `key` says.
  absl::StatusOr<std::vector<bool>> EveryBlock(absl::string_view key, const GptConfig& c) const {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t step, Size(key, kMostLayers, 1));
    std::vector<bool> have(c.layers);
    for (int64_t i = step - 1; i < c.layers; i += step) have[i] = true;
    return have;
  }
  absl::Status SetListed(absl::string_view key, bool value, std::vector<bool>* have) const {
    if (!file_.HasValue(key)) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* blocks, file_.List(key));
    for (const nlohmann::json& block : *blocks) {
      const int64_t i = block.is_number_integer() ? block.get<int64_t>() : -1;
      if (i < 0 || i >= static_cast<int64_t>(have->size())) {
        return file_.Error(key, block.dump(), ": must be a block, from 0 to ", have->size() - 1);
      }
      (*have)[i] = value;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Biases> LlamaBiases() const {
    PIPELAB_ASSIGN_OR_RETURN(const bool attention, Flag("attention_bias", false));
    PIPELAB_ASSIGN_OR_RETURN(const bool mlp, Flag("mlp_bias", attention));
    if (attention == mlp) return attention ? Biases::kAll : Biases::kNone;
    return file_.Error("mlp_bias", mlp ? "true" : "false", ": must be as attention_bias, ",
                       attention ? "true" : "false");
  }

  // Windows of the blocks that `layer_types` names, or all but every `pattern`-th, or from
  // max_window_layers on, or of all.
  absl::Status TakeWindows(int64_t pattern, GptConfig* c) const {
    if (!file_.HasValue("sliding_window")) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const int64_t window, Size("sliding_window", int64_t{1} << 30));
    c->windows.assign(c->layers, window);
    if (file_.HasValue("layer_types")) {
      PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* types, file_.List("layer_types"));
      if (static_cast<int64_t>(types->size()) != c->layers) {
        return file_.Error("layer_types", types->size(), " of them; must be one per layer, ",
                           c->layers);
      }
      for (int64_t i = 0; i < c->layers; ++i) {
        const nlohmann::json& word = (*types)[i];
        if (word == "full_attention") {
          c->windows[i] = 0;
        } else if (word != "sliding_attention") {
          return file_.Error("layer_types", word.dump(),
                             ": must be full_attention or sliding_attention");
        }
      }
    } else if (pattern > 0) {
      PIPELAB_ASSIGN_OR_RETURN(pattern, Size("sliding_window_pattern", kMostLayers, pattern));
      for (int64_t i = pattern - 1; i < c->layers; i += pattern) c->windows[i] = 0;
    } else if (file_.HasValue("max_window_layers")) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t full,
                               file_.Integer("max_window_layers", 0, kMostLayers));
      std::fill_n(c->windows.begin(), std::min(full, c->layers), 0);
    }
    return absl::OkStatus();
  }
};

}  // namespace

bool IsHuggingFaceConfig(const nlohmann::json& root) {
  return root.is_object() && root.contains("model_type") && !root.contains("layers");
}

absl::StatusOr<GptConfig> ReadHuggingFaceConfig(const nlohmann::json& root, absl::string_view what,
                                                int64_t tokens) {
  PIPELAB_ASSIGN_OR_RETURN(JsonObject file, JsonObject::Root(root, what));
  const TextTower text = TextTowerOf(root);
  const nlohmann::json nested = {{text.key, text.model}};
  if (!text.key.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject whole, JsonObject::Root(nested, what));
    PIPELAB_ASSIGN_OR_RETURN(file, whole.Object(text.key));
  } else if (!text.model.is_null()) {
    PIPELAB_ASSIGN_OR_RETURN(file, JsonObject::Root(text.model, what));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string type, file.String("model_type"));
  const std::vector<absl::string_view> types = {
      "gpt2",  "llama",  "llama4_text", "mistral", "mixtral", "qwen2",       "qwen3",  "qwen3_moe",
      "gemma", "gemma2", "gemma3_text", "phi3",    "gpt_oss", "deepseek_v3", "kimi_k2"};
  if (type == "vit") {
    return file.Error("model_type", "\"vit\": a model of images; must be that of a language model");
  }
  if (type == "deepseek_v3" || type == "kimi_k2") {
    return LanguageModelKeys(std::move(file), tokens).DeepSeekV3();
  }
  if (type == "gpt2") return LanguageModelKeys(std::move(file), tokens).Gpt2();
  if (std::find(types.begin(), types.end(), type) != types.end()) {
    return LanguageModelKeys(std::move(file), tokens).Llama(type);
  }
  if (type == "bert") {
    return file.Error("model_type", "\"bert\": no causal language model; must be one");
  }
  return file.Error("model_type", "\"", type,
                    "\": no model of this type can be made, and it is taken for no other",
                    NearestOrAll(type, types));
}

}  // namespace pipelab
