#include "models/files/hugging_face_families.h"

#include <algorithm>

namespace pipelab {
namespace {

constexpr WeightLayout kSame = WeightLayout::kSame, kTurned = WeightLayout::kTransposed,
                       kFirst = WeightLayout::kFirstRows, kPatches = WeightLayout::kPatches;
constexpr WeightScale kStream = WeightScale::kStream, kTable = WeightScale::kTable,
                      kFrom = WeightScale::kFromStream, kHead = WeightScale::kHeadNorm,
                      kQk = WeightScale::kQueriesAndKeys;

// The first rule of a parameter counts.
std::vector<WeightRule> Before(std::vector<WeightRule> rules, const std::vector<WeightRule>& more) {
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

// c_attn has q, k and v side by side, and every product is [in, out].
std::vector<WeightRule> Gpt2() {
  return {
      {"embedding/tokens", "wte.weight", kSame, kTable},
      {"embedding/positions", "wpe.weight", kFirst, kStream},
      {"block#/attention/gamma", "h.#.ln_1.weight"},
      {"block#/attention/beta", "h.#.ln_1.bias"},
      {"block#/attention/wqkv", "h.#.attn.c_attn.weight"},
      {"block#/attention/bqkv", "h.#.attn.c_attn.bias"},
      {"block#/attention/wo", "h.#.attn.c_proj.weight", kSame, kStream},
      {"block#/attention/bo", "h.#.attn.c_proj.bias", kSame, kStream},
      {"block#/mlp/gamma", "h.#.ln_2.weight"},
      {"block#/mlp/beta", "h.#.ln_2.bias"},
      {"block#/mlp/w1", "h.#.mlp.c_fc.weight"},
      {"block#/mlp/b1", "h.#.mlp.c_fc.bias"},
      {"block#/mlp/w2", "h.#.mlp.c_proj.weight", kSame, kStream},
      {"block#/mlp/b2", "h.#.mlp.c_proj.bias", kSame, kStream},
      {"head/gamma", "ln_f.weight", kSame, kHead},
      {"head/beta", "ln_f.bias", kSame, kHead},
      {"head/table", "lm_head.weight"},
  };
}

// Llama's, and of all that took its names: q and k turn by halves of a head, as here.
std::vector<WeightRule> Llama() {
  return {
      {"embedding/tokens", "embed_tokens.weight", kSame, kTable},
      {"block#/attention/gamma", "layers.#.input_layernorm.weight"},
      {"block#/attention/wqkv", "layers.#.self_attn.{q,k,v}_proj.weight", kTurned, kQk},
      {"block#/attention/bqkv", "layers.#.self_attn.{q,k,v}_proj.bias", kSame, kQk},
      {"block#/attention/wo", "layers.#.self_attn.o_proj.weight", kTurned, kStream},
      {"block#/attention/bo", "layers.#.self_attn.o_proj.bias", kSame, kStream},
      {"block#/attention/qgamma", "layers.#.self_attn.q_norm.weight", kSame,
       WeightScale::kQueryNorm},
      {"block#/attention/kgamma", "layers.#.self_attn.k_norm.weight"},
      {"block#/mlp/gamma", "layers.#.post_attention_layernorm.weight"},
      {"block#/mlp/w1", "layers.#.mlp.{gate,up}_proj.weight", kTurned},
      {"block#/mlp/b1", "layers.#.mlp.{gate,up}_proj.bias"},
      {"block#/mlp/w2", "layers.#.mlp.down_proj.weight", kTurned, kStream},
      {"block#/mlp/b2", "layers.#.mlp.down_proj.bias", kSame, kStream},
      {"head/gamma", "norm.weight", kSame, kHead},
      {"head/table", "lm_head.weight"},
  };
}

// Gemma's second and third: norms behind half blocks end in the residual stream.
std::vector<WeightRule> PostNormGemma() {
  const std::vector<WeightRule> norms = {
      {"block#/attention_norm/gamma", "layers.#.post_attention_layernorm.weight", kSame, kStream},
      {"block#/mlp/gamma", "layers.#.pre_feedforward_layernorm.weight"},
      {"block#/mlp_norm/gamma", "layers.#.post_feedforward_layernorm.weight", kSame, kStream},
  };
  return Before(norms, Llama());
}

// Qwen3's names of experts, which others took.
std::vector<WeightRule> QwenExperts() {
  return {
      {"block#/experts/gamma", "layers.#.post_attention_layernorm.weight"},
      {"block#/experts/router", "layers.#.mlp.gate.weight", kTurned},
      {"block#/experts/w1", "layers.#.mlp.experts.*.{gate,up}_proj.weight", kTurned},
      {"block#/experts/w2", "layers.#.mlp.experts.*.down_proj.weight", kTurned, kStream},
      {"block#/experts/w1_shared", "layers.#.mlp.shared_experts.{gate,up}_proj.weight", kTurned},
      {"block#/experts/w2_shared", "layers.#.mlp.shared_experts.down_proj.weight", kTurned,
       kStream},
  };
}

// A latent row in front of q, or none.
std::vector<WeightRule> DeepSeekV3() {
  constexpr WeightScale kNormed = WeightScale::kLatentNorm;
  const std::vector<WeightRule> latent = {
      {"block#/attention/qgamma", "layers.#.self_attn.q_a_layernorm.weight"},
      {"block#/attention/kgamma", "layers.#.self_attn.kv_a_layernorm.weight"},
      {"block#/attention/wqa", "layers.#.self_attn.q_a_proj.weight", kTurned, kNormed},
      {"block#/attention/wqb",
       "layers.#.self_attn.q_b_proj.weight|layers.#.self_attn.q_proj.weight",
       WeightLayout::kTurningHeads},
      {"block#/attention/wkva", "layers.#.self_attn.kv_a_proj_with_mqa.weight",
       WeightLayout::kLatent, kNormed},
      {"block#/attention/wkr", "layers.#.self_attn.kv_a_proj_with_mqa.weight",
       WeightLayout::kBehindLatent},
      {"block#/attention/wkvb", "layers.#.self_attn.kv_b_proj.weight", kTurned},
  };
  return Before(latent, Before(QwenExperts(), Llama()));
}

// A model of images; its names of a block are BERT's.
std::vector<WeightRule> Vit() {
  return {
      {"patches/w", "embeddings.patch_embeddings.projection.weight", kPatches, kStream},
      {"patches/b", "embeddings.patch_embeddings.projection.bias", kSame, kStream},
      {"patches/positions", "embeddings.position_embeddings", kSame, kStream},
      {"patches/class", "embeddings.cls_token", kSame, kStream},
      {"block#/attention/gamma", "encoder.layer.#.layernorm_before.weight"},
      {"block#/attention/beta", "encoder.layer.#.layernorm_before.bias"},
      {"block#/attention/wqkv", "encoder.layer.#.attention.attention.{query,key,value}.weight",
       kTurned},
      {"block#/attention/bqkv", "encoder.layer.#.attention.attention.{query,key,value}.bias"},
      {"block#/attention/wo", "encoder.layer.#.attention.output.dense.weight", kTurned, kStream},
      {"block#/attention/bo", "encoder.layer.#.attention.output.dense.bias", kSame, kStream},
      {"block#/mlp/gamma", "encoder.layer.#.layernorm_after.weight"},
      {"block#/mlp/beta", "encoder.layer.#.layernorm_after.bias"},
      {"block#/mlp/w1", "encoder.layer.#.intermediate.dense.weight", kTurned},
      {"block#/mlp/b1", "encoder.layer.#.intermediate.dense.bias"},
      {"block#/mlp/w2", "encoder.layer.#.output.dense.weight", kTurned, kStream},
      {"block#/mlp/b2", "encoder.layer.#.output.dense.bias", kSame, kStream},
      {"norm/gamma", "layernorm.weight"},
      {"norm/beta", "layernorm.bias"},
      {"classifier/w", "classifier.weight", kTurned},
      {"classifier/b", "classifier.bias"},
  };
}

// With its head of masked tokens. Norms are behind half blocks, so the residual stream is what they
// give. The first files call a norm's parameters gamma and beta.
std::vector<WeightRule> Bert() {
  return {
      {"embedding/tokens", "embeddings.word_embeddings.weight", kSame, kTable},
      {"embedding/positions", "embeddings.position_embeddings.weight", kFirst, kStream},
      {"embedding/types", "embeddings.token_type_embeddings.weight", kSame, kStream},
      {"embedding_norm/gamma", "embeddings.LayerNorm.weight|embeddings.LayerNorm.gamma", kSame,
       kStream},
      {"embedding_norm/beta", "embeddings.LayerNorm.bias|embeddings.LayerNorm.beta", kSame,
       kStream},
      {"block#/attention/wqkv", "encoder.layer.#.attention.self.{query,key,value}.weight", kTurned,
       kFrom},
      {"block#/attention/bqkv", "encoder.layer.#.attention.self.{query,key,value}.bias"},
      {"block#/attention/wo", "encoder.layer.#.attention.output.dense.weight", kTurned, kStream},
      {"block#/attention/bo", "encoder.layer.#.attention.output.dense.bias", kSame, kStream},
      {"block#/attention_norm/gamma",
       "encoder.layer.#.attention.output.LayerNorm.weight|"
       "encoder.layer.#.attention.output.LayerNorm.gamma",
       kSame, kStream},
      {"block#/attention_norm/beta",
       "encoder.layer.#.attention.output.LayerNorm.bias|"
       "encoder.layer.#.attention.output.LayerNorm.beta",
       kSame, kStream},
      {"block#/mlp/w1", "encoder.layer.#.intermediate.dense.weight", kTurned, kFrom},
      {"block#/mlp/b1", "encoder.layer.#.intermediate.dense.bias"},
      {"block#/mlp/w2", "encoder.layer.#.output.dense.weight", kTurned, kStream},
      {"block#/mlp/b2", "encoder.layer.#.output.dense.bias", kSame, kStream},
      {"block#/mlp_norm/gamma",
       "encoder.layer.#.output.LayerNorm.weight|encoder.layer.#.output.LayerNorm.gamma", kSame,
       kStream},
      {"block#/mlp_norm/beta",
       "encoder.layer.#.output.LayerNorm.bias|encoder.layer.#.output.LayerNorm.beta", kSame,
       kStream},
      {"dense/w", "cls.predictions.transform.dense.weight", kTurned, kFrom},
      {"dense/b", "cls.predictions.transform.dense.bias"},
      {"head/gamma",
       "cls.predictions.transform.LayerNorm.weight|cls.predictions.transform.LayerNorm.gamma",
       kSame, kHead},
      {"head/beta",
       "cls.predictions.transform.LayerNorm.bias|cls.predictions.transform.LayerNorm.beta", kSame,
       kHead},
      {"head/w", "cls.predictions.decoder.weight", kTurned},
      {"head/b", "cls.predictions.bias"},
  };
}

std::vector<WeightFamily> MakeFamilies() {
  const std::vector<absl::string_view> masks = {".attn.bias", ".attn.masked_bias"};
  const std::vector<absl::string_view> frequencies = {".rotary_emb.inv_freq"};
  WeightFamily gpt2 = {{"gpt2"}, "transformer.", "layer_norm_epsilon", 1e-5, false, false,
                       false,    Gpt2()};
  gpt2.no_weights = masks;
  WeightFamily llama = {{"llama", "mistral", "qwen2", "qwen3"}, "model.", "rms_norm_eps", 1e-6};
  llama.rules = Llama();
  llama.no_weights = frequencies;
  WeightFamily gemma = llama;
  gemma.types = {"gemma"};
  gemma.gammas_about_one = gemma.scaled_embedding = true;
  WeightFamily gemma3 = gemma;
  gemma3.types = {"gemma3_text"};
  gemma3.rules = PostNormGemma();
  WeightFamily gemma2 = gemma3;
  gemma2.types = {"gemma2"};
  gemma2.soft_caps = true;
  WeightFamily mixtral = llama;
  mixtral.types = {"mixtral"};
  mixtral.epsilon = 1e-5;
  const std::vector<WeightRule> mixtrals = {
      {"block#/experts/gamma", "layers.#.post_attention_layernorm.weight"},
      {"block#/experts/router", "layers.#.block_sparse_moe.gate.weight", kTurned},
      {"block#/experts/w1", "layers.#.block_sparse_moe.experts.*.{w1,w3}.weight", kTurned},
      {"block#/experts/w2", "layers.#.block_sparse_moe.experts.*.w2.weight", kTurned, kStream},
  };
  mixtral.rules = Before(mixtrals, Llama());
  WeightFamily qwen3_moe = llama;
  qwen3_moe.types = {"qwen3_moe"};
  qwen3_moe.rules = Before(QwenExperts(), Llama());
  WeightFamily deepseek = llama;
  deepseek.types = {"deepseek_v3", "kimi_k2"};
  deepseek.latent = true;
  deepseek.rules = DeepSeekV3();
  WeightFamily vit = {{"vit"}, "vit.", "layer_norm_eps", 1e-12, false, false, false, Vit()};
  WeightFamily bert = {{"bert"}, "bert.", "layer_norm_eps", 1e-12, false, false, false, Bert()};
  // What the head shares, and other heads'.
  bert.no_weights = {"embeddings.position_ids",
                     "cls.predictions.decoder.weight",
                     "cls.predictions.decoder.bias",
                     "pooler.dense.weight",
                     "pooler.dense.bias",
                     "cls.seq_relationship.weight",
                     "cls.seq_relationship.bias"};
  return {bert, gpt2, llama, gemma, gemma2, gemma3, mixtral, qwen3_moe, deepseek, vit};
}

}  // namespace

const WeightFamily* FindWeightFamily(absl::string_view model_type) {
  static const auto& families = *new std::vector<WeightFamily>(MakeFamilies());
  for (const WeightFamily& family : families) {
    if (std::find(family.types.begin(), family.types.end(), model_type) != family.types.end()) {
      return &family;
    }
  }
  return nullptr;
}

}  // namespace pipelab
