// Operations against costs, for every layer of the zoo: the same flops in each pass, and no number
// less than what the pass must read and write.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/mmt.h"
#include "models/zoo/published.h"
#include "models/zoo/resnet.h"
#include "models/zoo/unet.h"
#include "models/zoo/vgg.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

double FlopsIn(const std::vector<Operation>& operations) {
  double flops = 0;
  for (const Operation& o : operations) flops += o.flops.value();
  return flops;
}

int64_t NumbersIn(const std::vector<Operation>& operations) {
  int64_t numbers = 0;
  for (const Operation& o : operations) numbers += o.numbers;
  return numbers;
}

int64_t SizeOf(const std::vector<int64_t>& shape) {
  return shape.empty()
             ? 0
             : std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

void CheckPass(const std::vector<Operation>& operations, Flops flops, const char* pass) {
  EXPECT_NEAR(FlopsIn(operations), flops.value(), 1e-12 * flops.value()) << pass;
  for (const Operation& o : operations) {
    EXPECT_GT(o.numbers, 0) << pass;
    EXPECT_EQ(o.flops == Flops(0), !HasProducts(o.kind)) << pass;
  }
}

void CheckLayer(const LayerSpec& layer, int64_t samples, TokenSlice slice) {
  const LayerCosts costs = CostsOf(layer, samples, slice);
  const LayerOperations ops = layer.operations(samples, slice);
  CheckPass(ops.forward, costs.forward, "forward");
  CheckPass(ops.backward_input, costs.backward_input, "input gradient");
  CheckPass(ops.backward_weight, costs.backward_weight, "weight gradient");
}

// `checked` saves the many equal layers of a deep model.
void CheckModel(const ModelGraph& graph, std::set<std::string>* kinds) {
  std::set<std::string> checked;
  for (const LayerSpec& layer : graph.layers) {
    std::string form = layer.kind;
    for (const auto& shape : layer.input_shapes) form += testing::PrintToString(shape);
    form += testing::PrintToString(layer.output_shape) + testing::PrintToString(layer.attributes);
    if (!checked.insert(form).second) continue;
    SCOPED_TRACE(graph.name + ", " + layer.name);
    kinds->insert(layer.kind);
    for (int64_t samples : {1, 4}) CheckLayer(layer, samples, TokenSlice());
    if (layer.slice_costs && !layer.output_shape.empty() && layer.output_shape[0] >= 128) {
      CheckLayer(layer, 2, {0, 64});
      CheckLayer(layer, 2, {64, layer.output_shape[0] - 64});
    }
    // Inputs are read and the output is written; a subsample and the pool of a class token read a
    // part of their input.
    const LayerOperations ops = layer.operations(3, TokenSlice());
    int64_t touched = SizeOf(layer.output_shape);
    if (layer.kind != "subsample" && layer.name != "class") {
      for (const auto& shape : layer.input_shapes) touched += SizeOf(shape);
    }
    EXPECT_GE(NumbersIn(ops.forward), 3 * touched);
  }
}

TEST(Operations, HaveTheFlopsOfTheCosts) {
  std::set<std::string> kinds;
  for (const PublishedModel& model : PublishedModels()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, model.build());
    CheckModel(graph, &kinds);
  }
  AmoebaNetConfig amoebanet;
  amoebanet.layers = 18;
  amoebanet.filters = 256;
  for (const absl::StatusOr<GroupedModel>& model :
       {BuildAmoebaNet(amoebanet), BuildResNet(ResNet50()), BuildUNet({}), BuildVgg16({})}) {
    ASSERT_THAT(model, IsOk());
    CheckModel(model->graph, &kinds);
  }
  MmtModality text, picture;
  text.field = "text";
  text.length_field = "text_length";
  text.tokens = 24;
  text.vocabulary = 300;
  picture.kind = MmtModality::kPicture;
  picture.field = "image";
  picture.height = picture.width = 32;
  picture.channels = 3;
  picture.patch = 8;
  MmtConfig mmt;
  mmt.layers = 1;
  mmt.hidden = 32;
  mmt.heads = 2;
  mmt.feed_forward = 64;
  mmt.modalities = {text, picture};
  mmt.classes = 9;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph modalities, BuildMmt(mmt));
  CheckModel(modalities, &kinds);
  EXPECT_GE(kinds.size(), 19u) << testing::PrintToString(kinds);
}

TEST(Operations, SlicesShareOutTheWhole) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("terapipe-1b"));
  for (const LayerSpec& layer : graph.layers) {
    const int64_t tokens =
        layer.output_shape.empty() ? layer.input_shapes[0][0] : layer.output_shape[0];
    double sum = 0;
    for (int64_t first = 0; first < tokens; first += tokens / 4) {
      sum += FlopsIn(layer.operations(2, {first, tokens / 4}).backward_input);
    }
    const double whole = FlopsIn(layer.operations(2, TokenSlice()).backward_input);
    EXPECT_NEAR(sum, whole, 1e-12 * whole) << layer.name;
  }
}

}  // namespace
}  // namespace pipelab
