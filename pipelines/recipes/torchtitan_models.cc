// Sizes of torchtitan's models.
#include <cstdint>
#include <vector>

#include "pipelines/recipes/torchtitan_names.h"

namespace pipelab {
namespace {

// Samples' lengths are the file's.
GptConfig Blocks(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads,
                 int64_t feed_forward, int64_t words, double rotary_base) {
  GptConfig c = LlamaConfig(layers, hidden, heads, feed_forward, /*tokens=*/1, words);
  c.kv_heads = kv_heads;
  c.rotary_base = rotary_base;
  return c;
}

GptConfig Llama3(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads,
                 int64_t feed_forward, int64_t words = 128256) {
  return Blocks(layers, hidden, heads, kv_heads, feed_forward, words, 500000);
}

GptConfig Qwen3(bool tied, int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads,
                int64_t feed_forward, int64_t experts = 0, int64_t words = 151936) {
  GptConfig c = Blocks(layers, hidden, heads, kv_heads, feed_forward, words, 1000000);
  c.head_size = 128;
  c.query_key_norms = true;
  c.tied_embeddings = tied;
  if (experts > 0) c.experts.experts = experts, c.experts.chosen = 8;
  return c;
}

// Softmax routers of all experts but where sizes say otherwise.
GptConfig DeepSeek(int64_t layers, int64_t dense_blocks, int64_t hidden, int64_t heads,
                   int64_t query_rank, int64_t feed_forward, int64_t words, int64_t expert_width,
                   ExpertChoice experts) {
  GptConfig c = LlamaConfig(layers, hidden, heads, feed_forward, /*tokens=*/1, words);
  c.latent = {query_rank, /*rank=*/512, /*nope_size=*/128, /*rope_size=*/64, /*value_size=*/128};
  c.dense_blocks = dense_blocks;
  c.expert_feed_forward = expert_width;
  c.experts = experts;
  return c;
}

ExpertChoice Choice(int64_t experts, int64_t chosen, int64_t shared, int64_t nodes,
                    int64_t most_nodes, bool sigmoid, double scale) {
  ExpertChoice e;
  e.experts = experts;
  e.chosen = chosen;
  e.shared = shared;
  e.nodes = nodes;
  e.most_nodes = most_nodes;
  e.sigmoid = e.normalized = sigmoid;
  e.scale = scale;
  return e;
}

}  // namespace

const std::vector<TorchtitanModel>& TorchtitanModels() {
  static const auto* models = new std::vector<TorchtitanModel>{
      {"llama3", "debugmodel", Llama3(6, 256, 16, 16, 768, 2048)},
      {"llama3", "8B", Llama3(32, 4096, 32, 8, 14336)},
      {"llama3", "70B", Llama3(80, 8192, 64, 8, 28672)},
      {"llama3", "405B", Llama3(126, 16384, 128, 8, 53248)},
      {"qwen3", "debugmodel", Qwen3(true, 8, 256, 16, 8, 3072, 0, 2048)},
      {"qwen3", "0.6B", Qwen3(true, 28, 1024, 16, 8, 3072)},
      {"qwen3", "1.7B", Qwen3(true, 28, 2048, 16, 8, 6144)},
      {"qwen3", "4B", Qwen3(true, 36, 2560, 32, 8, 9728)},
      {"qwen3", "8B", Qwen3(false, 36, 4096, 32, 8, 12288)},
      {"qwen3", "14B", Qwen3(false, 40, 5120, 40, 8, 17408)},
      {"qwen3", "32B", Qwen3(false, 64, 5120, 64, 8, 25600)},
      {"qwen3", "debugmodel_moe", Qwen3(false, 8, 256, 16, 8, 768, 64, 2048)},
      {"qwen3", "30B-A3B", Qwen3(false, 48, 2048, 32, 4, 768, 128)},
      {"qwen3", "235B-A22B", Qwen3(false, 94, 4096, 64, 4, 1536, 128)},
      {"deepseek_v3", "debugmodel",
       DeepSeek(6, 1, 256, 16, 0, 1024, 2048, 256, Choice(8, 3, 2, 0, 0, false, 1))},
      {"deepseek_v3", "16B",
       DeepSeek(27, 1, 2048, 16, 0, 10944, 102400, 1408, Choice(64, 6, 2, 0, 0, false, 1))},
      {"deepseek_v3", "236B",
       DeepSeek(60, 1, 5120, 128, 1536, 12288, 102400, 1536, Choice(160, 6, 2, 8, 3, false, 16))},
      {"deepseek_v3", "671B",
       DeepSeek(61, 3, 7168, 128, 1536, 18432, 129280, 2048, Choice(256, 8, 1, 8, 4, true, 2.5))},
  };
  return *models;
}

}  // namespace pipelab
