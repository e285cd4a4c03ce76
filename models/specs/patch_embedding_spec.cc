#include "models/specs/patch_embedding_spec.h"

#include <cmath>

#include "glog/logging.h"
#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec PatchEmbeddingSpec(const PatchEmbeddingSizes& s) {
  CHECK(s.height % s.patch == 0 && s.width % s.patch == 0)
      << s.name << ": patches of " << s.patch << " in " << s.height << " x " << s.width;
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kPatchEmbedding;
  layer.output_shape = {s.tokens(), s.hidden};
  const double stddev =
      s.stddev > 0 ? s.stddev : 1 / std::sqrt(static_cast<double>(s.patch_size()));
  layer.parameters = {
      {s.name + "/w", {s.patch_size(), s.hidden}, InitKind::kNormal, stddev, ""},
      {s.name + "/b", {s.hidden}, InitKind::kZeros, 0, ""},
      {s.name + "/positions", {s.tokens(), s.hidden}, InitKind::kNormal, s.position_stddev, ""},
  };
  if (s.class_token) {
    layer.parameters.push_back(
        {s.name + "/class", {s.hidden}, InitKind::kNormal, s.position_stddev, ""});
  }
  layer.data = {{s.field, FieldType::kFloat, {s.height, s.width, s.channels}}};
  layer.attributes = {{"height", s.height},
                      {"width", s.width},
                      {"channels", s.channels},
                      {"patch", s.patch},
                      {"class_token", s.class_token ? 1 : 0}};
  layer.operations = [p = s.patches(), t = s.tokens(), k = s.patch_size(), c = s.hidden](
                         int64_t samples, TokenSlice) {
    const int64_t m = samples * p, rows = samples * t;
    LayerOperations ops;
    ops.forward = {ElementwiseOperation(2 * m * k), MatmulOperation(m, c, k),
                   ElementwiseOperation(3 * rows * c)};  // patches, product, positions
    ops.backward_weight = {WeightGradientOperation(m, c, k), ElementwiseOperation(2 * rows * c)};
    return ops;
  };
  SetCosts(&layer, [p = s.patches(), t = s.tokens(), k = s.patch_size(), c = s.hidden](
                       NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      const int64_t m = samples * p;
      LayerCosts costs;
      costs.forward = costs.backward_weight = MatmulFlops(m, c, k);
      costs.output = costs.kept_for_weight = width(samples * t * c);
      // The patches come first, and are drawn again for the weight gradient.
      costs.forward_peak = width(m * k) + costs.output;
      costs.backward_peak = costs.backward_weight_peak = width(m * k);
      return costs;
    };
  });
  return layer;
}

PatchEmbeddingSizes PatchEmbeddingSizesOf(const LayerSpec& layer) {
  const auto number = [&layer](const char* name) { return WholeAttribute(layer, name); };
  PatchEmbeddingSizes s;
  s.height = number("height");
  s.width = number("width");
  s.channels = number("channels");
  s.patch = number("patch");
  s.class_token = number("class_token") != 0;
  s.hidden = layer.output_shape[1];
  return s;
}

}  // namespace pipelab
