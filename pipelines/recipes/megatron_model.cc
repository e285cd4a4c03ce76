// Megatron-LM's options of dense models, words and positions.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/megatron_parts.h"
#include "pipelines/recipes/padded_vocabulary.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {

namespace {

// Words of the tokenizers that need no file to know them.
int64_t WordsOfTokenizer(absl::string_view type) {
  if (type == "GPT2BPETokenizer") return 50257;
  return type == "Llama2Tokenizer" ? 32000 : 0;
}

class ModelReader {
 public:
  ModelReader(const MegatronOptions& options, Recipe* recipe) : o_(options), r_(*recipe) {}

  absl::Status TakeModel() {
    GptConfig& m = r_.model;
    PIPELAB_ASSIGN_OR_RETURN(m.layers, o_.Integer("num-layers", 1, kMostLayers));
    PIPELAB_ASSIGN_OR_RETURN(m.hidden, o_.Integer("hidden-size", 1, kMostHidden));
    PIPELAB_RETURN_IF_ERROR(TakeHeads());
    const bool swiglu = o_.Has("swiglu"), geglu = o_.Has("quick-geglu");
    if (swiglu && (geglu || o_.Has("squared-relu"))) {
      return o_.Error("swiglu", "not with --", geglu ? "quick-geglu" : "squared-relu",
                      "; give one of them");
    }
    if (swiglu) m.feed_forward_kind = FeedForwardKind::kSwiGlu;
    if (geglu) m.feed_forward_kind = FeedForwardKind::kGeGlu;
    if (o_.Has("squared-relu")) Assume("--squared-relu: costs what a GELU does");
    // Megatron-LM's own default, in its rounding.
    const int64_t narrow =
        static_cast<int64_t>(4.0 * static_cast<double>(m.hidden) * 2 / 3 / 64) * 64;
    PIPELAB_ASSIGN_OR_RETURN(m.feed_forward,
                             o_.Integer("ffn-hidden-size", 1, 64 * kMostHidden,
                                        swiglu ? std::max<int64_t>(narrow, 1) : 4 * m.hidden));
    PIPELAB_ASSIGN_OR_RETURN(const std::string norm,
                             o_.Word("normalization", {"LayerNorm", "RMSNorm"}, "LayerNorm"));
    m.norm = norm == "RMSNorm" ? NormKind::kRms : NormKind::kLayer;
    TakeBiases();
    m.tied_embeddings = !o_.Has("untie-embeddings-and-output-weights");
    PIPELAB_ASSIGN_OR_RETURN(m.further_tokens,
                             o_.Integer("mtp-num-layers", 0, kMostFurtherTokens, 0));
    PIPELAB_RETURN_IF_ERROR(TakeDropout());
    return TakePositions();
  }

  absl::Status TakeVocabulary() {
    const int64_t tensor = r_.config.tensor;
    if (o_.Has("padded-vocab-size")) {
      PIPELAB_ASSIGN_OR_RETURN(r_.model.vocabulary,
                               o_.Integer("padded-vocab-size", 1, kMostVocabulary));
      if (r_.model.vocabulary % tensor == 0) return absl::OkStatus();
      return o_.Error("padded-vocab-size", "--tensor-model-parallel-size ", tensor,
                      " must divide it; nearest: --padded-vocab-size ",
                      NearestMultiple(r_.model.vocabulary, tensor));
    }
    const std::string tokenizer =
        o_.Has("tokenizer-type") ? o_.Text("tokenizer-type").value_or("") : "";
    int64_t words = WordsOfTokenizer(tokenizer);
    if (o_.Has("vocab-size") || words == 0) {
      if (!o_.Has("vocab-size")) {
        return o_.Error("vocab-size", "missing; ",
                        tokenizer.empty() ? "no tokenizer is named that says it"
                                          : "the tokenizer's file is not read",
                        "; such as --vocab-size 128256");
      }
      PIPELAB_ASSIGN_OR_RETURN(words, o_.Integer("vocab-size", 1, kMostVocabulary));
      if (tokenizer == "NullTokenizer") ++words;  // the end of a document
    }
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t multiple,
        o_.Integer("make-vocab-size-divisible-by", 1, kMostVocabulary, kVocabularyMultiple));
    r_.model.vocabulary = PaddedVocabulary(words, tensor, multiple);
    return absl::OkStatus();
  }

 private:
  void Assume(std::string what) { r_.assumptions.push_back(std::move(what)); }

  absl::Status TakeHeads() {
    GptConfig& m = r_.model;
    PIPELAB_ASSIGN_OR_RETURN(m.heads, o_.Integer("num-attention-heads", 1, kMostHidden));
    if (!o_.Has("kv-channels") && m.hidden % m.heads != 0) {
      return o_.Error("num-attention-heads", "must divide --hidden-size ", m.hidden,
                      "; nearest: --num-attention-heads ", NearestDivisor(m.heads, m.hidden));
    }
    PIPELAB_ASSIGN_OR_RETURN(m.head_size, o_.Integer("kv-channels", 1, kMostHidden,
                                                     std::max<int64_t>(m.hidden / m.heads, 1)));
    m.kv_heads = m.heads;
    if (o_.Has("group-query-attention")) {
      PIPELAB_ASSIGN_OR_RETURN(m.kv_heads, o_.Integer("num-query-groups", 1, kMostHidden, 1));
    } else if (o_.Has("num-query-groups")) {
      Assume("--num-query-groups: without --group-query-attention all heads have their own keys");
    }
    if (m.heads % m.kv_heads == 0) return absl::OkStatus();
    return o_.Error("num-query-groups", "must divide --num-attention-heads ", m.heads,
                    "; nearest: --num-query-groups ", NearestDivisor(m.kv_heads, m.heads));
  }

  void TakeBiases() {
    GptConfig& m = r_.model;
    if (!o_.Has("disable-bias-linear")) return;
    if (m.feed_forward_kind == FeedForwardKind::kGelu) {
      Assume("--disable-bias-linear: products have biases, as those around a GELU have here");
      return;
    }
    m.biases = o_.Has("add-qkv-bias") ? Biases::kQueryKeyValue : Biases::kNone;
  }

  absl::Status TakeDropout() {
    PIPELAB_ASSIGN_OR_RETURN(r_.model.dropout, o_.Number("hidden-dropout", 0, 0.999, 0.1));
    PIPELAB_ASSIGN_OR_RETURN(const double attention, o_.Number("attention-dropout", 0, 0.999, 0.1));
    if ((attention > 0) == (r_.model.dropout > 0)) return absl::OkStatus();
    Assume(absl::StrCat("--attention-dropout ", attention, ": is as --hidden-dropout, ",
                        r_.model.dropout));
    return absl::OkStatus();
  }

  absl::Status TakePositions() {
    GptConfig& m = r_.model;
    PIPELAB_ASSIGN_OR_RETURN(m.tokens, o_.Integer("seq-length", 1, kMostTokens));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t most,
                             o_.Integer("max-position-embeddings", 1, int64_t{1} << 30));
    if (most < m.tokens) {
      return o_.Error("max-position-embeddings",
                      "must be at least --seq-length; nearest: ", "--max-position-embeddings ",
                      m.tokens);
    }
    PIPELAB_ASSIGN_OR_RETURN(
        std::string type, o_.Word("position-embedding-type", {"learned_absolute", "rope", "none"},
                                  "learned_absolute"));
    if (o_.Has("use-rotary-position-embeddings")) type = "rope";
    m.positions = type == "learned_absolute" ? Positions::kLearned : Positions::kNone;
    if (type != "rope") {
      if (type == "learned_absolute" && most > m.tokens) {
        Assume(absl::StrCat("--max-position-embeddings: the table has ", m.tokens, " positions"));
      }
      return absl::OkStatus();
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t base,
                             o_.Integer("rotary-base", 1, int64_t{1000000000000}, 10000));
    m.rotary_base = static_cast<double>(base);
    if (m.head_size % 2 == 0 || o_.Has("multi-latent-attention")) return absl::OkStatus();
    return o_.Error("position-embedding-type", "heads of ", m.head_size,
                    " numbers; rotary positions take an even number; nearest: --kv-channels ",
                    m.head_size + 1);
  }

  const MegatronOptions& o_;
  Recipe& r_;
};

}  // namespace

absl::Status TakeMegatronModel(const MegatronOptions& options, Recipe* recipe) {
  PIPELAB_RETURN_IF_ERROR(ModelReader(options, recipe).TakeModel());
  PIPELAB_RETURN_IF_ERROR(TakeMegatronAttention(options, recipe));
  return TakeMegatronExperts(options, recipe);
}

absl::Status TakeMegatronVocabulary(const MegatronOptions& options, Recipe* recipe) {
  return ModelReader(options, recipe).TakeVocabulary();
}

}  // namespace pipelab
