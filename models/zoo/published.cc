#include "models/zoo/published.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/bert.h"
#include "models/zoo/candle_uno.h"
#include "models/zoo/case_study.h"
#include "models/zoo/dlrm.h"
#include "models/zoo/gnmt.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/mmt.h"
#include "models/zoo/resnet.h"
#include "models/zoo/transformer.h"
#include "models/zoo/unet.h"
#include "models/zoo/vgg.h"
#include "models/zoo/vit.h"

namespace pipelab {
namespace {

using Models = std::vector<PublishedModel>;

GptConfig Gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t tokens) {
  GptConfig c;
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.tokens = tokens;
  c.vocabulary = 51200;
  c.tied_embeddings = true;
  return c;
}

void AddPublished(std::string name, std::string source, double printed, double unit,
                  std::string assumed, const GptConfig& c, Models* models) {
  const auto with_tokens = [c](int64_t tokens) {
    GptConfig other = c;
    other.tokens = tokens;
    return BuildGpt(other);
  };
  models->push_back({std::move(name), std::move(source), printed, unit, std::move(assumed),
                     [c] { return BuildGpt(c); }, with_tokens, c});
}

// A language model with sinusoidal positions and separate embeddings, the output's with a bias:
// what gives the printed counts of all rows.
void AddTransformerL(Models* models) {
  struct Row {
    int64_t layers;
    double printed, unit;
  };
  for (const Row& row : {Row{3, 282.2e6, 0.1e6}, Row{13, 785.8e6, 0.1e6}, Row{103, 5.3e9, 0.1e9},
                         Row{415, 21.0e9, 0.1e9}, Row{1663, 83.9e9, 0.1e9}}) {
    GptConfig c = Gpt(row.layers, /*hidden=*/2048, /*heads=*/32, /*tokens=*/1024);
    c.vocabulary = 32000;
    c.tied_embeddings = false;
    c.output_bias = true;
    c.positions = Positions::kSinusoidal;
    AddPublished(absl::StrCat("transformer-l-", row.layers), "Huang et al. 2019 (GPipe), Table 1",
                 row.printed, row.unit, "", c, models);
  }
}

void AddTranslation(Models* models) {
  struct Row {
    int64_t layers, feed_forward, heads;
    double printed, unit;
  };
  for (const Row& row : {Row{6, 8192, 16, 400e6, 100e6}, Row{24, 8192, 16, 1.3e9, 0.1e9},
                         Row{12, 16384, 32, 1.3e9, 0.1e9}, Row{32, 16384, 32, 3e9, 1e9},
                         Row{64, 16384, 32, 6e9, 1e9}}) {
    models->push_back(
        {absl::StrCat("t-", row.layers, "-", row.feed_forward, "-", row.heads),
         "Huang et al. 2019 (GPipe), multilingual translation", row.printed, row.unit,
         "heads of 64, 64000 words, one input embedding, sinusoidal positions, 256 tokens", [row] {
           return BuildTransformer(TransformerLha(row.layers, row.feed_forward, row.heads));
         }});
  }
}

void AddGpt(Models* models) {
  const std::string breadth_first = "Lamy-Poirier 2023 (breadth-first)";
  const std::string assumed = "51200 words, tied embeddings";
  AddPublished("gpt-52b", breadth_first, 52e9, 1e9, assumed, Gpt(64, 8192, 64, 1024), models);
  AddPublished("gpt-6.6b", breadth_first, 6.6e9, 0.1e9, assumed, Gpt(32, 4096, 32, 1024), models);
  AddPublished("gpt-96", "BitPipe 2024", 0, 0, assumed, Gpt(96, 3072, 32, 1024), models);
  const std::string megatron = "Narayanan et al. 2021 (Megatron-LM), Table 1";
  AddPublished("megatron-3.6b", megatron, 3.6e9, 0.1e9, "", Gpt(30, 3072, 32, 2048), models);
  AddPublished("megatron-18.4b", megatron, 18.4e9, 0.1e9, "", Gpt(40, 6144, 48, 2048), models);
  AddPublished("megatron-76.1b", megatron, 76.1e9, 0.1e9, "", Gpt(60, 10240, 80, 2048), models);
  AddPublished("megatron-310.1b", megatron, 310.1e9, 0.1e9, "", Gpt(96, 16384, 128, 2048), models);
  AddPublished("megatron-1008b", megatron, 1008.0e9, 0.1e9, "", Gpt(128, 25600, 160, 2048), models);
  const std::string terapipe = "Li et al. 2021 (TeraPipe), Table 1";
  const std::string words = "heads, 2048 tokens, 51200 words, tied embeddings";
  AddPublished("terapipe-1b", terapipe, 1e9, 1e9, words, Gpt(24, 2048, 16, 2048), models);
  AddPublished("terapipe-13b", terapipe, 13e9, 1e9, "layers, hidden, " + words,
               Gpt(40, 5120, 40, 2048), models);
  AddPublished("terapipe-44b", terapipe, 44e9, 1e9, words, Gpt(96, 6144, 48, 2048), models);
  AddPublished("terapipe-175b", terapipe, 175e9, 1e9, words, Gpt(96, 12288, 96, 2048), models);
}

void AddLlama(Models* models) {
  const std::string source = "Touvron et al. 2023 (LLaMA), Table 2";
  const auto add = [&](const char* name, double printed, const GptConfig& c) {
    AddPublished(name, source, printed, 0.1e9, "", c, models);
  };
  add("llama-7b", 6.7e9, LlamaConfig(32, 4096, 32, 11008, 2048, 32000));
  add("llama-13b", 13.0e9, LlamaConfig(40, 5120, 40, 13824, 2048, 32000));
  add("llama-33b", 32.5e9, LlamaConfig(60, 6656, 52, 17920, 2048, 32000));
  add("llama-65b", 65.2e9, LlamaConfig(80, 8192, 64, 22016, 2048, 32000));
}

// Heads of k and v fewer than those of q.
GptConfig Shared(int64_t kv_heads, double rotary_base, GptConfig c) {
  c.kv_heads = kv_heads;
  c.rotary_base = rotary_base;
  return c;
}

GptConfig Windows(std::vector<int64_t> windows, GptConfig c) {
  c.windows = std::move(windows);
  return c;
}

GptConfig Qwen2(bool tied, GptConfig c) {
  c.biases = Biases::kQueryKeyValue;
  c.tied_embeddings = tied;
  return c;
}

// Heads as wide as 256 numbers, GELU gates, one table: of 256000 words, as the weights have it,
// where the paper counts 256128.
void AddGemma(Models* models) {
  const auto add = [&](const char* name, double printed, int64_t kv_heads, GptConfig c) {
    c.kv_heads = kv_heads;
    c.head_size = 256;
    c.feed_forward_kind = FeedForwardKind::kGeGlu;
    c.tied_embeddings = true;
    AddPublished(name, "Gemma Team 2024, Tables 1 and 2", printed, 0.1e9, "256000 words", c,
                 models);
  };
  add("gemma-2b", 2.5e9, 1, LlamaConfig(18, 2048, 8, 16384, 8192, 256000));
  add("gemma-7b", 8.5e9, 16, LlamaConfig(28, 3072, 16, 24576, 8192, 256000));
}

// Gemma 2 and 3: norms behind half blocks, and windows in most blocks, which cover 4096 tokens of
// Gemma 2.
void AddPostNormGemmas(Models* models) {
  const auto add = [&](const char* name, const char* source, double printed, double unit,
                       int64_t kv_heads, GptConfig c) {
    c.kv_heads = kv_heads;
    c.head_size = 256;
    c.feed_forward_kind = FeedForwardKind::kGeGlu;
    c.tied_embeddings = c.post_norms = true;
    AddPublished(name, source, printed, unit, "4096 tokens", c, models);
  };
  const char* const gemma2 = "Gemma Team 2024 (Gemma 2), Tables 1 and 2";
  const std::vector<int64_t> half = {4096, 0};
  add("gemma-2-2b", gemma2, 2.6e9, 0.1e9, 4,
      Windows(half, LlamaConfig(26, 2304, 8, 9216, 4096, 256000)));
  add("gemma-2-9b", gemma2, 9.2e9, 0.1e9, 8,
      Windows(half, LlamaConfig(42, 3584, 16, 14336, 4096, 256000)));
  GptConfig gemma3 =
      Windows({512, 512, 512, 512, 512, 0}, LlamaConfig(26, 1152, 4, 6912, 4096, 262144));
  gemma3.query_key_norms = true;
  gemma3.rotary_base = 1000000;
  gemma3.window_rotary_base = 10000;
  add("gemma-3-1b", "Gemma Team 2025 (Gemma 3), Table 1", 1.0e9, 0.1e9, 1, gemma3);
}

// Later models with Llama's blocks. Counts are those that the sources print; published_test.cc has
// those of the weights.
void AddLlamaBlocks(Models* models) {
  const std::string llama2 = "Touvron et al. 2023 (Llama 2), Table 1";
  AddPublished("llama-2-7b", llama2, 7e9, 1e9, "", LlamaConfig(32, 4096, 32, 11008, 4096, 32000),
               models);
  AddPublished("llama-2-13b", llama2, 13e9, 1e9, "", LlamaConfig(40, 5120, 40, 13824, 4096, 32000),
               models);
  AddPublished("llama-2-70b", llama2, 70e9, 1e9, "",
               Shared(8, 10000, LlamaConfig(80, 8192, 64, 28672, 4096, 32000)), models);
  const std::string llama3 = "Grattafiori et al. 2024 (Llama 3), Table 3";
  const auto add3 = [&](const char* name, double printed, GptConfig c) {
    AddPublished(name, llama3, printed, 1e9, "", Shared(8, 500000, std::move(c)), models);
  };
  add3("llama-3-8b", 8e9, LlamaConfig(32, 4096, 32, 14336, 8192, 128256));
  add3("llama-3-70b", 70e9, LlamaConfig(80, 8192, 64, 28672, 8192, 128256));
  add3("llama-3-405b", 405e9, LlamaConfig(126, 16384, 128, 53248, 8192, 128256));
  AddPublished("mistral-7b", "Jiang et al. 2023 (Mistral 7B), Table 1", 7e9, 1e9,
               "4096 tokens, which its window covers",
               Windows({4096}, Shared(8, 10000, LlamaConfig(32, 4096, 32, 14336, 4096, 32000))),
               models);
  const std::string qwen = "Qwen team 2024 (Qwen2.5), model cards";
  const auto add_qwen = [&](const char* name, double printed, double unit, bool tied,
                            int64_t kv_heads, GptConfig c) {
    AddPublished(name, qwen, printed, unit, "4096 tokens",
                 Qwen2(tied, Shared(kv_heads, 1000000, std::move(c))), models);
  };
  add_qwen("qwen2.5-0.5b", 0.49e9, 0.01e9, true, 2, LlamaConfig(24, 896, 14, 4864, 4096, 151936));
  add_qwen("qwen2.5-7b", 7.61e9, 0.01e9, false, 4, LlamaConfig(28, 3584, 28, 18944, 4096, 152064));
  add_qwen("qwen2.5-32b", 32.5e9, 0.1e9, false, 8, LlamaConfig(64, 5120, 40, 27648, 4096, 152064));
  add_qwen("qwen2.5-72b", 72.7e9, 0.1e9, false, 8, LlamaConfig(80, 8192, 64, 29568, 4096, 152064));
}

// Each of `experts` experts as wide as c.feed_forward.
GptConfig Experts(int64_t experts, int64_t chosen, GptConfig c) {
  c.experts.experts = experts;
  c.experts.chosen = chosen;
  return c;
}

GptConfig Qwen3(bool tied, int64_t kv_heads, GptConfig c) {
  c.head_size = 128;
  c.query_key_norms = true;
  c.tied_embeddings = tied;
  return Shared(kv_heads, 1000000, std::move(c));
}

void AddExpertModels(Models* models) {
  AddPublished("mixtral-8x7b", "Jiang et al. 2024 (Mixtral of Experts)", 47e9, 1e9, "4096 tokens",
               Experts(8, 2, Shared(8, 1000000, LlamaConfig(32, 4096, 32, 14336, 4096, 32000))),
               models);
  const std::string qwen = "Qwen team 2025 (Qwen3), model cards";
  const auto add = [&](const char* name, double printed, double unit, bool tied, int64_t kv_heads,
                       GptConfig c) {
    AddPublished(name, qwen, printed, unit, "4096 tokens", Qwen3(tied, kv_heads, std::move(c)),
                 models);
  };
  add("qwen3-0.6b", 0.6e9, 0.1e9, true, 8, LlamaConfig(28, 1024, 16, 3072, 4096, 151936));
  add("qwen3-8b", 8.2e9, 0.1e9, false, 8, LlamaConfig(36, 4096, 32, 12288, 4096, 151936));
  add("qwen3-30b-a3b", 30.5e9, 0.1e9, false, 4,
      Experts(128, 8, LlamaConfig(48, 2048, 32, 768, 4096, 151936)));
  add("qwen3-235b-a22b", 235e9, 1e9, false, 4,
      Experts(128, 8, LlamaConfig(94, 4096, 64, 1536, 4096, 151936)));
}

// Windows in every other block, biases everywhere but in the head, a sink of each head.
void AddGptOss(Models* models) {
  struct Row {
    const char* name;
    int64_t layers, experts;
    double printed;
  };
  for (const Row& row :
       {Row{"gpt-oss-20b", 24, 32, 20.91e9}, Row{"gpt-oss-120b", 36, 128, 116.83e9}}) {
    GptConfig c = Experts(row.experts, 4, LlamaConfig(row.layers, 2880, 64, 2880, 4096, 201088));
    c = Shared(/*kv_heads=*/8, /*rotary_base=*/150000, std::move(c));
    c.head_size = 64;
    c.windows = {128, 0};
    c.biases = Biases::kAll;
    c.sinks = true;
    AddPublished(row.name, "OpenAI 2025 (gpt-oss), model card, Table 1", row.printed, 0.01e9,
                 "4096 tokens", c, models);
  }
}

// Dense blocks first, then sigmoid routers.
GptConfig DeepSeek(int64_t query_rank, int64_t dense_blocks, int64_t expert_feed_forward,
                   int64_t shared, double scale, GptConfig c) {
  c.latent = {query_rank, /*rank=*/512, /*nope_size=*/128, /*rope_size=*/64, /*value_size=*/128};
  c.dense_blocks = dense_blocks;
  c.expert_feed_forward = expert_feed_forward;
  c.experts.shared = shared;
  c.experts.sigmoid = true;
  c.experts.scale = scale;
  return c;
}

void AddLatentModels(Models* models) {
  const std::string assumed = "4096 tokens, no head for further tokens";
  GptConfig v3 = DeepSeek(1536, 3, 2048, 1, 2.5,
                          Experts(256, 8, LlamaConfig(61, 7168, 128, 18432, 4096, 129280)));
  v3.experts.nodes = 8;
  v3.experts.most_nodes = 4;
  AddPublished("deepseek-v3", "DeepSeek-AI 2024 (DeepSeek-V3), section 4.2", 671e9, 1e9, assumed,
               v3, models);
  GptConfig moonlight = DeepSeek(0, 1, 1408, 2, 2.446,
                                 Experts(64, 6, LlamaConfig(27, 2048, 16, 11264, 4096, 163840)));
  moonlight.rotary_base = 50000;
  AddPublished("moonlight-16b-a3b", "Liu et al. 2025 (Moonlight), model card", 16e9, 1e9, assumed,
               moonlight, models);
  GptConfig kimi = DeepSeek(1536, 1, 2048, 1, 2.827,
                            Experts(384, 8, LlamaConfig(61, 7168, 64, 18432, 4096, 163840)));
  kimi.rotary_base = 50000;
  AddPublished("kimi-k2", "Kimi team 2025 (Kimi K2), model card", 1e12, 1e12, assumed, kimi,
               models);
}

void AddBert(Models* models) {
  BertConfig c;
  c.layers = 48;
  c.hidden = 1024;
  c.heads = 16;
  c.tokens = 512;
  c.vocabulary = 30522;
  models->push_back({"bert-48", "Li and Hoefler 2021 (Chimera)", 0, 0,
                     "hidden 1024, 16 heads, 512 tokens, 30522 words",
                     [c] { return BuildBert(c); }});
  c.layers = 64;
  c.hidden = 2560;
  c.heads = 64;
  models->push_back({"bert-64", "BitPipe 2024", 0, 0, "30522 words", [c] { return BuildBert(c); }});
  c.post_norms = c.exact_gelu = c.tied_embeddings = true;
  c.token_types = 2;
  c.head_norm_epsilon = 1e-12;
  const auto add = [&](const char* name, double printed) {
    models->push_back({name, "Devlin et al. 2019, section 3", printed, 10e6,
                       "512 tokens, 30522 words, no pooler or head of next sentences",
                       [c] { return BuildBert(c); }});
  };
  c.layers = 12;
  c.hidden = 768;
  c.heads = 12;
  add("bert-base", 110e6);
  c.layers = 24;
  c.hidden = 1024;
  c.heads = 16;
  add("bert-large", 340e6);
}

void AddBaPipe(Models* models) {
  models->push_back({"gnmt-8", "Wu et al. 2016, in BaPipe's study", 0, 0,
                     "50 tokens, 32000 words; costs alone",
                     [] { return BuildGnmt(GnmtConfig()); }});
}

void AddGraphPipe(Models* models) {
  const std::string source = "Jeon et al. 2025 (GraphPipe)";
  models->push_back({"mmt", source, 0, 0, "32000 words", [] { return BuildMmt(PublishedMmt()); }});
  models->push_back({"dlrm", source, 0, 0,
                     "4096 features per dense branch, 4 layers after the join",
                     [] { return BuildDlrm(PublishedDlrm()); }});
  models->push_back({"candle-uno", source, 0, 0,
                     "4096 features per branch, 4 layers after the join",
                     [] { return BuildCandleUno(PublishedCandleUno()); }});
  models->push_back({"case-study", source, 0, 0, "widths, words and tokens: those of mmt",
                     [] { return BuildCaseStudy(CaseStudyConfig()); }});
}

// The papers' networks, small enough to train within seconds on one machine.
void AddSmall(Models* models) {
  const std::string source = "small, to be run";
  GptConfig gpt;
  gpt.layers = 6;
  gpt.hidden = 64;
  gpt.heads = 4;
  gpt.tokens = 32;
  gpt.vocabulary = 96;
  AddPublished("gpt-small", source, 0, 0, "all sizes", gpt, models);
  AddPublished("llama-small", source, 0, 0, "all sizes", LlamaConfig(6, 64, 4, 172, 32, 96),
               models);
  AddPublished("mixtral-small", source, 0, 0, "all sizes",
               Experts(8, 2, LlamaConfig(6, 64, 4, 86, 32, 96)), models);
  models->push_back({"mmt-small", source, 0, 0, "all sizes", [] {
                       MmtConfig c = PublishedMmt();
                       c.layers = 2;
                       c.hidden = 64;
                       c.heads = 4;
                       c.tokens = 32;
                       c.feed_forward = 256;
                       c.vocabulary = 96;
                       return BuildMmt(c);
                     }});
  models->push_back({"dlrm-small", source, 0, 0, "all sizes", [] {
                       DlrmConfig c = PublishedDlrm();
                       for (FeatureField& field : c.dense) field.features = 64;
                       for (DlrmConfig::Bag& bag : c.bags) bag.rows = 1000;
                       c.hidden = 64;
                       return BuildDlrm(c);
                     }});
  models->push_back({"candle-uno-small", source, 0, 0, "all sizes", [] {
                       CandleUnoConfig c = PublishedCandleUno();
                       for (FeatureField& field : c.branches) field.features = 64;
                       c.hidden = 64;
                       return BuildCandleUno(c);
                     }});
}

absl::StatusOr<ModelGraph> GraphOf(absl::StatusOr<GroupedModel> model) {
  if (!model.ok()) return model.status();
  return std::move(model->graph);
}

// For CIFAR's images of 32 x 32, and ImageNet's.
void AddCifar(Models* models) {
  models->push_back({"resnet-110", "He et al. 2016, section 4.2", 1.7e6, 0.1e6,
                     "1 x 1 convolutions where the image is halved",
                     [] { return GraphOf(BuildCifarResNet(110)); }});
  models->push_back({"vit-s-4", "ViT-S of Touvron et al. 2021 (DeiT), for CIFAR", 0, 0,
                     "patches of 4 x 4, mean over the patches",
                     [] { return GraphOf(BuildVit(VitS4())); }});
  models->push_back({"vit-b-16", "Dosovitskiy et al. 2021, Table 1", 0, 0,
                     "images of 224 x 224, 1000 classes, class token",
                     [] { return GraphOf(BuildVit(VitB16())); }});
}

// Networks of convolutions, on images as small as these have them.
void AddSmallImages(Models* models) {
  const std::string source = "small, to be run";
  models->push_back({"amoebanet-small", source, 0, 0, "all sizes", [] {
                       AmoebaNetConfig c;
                       c.layers = 3;
                       c.filters = 16;
                       c.classes = 10;
                       c.height = c.width = 16;
                       c.stem_stride = 1;
                       c.stem_reductions = 0;
                       return GraphOf(BuildAmoebaNet(c));
                     }});
  models->push_back({"resnet-small", source, 0, 0, "all sizes", [] {
                       ResNetConfig c;
                       c.blocks = {1, 1, 1};
                       c.width = 8;
                       c.classes = 10;
                       c.height = c.image_width = 16;
                       return GraphOf(BuildResNet(c));
                     }});
  models->push_back({"unet-small", source, 0, 0, "all sizes", [] {
                       UNetConfig c;
                       c.levels = 2;
                       c.width = 4;
                       c.side = 16;
                       return GraphOf(BuildUNet(c));
                     }});
  models->push_back({"vgg-small", source, 0, 0, "all sizes", [] {
                       VggConfig c;
                       c.width = 4;
                       c.dense = 32;
                       c.classes = 10;
                       c.side = 32;
                       return GraphOf(BuildVgg16(c));
                     }});
}

}  // namespace

const std::vector<PublishedModel>& PublishedModels() {
  static const Models* const models = [] {
    auto* all = new Models;
    AddTransformerL(all);
    AddTranslation(all);
    AddGpt(all);
    AddLlama(all);
    AddLlamaBlocks(all);
    AddGemma(all);
    AddPostNormGemmas(all);
    AddExpertModels(all);
    AddGptOss(all);
    AddLatentModels(all);
    AddBert(all);
    AddGraphPipe(all);
    AddBaPipe(all);
    AddSmall(all);
    AddCifar(all);
    AddSmallImages(all);
    return all;
  }();
  return *models;
}

absl::StatusOr<ModelGraph> BuildPublished(absl::string_view name, absl::string_view option) {
  for (const PublishedModel& m : PublishedModels()) {
    if (m.name == name) return m.build();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      option, "=", name, ": is not one of ",
      absl::StrJoin(PublishedModels(), ", ", [](std::string* out, const PublishedModel& m) {
        absl::StrAppend(out, m.name);
      })));
}

}  // namespace pipelab
