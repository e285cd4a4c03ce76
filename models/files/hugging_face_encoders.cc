// BERT and vision Transformers.
#include <cstdint>
#include <utility>

#include "models/files/hugging_face_config.h"
#include "models/files/hugging_face_keys.h"
#include "models/zoo/size_check.h"
#include "tools/base/json_object.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

class EncoderKeys : public HuggingFaceKeys {
 public:
  using HuggingFaceKeys::HuggingFaceKeys;

  absl::StatusOr<BertConfig> Bert() {
    BertConfig c;
    c.post_norms = true;
    PIPELAB_ASSIGN_OR_RETURN(c.layers, Size("num_hidden_layers", kMostLayers));
    PIPELAB_ASSIGN_OR_RETURN(c.hidden, Size("hidden_size", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.heads, Heads("num_attention_heads"));
    PIPELAB_RETURN_IF_ERROR(DividesHidden("num_attention_heads", c.heads, c.hidden));
    PIPELAB_ASSIGN_OR_RETURN(c.feed_forward, Size("intermediate_size", 64 * kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.vocabulary, Size("vocab_size", kMostVocabulary));
    PIPELAB_ASSIGN_OR_RETURN(c.token_types, Size("type_vocab_size", kMostVocabulary, 2));
    PIPELAB_ASSIGN_OR_RETURN(c.tied_embeddings, Flag("tie_word_embeddings", true));
    PIPELAB_RETURN_IF_ERROR(TakeGelu(&c.exact_gelu));
    PIPELAB_RETURN_IF_ERROR(OneOf("position_embedding_type", {"absolute"}));
    for (const char* key : {"is_decoder", "add_cross_attention"}) {
      PIPELAB_ASSIGN_OR_RETURN(const bool decoder, Flag(key, false));
      if (decoder) return file_.Error(key, "true: no decoder can be made of it; must be false");
    }
    c.head_norm_epsilon = 1e-12;  // as transformers has it
    if (file_.HasValue("layer_norm_eps")) {
      PIPELAB_ASSIGN_OR_RETURN(c.head_norm_epsilon, file_.Number("layer_norm_eps"));
      if (!(c.head_norm_epsilon >= 1e-15 && c.head_norm_epsilon <= 1)) {
        return file_.Error("layer_norm_eps", c.head_norm_epsilon, ": must be from 1e-15 to 1");
      }
    }
    PIPELAB_ASSIGN_OR_RETURN(c.tokens, Tokens("max_position_embeddings"));
    return c;
  }

  absl::StatusOr<VitConfig> Vit() {
    VitConfig c;
    c.class_token = true;
    PIPELAB_ASSIGN_OR_RETURN(c.layers, Size("num_hidden_layers", kMostLayers));
    PIPELAB_ASSIGN_OR_RETURN(c.hidden, Size("hidden_size", kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.heads, Heads("num_attention_heads"));
    PIPELAB_RETURN_IF_ERROR(DividesHidden("num_attention_heads", c.heads, c.hidden));
    PIPELAB_ASSIGN_OR_RETURN(c.feed_forward, Size("intermediate_size", 64 * kMostHidden));
    PIPELAB_ASSIGN_OR_RETURN(c.side, Size("image_size", kMostImageSide));
    PIPELAB_ASSIGN_OR_RETURN(c.patch, Size("patch_size", c.side));
    PIPELAB_ASSIGN_OR_RETURN(c.channels, Size("num_channels", kMostHidden, 3));
    PIPELAB_RETURN_IF_ERROR(TakeGelu(&c.exact_gelu));
    PIPELAB_ASSIGN_OR_RETURN(const bool biases, Flag("qkv_bias", true));
    if (!biases) return file_.Error("qkv_bias", "false: no layer has it; must be true");
    if (c.side % c.patch != 0) {
      return file_.Error("patch_size", c.patch, ": must divide image_size, ", c.side,
                         "; nearest: ", NearestDivisor(c.patch, c.side));
    }
    c.classes = 2;  // as transformers has it
    if (file_.HasObject("id2label")) {
      PIPELAB_ASSIGN_OR_RETURN(const JsonObject labels, file_.Object("id2label"));
      c.classes = static_cast<int64_t>(labels.Keys().size());
    } else if (file_.HasValue("num_labels")) {
      PIPELAB_ASSIGN_OR_RETURN(c.classes, Size("num_labels", kMostVocabulary));
    }
    return c;
  }

 private:
  // Where the file says "gelu", or nothing, it is erf's.
  absl::Status TakeGelu(bool* exact) const {
    PIPELAB_RETURN_IF_ERROR(OneOf("hidden_act", {"gelu", "gelu_new", "gelu_pytorch_tanh"}));
    *exact = !file_.HasValue("hidden_act") || file_.String("hidden_act").value() == "gelu";
    return absl::OkStatus();
  }
};

}  // namespace

bool IsVisionConfig(const nlohmann::json& root) {
  return IsHuggingFaceConfig(root) && root["model_type"] == "vit";
}

bool IsBertConfig(const nlohmann::json& root) {
  return IsHuggingFaceConfig(root) && root["model_type"] == "bert";
}

absl::StatusOr<BertConfig> ReadBertConfig(const nlohmann::json& root, absl::string_view what,
                                          int64_t tokens) {
  PIPELAB_ASSIGN_OR_RETURN(JsonObject file, JsonObject::Root(root, what));
  return EncoderKeys(std::move(file), tokens).Bert();
}

absl::StatusOr<VitConfig> ReadVisionConfig(const nlohmann::json& root, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(JsonObject file, JsonObject::Root(root, what));
  return EncoderKeys(std::move(file), 0).Vit();
}

}  // namespace pipelab
