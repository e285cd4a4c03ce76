#include "models/files/hugging_face_wrappers.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace pipelab {
namespace {

// By which type of text model another is read: of the same shapes, and of a wrapper that leaves the
// type of its text model out.
absl::string_view ReadAs(absl::string_view type) {
  struct Alike {
    absl::string_view type, as;
  };
  constexpr Alike kAlike[] = {{"llama4", "llama4_text"},
                              {"gemma3", "gemma3_text"},
                              {"llava", "llama"},
                              {"llava_next", "llama"},
                              {"mistral3", "mistral"},
                              {"paligemma", "gemma"},
                              {"qwen2_vl", "qwen2"},
                              {"qwen2_vl_text", "qwen2"},
                              {"qwen2_5_vl", "qwen2"},
                              {"qwen2_5_vl_text", "qwen2"},
                              {"qwen3_vl", "qwen3"},
                              {"qwen3_vl_text", "qwen3"},
                              {"qwen3_vl_moe", "qwen3_moe"},
                              {"ministral3", "mistral"},
                              {"pixtral", "mistral"},
                              {"qwen3_vl_moe_text", "qwen3_moe"}};
  for (const Alike& alike : kAlike) {
    if (alike.type == type) return alike.as;
  }
  return type;
}

// The sizes that transformers gives a type where its file leaves them out.
nlohmann::json DefaultsOf(absl::string_view type) {
  const auto sizes = [](int vocabulary, int hidden, int feed_forward, int layers, int heads,
                        int positions) {
    return nlohmann::json{
        {"vocab_size", vocabulary},          {"hidden_size", hidden},
        {"intermediate_size", feed_forward}, {"num_hidden_layers", layers},
        {"num_attention_heads", heads},      {"max_position_embeddings", positions}};
  };
  const auto with = [](nlohmann::json these, const nlohmann::json& more) {
    these.update(more);
    return these;
  };
  if (type == "llama") return sizes(32000, 4096, 11008, 32, 32, 2048);
  if (type == "mistral") {
    return with(sizes(32000, 4096, 14336, 32, 32, 131072),
                {{"num_key_value_heads", 8}, {"sliding_window", 4096}});
  }
  if (type == "qwen2") {
    return with(sizes(151936, 4096, 22016, 32, 32, 32768), {{"num_key_value_heads", 32}});
  }
  if (type == "gemma") {
    return with(sizes(256000, 3072, 24576, 28, 16, 8192), {{"num_key_value_heads", 16}});
  }
  if (type == "gemma2") {
    return with(sizes(256000, 2304, 9216, 26, 8, 8192),
                {{"num_key_value_heads", 4}, {"sliding_window", 4096}});
  }
  if (type == "gemma3_text") {
    return with(sizes(262208, 2304, 9216, 26, 8, 131072),
                {{"num_key_value_heads", 4}, {"sliding_window", 4096}});
  }
  if (type == "llama4_text") {
    return with(sizes(202048, 5120, 8192, 48, 40, 131072), {{"num_key_value_heads", 8},
                                                            {"head_dim", 128},
                                                            {"intermediate_size_mlp", 16384},
                                                            {"num_local_experts", 16},
                                                            {"num_experts_per_tok", 1}});
  }
  return nlohmann::json::object();
}

std::string TypeOf(const nlohmann::json& model) {
  const auto type = model.find("model_type");
  return type != model.end() && type->is_string() ? type->get<std::string>() : "";
}

}  // namespace

TextTower TextTowerOf(const nlohmann::json& root) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const auto found = root.find(key);
    if (found == root.end() || !found->is_object()) continue;
    const std::string own = TypeOf(*found);
    const std::string type(ReadAs(own.empty() ? TypeOf(root) : own));
    nlohmann::json text = DefaultsOf(type);
    constexpr char kTied[] = "tie_word_embeddings";
    if (root.contains(kTied)) text[kTied] = root[kTied];
    text.update(*found);
    text["model_type"] = type;
    return {key, text};
  }
  // The keys of the text model stand beside those of the others.
  const std::string type = TypeOf(root);
  if (!root.contains("vision_config") || ReadAs(type) == type) return {};
  nlohmann::json text = root;
  text["model_type"] = ReadAs(type);
  return {"", text};
}

std::string UnpricedPartOf(const nlohmann::json& root) {
  const TextTower text = TextTowerOf(root);
  if (text.model.is_null()) return "";
  std::vector<absl::string_view> others;
  for (const char* key : {"vision_config", "audio_config"}) {
    if (root.contains(key)) others.push_back(key[0] == 'v' ? "vision tower" : "audio tower");
  }
  if (others.empty()) others.push_back("rest");
  return absl::StrCat("its text model, of type ", TypeOf(text.model), ", is priced; the ",
                      absl::StrJoin(others, " and the "), " of ", TypeOf(root),
                      others.size() > 1 ? " are not" : " is not");
}

}  // namespace pipelab
