#include "experiments/scaling/gpipe_family.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/specs/unfused_attention_spec.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<GroupedModel> BuildAmoebaNetD(int64_t layers, int64_t width) {
  AmoebaNetConfig config;
  config.layers = layers;
  config.filters = width;
  return BuildAmoebaNet(config);
}

// A language model with separate embeddings, the output's with a bias, and sinusoidal positions:
// what gives all counts of Table 1. A group is a Transformer layer, or one of the two embeddings.
absl::StatusOr<GroupedModel> BuildTransformerL(int64_t layers, int64_t width) {
  GptConfig config;
  config.layers = layers;
  config.hidden = width;
  config.heads = 32;
  config.tokens = 1024;
  config.vocabulary = 32000;
  config.output_bias = true;
  config.positions = Positions::kSinusoidal;
  GroupedModel model;
  PIPELAB_ASSIGN_OR_RETURN(model.graph, BuildGpt(config));
  model.graph = WithUnfusedAttention(std::move(model.graph));
  const int n = static_cast<int>(model.graph.layers.size());
  // The embedding, attention and MLP of each block, the head.
  for (int i = 0; i < n; ++i) model.group_of_layer.push_back((i + 1) / 2);
  return model;
}

const GpipeFamily* AmoebaNet() {
  static const GpipeFamily* const family = [] {
    auto* f = new GpipeFamily;
    f->id = "amoebanet";
    f->title = "AmoebaNet-D";
    f->cluster = "tpu-v2";
    f->batch = 128;
    f->unit = "GB";
    f->bytes_of_unit = 1e9;
    f->widens = true;
    f->step = 16;
    f->build = BuildAmoebaNetD;
    return f;
  }();
  return family;
}

const GpipeFamily* Transformer() {
  static const GpipeFamily* const family = [] {
    auto* f = new GpipeFamily;
    f->id = "transformer";
    f->title = "Transformer";
    f->cluster = "tpu-v3";
    f->batch = 32;
    f->unit = "GiB";
    f->bytes_of_unit = 1024.0 * 1024.0 * 1024.0;
    f->build = BuildTransformerL;
    return f;
  }();
  return family;
}

}  // namespace

std::string GpipeFamily::ModelName(int64_t layers, int64_t width) const {
  return widens ? absl::StrCat(title, " (", layers, ", ", width, ")")
                : absl::StrCat(title, "-", layers);
}

absl::StatusOr<const GpipeFamily*> FindGpipeFamily(absl::string_view id) {
  for (const GpipeFamily* family : {AmoebaNet(), Transformer()}) {
    if (family->id == id) return family;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("family \"", id, "\": must be amoebanet or transformer"));
}

NumberType TypeOn(const ClusterSpec& cluster) {
  return cluster.device.peaks.count(NumberType::kFp32) > 0 ? NumberType::kFp32 : NumberType::kBf16;
}

}  // namespace pipelab
