#include "tests/pytorch/networks.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "models/specs/patch_embedding_spec.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/bert.h"
#include "models/zoo/candle_uno.h"
#include "models/zoo/case_study.h"
#include "models/zoo/dlrm.h"
#include "models/zoo/feature_branches.h"
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

// Widths of the table are of no vector's length where the network leaves the choice.
template <class T>
T Either(Sizes sizes, T table, T speed) {
  return sizes == Sizes::kTable ? std::move(table) : std::move(speed);
}

ComparedNetwork Named(const char* name, absl::StatusOr<ModelGraph> graph) {
  CHECK(graph.ok()) << name << ": " << graph.status();
  ComparedNetwork n;
  n.name = name;
  n.graph = *std::move(graph);
  return n;
}

ComparedNetwork Named(const char* name, absl::StatusOr<GroupedModel> model) {
  CHECK(model.ok()) << name << ": " << model.status();
  return Named(name, absl::StatusOr<ModelGraph>(std::move(model->graph)));
}

ComparedNetwork WithBatches(ComparedNetwork n, int64_t micro_batch_size, int num_micro_batches) {
  n.micro_batch_size = micro_batch_size;
  n.num_micro_batches = num_micro_batches;
  return n;
}

ComparedNetwork Gpt(Sizes sizes, bool tied) {
  GptConfig c;
  c.layers = Either(sizes, 2, 4);
  c.hidden = Either(sizes, 21, 256);
  c.heads = Either(sizes, 3, 4);
  c.tokens = Either(sizes, 13, 128);
  c.vocabulary = Either(sizes, 19, 96);
  c.tied_embeddings = tied;
  ComparedNetwork n = Named(tied ? "gpt_tied" : "gpt", BuildGpt(c));
  n.settings = {{"layers", c.layers}, {"heads", c.heads}};
  return WithBatches(std::move(n), Either(sizes, 3, 4), Either(sizes, 2, 4));
}

ComparedNetwork Llama(Sizes sizes) {
  const int64_t layers = Either(sizes, 2, 4), heads = Either(sizes, 3, 4);
  ComparedNetwork n = Named(
      "llama", BuildGpt(LlamaConfig(layers, Either(sizes, 30, 256), heads, Either(sizes, 23, 688),
                                    Either(sizes, 13, 128), Either(sizes, 19, 96))));
  n.settings = {{"layers", layers}, {"heads", heads}};
  return WithBatches(std::move(n), Either(sizes, 3, 4), Either(sizes, 2, 4));
}

// Grouped queries, biases of q, k and v alone, one table.
ComparedNetwork Qwen2(Sizes sizes) {
  const int64_t layers = Either(sizes, 2, 4);
  GptConfig c = LlamaConfig(layers, Either(sizes, 20, 256), Either(sizes, 6, 8),
                            Either(sizes, 23, 688), Either(sizes, 13, 128), Either(sizes, 19, 96));
  c.kv_heads = 2;
  c.head_size = Either(sizes, 4, 32);
  c.biases = Biases::kQueryKeyValue;
  c.tied_embeddings = true;
  ComparedNetwork n = Named("qwen2", BuildGpt(c));
  n.settings = {{"layers", layers}, {"heads", c.heads}, {"kv_heads", c.kv_heads}};
  return WithBatches(std::move(n), Either(sizes, 3, 4), Either(sizes, 2, 4));
}

ComparedNetwork WithExperts(const char* name, Sizes sizes, const GptConfig& c) {
  ComparedNetwork n = Named(name, BuildGpt(c));
  n.settings = {{"layers", c.layers},
                {"heads", c.heads},
                {"kv_heads", c.kv_heads},
                {"chosen", c.experts.chosen},
                {"sigmoid", c.experts.sigmoid ? 1 : 0},
                {"scale", static_cast<int64_t>(c.experts.scale)}};
  return WithBatches(std::move(n), Either(sizes, 3, 4), Either(sizes, 2, 4));
}

ComparedNetwork Mixtral(Sizes sizes) {
  GptConfig c = LlamaConfig(Either(sizes, 2, 4), Either(sizes, 20, 256), Either(sizes, 6, 8),
                            Either(sizes, 13, 344), Either(sizes, 13, 128), Either(sizes, 19, 96));
  c.kv_heads = 2;
  c.head_size = Either(sizes, 4, 32);
  c.experts.experts = Either(sizes, 5, 8);
  c.experts.chosen = 2;
  return WithExperts("mixtral", sizes, c);
}

// As Qwen3 and DeepSeek-V3 have them: norms of q and k, a first block without experts, sigmoids,
// one shared expert.
ComparedNetwork SharedExperts(Sizes sizes) {
  GptConfig c = LlamaConfig(Either(sizes, 3, 4), Either(sizes, 18, 256), Either(sizes, 3, 4),
                            Either(sizes, 23, 344), Either(sizes, 13, 128), Either(sizes, 19, 96));
  c.kv_heads = 1;
  c.head_size = Either(sizes, 8, 64);
  c.query_key_norms = true;
  c.dense_blocks = 1;
  c.expert_feed_forward = Either(sizes, 7, 86);
  c.experts.experts = Either(sizes, 6, 16);
  c.experts.chosen = 3;
  c.experts.shared = 1;
  c.experts.sigmoid = true;
  c.experts.scale = 2;
  return WithExperts("shared_experts", sizes, c);
}

// A window in every other block, over keys that heads share.
ComparedNetwork Windows(Sizes sizes) {
  GptConfig c = LlamaConfig(Either(sizes, 3, 4), Either(sizes, 18, 256), Either(sizes, 3, 4),
                            Either(sizes, 23, 688), Either(sizes, 13, 128), Either(sizes, 19, 96));
  c.kv_heads = 1;
  c.windows = {Either(sizes, 4, 32), 0};
  ComparedNetwork n = Named("windows", BuildGpt(c));
  n.settings = {
      {"layers", c.layers}, {"heads", c.heads}, {"kv_heads", c.kv_heads}, {"window", c.windows[0]}};
  return WithBatches(std::move(n), Either(sizes, 3, 4), Either(sizes, 2, 4));
}

// Latent attention with a low-rank product of queries, a first block without experts, experts of
// two of three nodes.
ComparedNetwork DeepSeek(Sizes sizes) {
  GptConfig c = LlamaConfig(Either(sizes, 2, 4), Either(sizes, 18, 256), Either(sizes, 3, 4),
                            Either(sizes, 23, 344), Either(sizes, 13, 128), Either(sizes, 19, 96));
  c.latent = Either(sizes, LatentHeads{11, 7, 5, 4, 3}, LatentHeads{96, 64, 48, 16, 48});
  c.dense_blocks = 1;
  c.expert_feed_forward = Either(sizes, 7, 86);
  c.experts.experts = Either(sizes, 6, 18);
  c.experts.chosen = 2;
  c.experts.nodes = 3;
  c.experts.most_nodes = 2;
  c.experts.shared = 1;
  c.experts.sigmoid = true;
  c.experts.scale = 2;
  ComparedNetwork n = WithExperts("deepseek", sizes, c);
  n.settings.erase("kv_heads");
  n.settings["nodes"] = c.experts.nodes;
  n.settings["most_nodes"] = c.experts.most_nodes;
  n.settings["rope_size"] = c.latent.rope_size;
  return n;
}

ComparedNetwork Bert(Sizes sizes) {
  BertConfig c;
  c.layers = Either(sizes, 2, 4);
  c.hidden = Either(sizes, 22, 256);
  c.heads = Either(sizes, 2, 4);
  c.tokens = Either(sizes, 11, 128);
  c.vocabulary = Either(sizes, 17, 1000);
  c.padded = true;
  ComparedNetwork n = Named("bert", BuildBert(c));
  n.settings = {{"layers", c.layers}, {"heads", c.heads}};
  return WithBatches(std::move(n), 4, Either(sizes, 2, 4));
}

// Judged by its class token.
ComparedNetwork Vit(Sizes sizes) {
  VitConfig c;
  c.layers = Either(sizes, 2, 4);
  c.hidden = Either(sizes, 22, 192);
  c.heads = Either(sizes, 2, 4);
  c.patch = Either(sizes, 3, 4);
  c.side = Either(sizes, 9, 32);
  c.channels = Either(sizes, 2, 3);
  c.classes = Either(sizes, 5, 10);
  c.class_token = true;
  ComparedNetwork n = Named("vit", BuildVit(c));
  n.settings = {{"layers", c.layers}, {"heads", c.heads}};
  return WithBatches(std::move(n), Either(sizes, 3, 16), 2);
}

ComparedNetwork Transformer(Sizes sizes) {
  TransformerConfig c;
  c.layers = 3;  // the encoder's norm has three readers
  c.hidden = Either(sizes, 22, 128);
  c.heads = Either(sizes, 2, 4);
  c.head_size = Either(sizes, 7, 32);
  c.feed_forward = Either(sizes, 36, 512);
  c.source_tokens = Either(sizes, 9, 48);
  c.target_tokens = Either(sizes, 7, 48);
  c.vocabulary = Either(sizes, 17, 120);
  c.shared_embedding = true;
  c.positions = Positions::kSinusoidal;
  ComparedNetwork n = Named("transformer", BuildTransformer(c));
  n.settings = {{"layers", c.layers}, {"heads", c.heads}};
  return WithBatches(std::move(n), Either(sizes, 3, 16), 2);
}

ComparedNetwork Mmt(Sizes sizes) {
  MmtConfig c;
  c.branches = Either(sizes, 3, 2);
  c.layers = Either(sizes, 1, 3);
  c.hidden = Either(sizes, 18, 128);
  c.heads = Either(sizes, 3, 4);
  c.tokens = Either(sizes, 9, 64);
  c.feed_forward = Either(sizes, 30, 512);
  c.vocabulary = Either(sizes, 17, 96);
  ComparedNetwork n = Named("mmt", BuildMmt(c));
  n.settings = {{"layers", c.layers}, {"heads", c.heads}, {"branches", c.branches}};
  return WithBatches(std::move(n), Either(sizes, 3, 8), 2);
}

ComparedNetwork MmtModalities(Sizes sizes) {
  MmtModality text, picture;
  text.field = "text";
  text.length_field = "text_length";
  text.tokens = Either(sizes, 7, 24);
  text.vocabulary = Either(sizes, 17, 2000);
  picture.kind = MmtModality::kPicture;
  picture.field = "picture";
  picture.height = Either(sizes, 6, 32);
  picture.width = Either(sizes, 9, 32);
  picture.channels = Either(sizes, 2, 3);
  picture.patch = Either(sizes, 3, 4);
  MmtConfig c;
  c.modalities = {text, picture};
  c.layers = Either(sizes, 1, 2);
  c.hidden = Either(sizes, 18, 64);
  c.heads = Either(sizes, 3, 4);
  c.feed_forward = Either(sizes, 30, 256);
  c.classes = Either(sizes, 5, 10);
  ComparedNetwork n = Named("mmt_modalities", BuildMmt(c));
  n.settings = {{"layers", c.layers}, {"heads", c.heads}};
  return WithBatches(std::move(n), Either(sizes, 3, 16), 2);
}

ComparedNetwork CaseStudy(Sizes sizes) {
  CaseStudyConfig c;
  c.branches = 2;
  c.repeats = Either(sizes, 2, 4);
  c.hidden = Either(sizes, 18, 128);
  c.heads = Either(sizes, 2, 4);
  c.tokens = Either(sizes, 7, 64);
  c.feed_forward = Either(sizes, 30, 512);
  c.vocabulary = Either(sizes, 17, 96);
  ComparedNetwork n = Named("case_study", BuildCaseStudy(c));
  n.settings = {{"layers", c.repeats}, {"heads", c.heads}, {"branches", c.branches}};
  return WithBatches(std::move(n), Either(sizes, 3, 8), 2);
}

ComparedNetwork Dlrm(Sizes sizes) {
  DlrmConfig c;
  c.dense = Either<std::vector<FeatureField>>(sizes, {{"dense", 6}, {"more", 3}},
                                              {{"dense", 24}, {"more", 24}});
  c.bags = Either<std::vector<DlrmConfig::Bag>>(
      sizes, {{"genres", 4, 9}, {"fans", 7, 15}},
      {{"genres", 10, 20}, {"fans", 40, 2000}, {"liked", 40, 2000}});
  c.dense_layers = Either(sizes, 2, 3);
  c.hidden = Either(sizes, 21, 256);
  c.embedding = Either(sizes, 5, 32);
  c.join_layers = Either(sizes, 2, 3);
  ComparedNetwork n = Named("dlrm", BuildDlrm(c));
  n.settings = {{"dense_layers", c.dense_layers}, {"join_layers", c.join_layers}};
  return WithBatches(std::move(n), Either(sizes, 6, 256), 2);
}

ComparedNetwork CandleUno(Sizes sizes) {
  CandleUnoConfig c;
  c.branches = Either<std::vector<FeatureField>>(sizes, {{"cell", 9}, {"drug", 5}, {"dose", 1}},
                                                 {{"cell", 200}, {"drug", 300}, {"dose", 1}});
  c.layers = Either(sizes, 2, 3);
  c.hidden = Either(sizes, 21, 256);
  c.join_layers = Either(sizes, 2, 3);
  ComparedNetwork n = Named("candle_uno", BuildCandleUno(c));
  n.settings = {{"layers", c.layers}, {"join_layers", c.join_layers}};
  return WithBatches(std::move(n), Either(sizes, 6, 128), 2);
}

ComparedNetwork AmoebaNet(Sizes sizes) {
  AmoebaNetConfig c;
  c.layers = Either(sizes, 3, 6);
  c.filters = Either(sizes, 32, 64);
  c.classes = Either(sizes, 5, 10);
  c.height = c.width = Either(sizes, 16, 28);
  c.channels = Either(sizes, 2, 1);
  c.stem_stride = 1;
  c.stem_reductions = 0;
  ComparedNetwork n = Named("amoebanet_d", BuildAmoebaNet(c));
  n.settings = {{"layers", c.layers}, {"stem_stride", 1}, {"stem_reductions", 0}};
  return WithBatches(std::move(n), Either(sizes, 8, 32), 2);
}

ComparedNetwork ResNet(Sizes sizes) {
  ResNetConfig c;
  c.blocks = Either<std::vector<int64_t>>(sizes, {1, 2}, {2, 2, 2});
  c.width = Either(sizes, 6, 32);
  c.classes = Either(sizes, 5, 10);
  c.height = c.image_width = Either(sizes, 32, 64);
  c.channels = 3;
  ComparedNetwork n = Named("resnet", BuildResNet(c));
  n.settings = {{"parts", static_cast<int64_t>(c.blocks.size())}};
  for (size_t i = 0; i < c.blocks.size(); ++i) {
    n.settings["blocks" + std::to_string(i + 1)] = c.blocks[i];
  }
  return WithBatches(std::move(n), Either(sizes, 4, 16), 2);
}

ComparedNetwork UNet(Sizes sizes) {
  UNetConfig c;
  c.levels = Either(sizes, 2, 3);
  c.width = Either(sizes, 5, 16);
  c.classes = 3;
  c.side = Either(sizes, 16, 64);
  c.channels = Either(sizes, 2, 1);
  ComparedNetwork n = Named("unet", BuildUNet(c));
  n.settings = {{"levels", c.levels}};
  return WithBatches(std::move(n), Either(sizes, 3, 4), 2);
}

ComparedNetwork Vgg(Sizes sizes) {
  VggConfig c;
  c.width = Either(sizes, 5, 16);
  c.dense = Either(sizes, 21, 128);
  c.classes = Either(sizes, 5, 10);
  c.side = Either(sizes, 32, 64);
  return WithBatches(Named("vgg16", BuildVgg16(c)), Either(sizes, 3, 8), 2);
}

ComparedNetwork With(const char* name, const OptimizerOptions& optimizer, ComparedNetwork n) {
  n.name = name;
  n.optimizer = optimizer;
  return n;
}

OptimizerOptions DecayedAdam() {
  AdamOptions adam;
  adam.learning_rate = 3e-3f;
  adam.weight_decay = 0.1f;
  OptimizerOptions o = OptimizerOptions::Adam(adam);
  o.schedule = {/*warmup_steps=*/5, RateDecay::kInverseSqrt};
  return o;
}

// Clipped in some of the steps.
OptimizerOptions NesterovSgd() {
  SgdOptions sgd;
  sgd.learning_rate = 0.1f;
  sgd.momentum = 0.9f;
  sgd.weight_decay = 0.01f;
  sgd.nesterov = true;
  OptimizerOptions o = OptimizerOptions::Sgd(sgd);
  o.schedule = {/*warmup_steps=*/3, RateDecay::kCosine, /*total_steps=*/20};
  o.clip_norm = 1.2;
  return o;
}

// Clipped in every step. PyTorch has the epsilon outside of the root only.
OptimizerOptions ClippedRmsProp() {
  RmsPropOptions rmsprop;
  rmsprop.learning_rate = 1e-3f;
  rmsprop.decay = 0.9f;
  rmsprop.momentum = 0.9f;
  rmsprop.epsilon = 1e-6f;
  OptimizerOptions o = OptimizerOptions::RmsProp(rmsprop);
  o.clip_norm = 0.1;
  return o;
}

// Larger matrices and biases than the zoo starts with: with small ones attention is all but
// uniform, and a wrong mask or scale would change a loss by no more than rounding does.
// Convolutions of images, which norms or He's rule keep lively, stay as they are.
void StartLarge(ModelGraph* graph) {
  for (LayerSpec& layer : graph->layers) {
    const bool image = !layer.data.empty() && layer.data[0].name == kImage;
    if (image && layer.kind != kPatchEmbedding) return;
    for (ParameterSpec& p : layer.parameters) {
      if (p.init == InitKind::kNormal) p.stddev = std::max(p.stddev, 0.2);
      if (p.init == InitKind::kZeros) {
        p.init = InitKind::kNormal;
        p.stddev = 0.1;
      }
    }
  }
}

}  // namespace

std::vector<ComparedNetwork> ComparedNetworks(Sizes sizes) {
  std::vector<ComparedNetwork> networks = {Gpt(sizes, /*tied=*/false),
                                           Gpt(sizes, /*tied=*/true),
                                           Bert(sizes),
                                           Vit(sizes),
                                           Transformer(sizes),
                                           Mmt(sizes),
                                           MmtModalities(sizes),
                                           CaseStudy(sizes),
                                           Dlrm(sizes),
                                           CandleUno(sizes),
                                           AmoebaNet(sizes),
                                           ResNet(sizes),
                                           UNet(sizes),
                                           Vgg(sizes),
                                           Llama(sizes),
                                           Qwen2(sizes),
                                           Mixtral(sizes),
                                           SharedExperts(sizes),
                                           DeepSeek(sizes),
                                           Windows(sizes)};
  if (sizes == Sizes::kTable) {
    networks.push_back(With("gpt_adamw", DecayedAdam(), Gpt(sizes, /*tied=*/false)));
    networks.push_back(With("gpt_sgd", NesterovSgd(), Gpt(sizes, /*tied=*/true)));
    networks.push_back(With("mmt_rmsprop", ClippedRmsProp(), Mmt(sizes)));
    for (ComparedNetwork& n : networks) StartLarge(&n.graph);
  }
  return networks;
}

absl::StatusOr<std::vector<ComparedNetwork>> ChosenNetworks(absl::string_view sizes,
                                                            absl::string_view network) {
  if (sizes != "table" && sizes != "speed") {
    return absl::InvalidArgumentError(absl::StrCat("--sizes=", sizes, ": must be table or speed"));
  }
  std::vector<ComparedNetwork> all =
      ComparedNetworks(sizes == "table" ? Sizes::kTable : Sizes::kSpeed);
  if (network.empty()) return all;
  std::vector<std::string> names;
  for (ComparedNetwork& n : all) {
    if (n.name == network) return std::vector<ComparedNetwork>{std::move(n)};
    names.push_back(n.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--network=", network, ": there are ", absl::StrJoin(names, ", ")));
}

}  // namespace pipelab
