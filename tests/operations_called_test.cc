// The operations that layers state (LayerSpec::operations, with what only our kernels do) against
// the kernels that a stage of them calls: the flops of products to the last one, the numbers that
// the others read and write, kind by kind and pass by pass. So a cost model that is fed with them
// is fed with what runs.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/recording/recording_backend.h"
#include "models/data/random_batches.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/gpt.h"
#include "models/zoo/resnet.h"
#include "models/zoo/transformer.h"
#include "models/zoo/unet.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cost/stage_plan.h"
#include "pipelines/runtime/layer_stage.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

struct KindWork {
  double flops = 0, numbers = 0;
};
using WorkOfKind = std::map<OperationKind, KindWork>;

struct KernelForm {
  OperationKind kind;
  double reads = 1;  // numbers as operations count them, for each of the call's tensors
};

// Each number once: but normalisations read their input twice, and operations say so; a softmax is
// counted as if written.
const std::map<std::string, KernelForm>& Forms() {
  using Kind = OperationKind;
  static const auto* const forms = new std::map<std::string, KernelForm>{
      {"Linear", {Kind::kMatmul}},
      {"LinearInputGradient", {Kind::kMatmul}},
      {"LinearWeightGradient", {Kind::kMatmul}},
      {"LinearTransposed", {Kind::kMatmul}},
      {"LinearTransposedInputGradient", {Kind::kMatmul}},
      {"LinearTransposedWeightGradient", {Kind::kMatmul}},
      {"Convolution", {Kind::kConvolution}},
      {"ConvolutionInputGradient", {Kind::kConvolution}},
      {"ConvolutionWeightGradient", {Kind::kConvolution}},
      {"Attention", {Kind::kAttention}},
      {"AttentionGradient", {Kind::kAttention}},
      {"CrossAttention", {Kind::kAttention}},
      {"CrossAttentionGradient", {Kind::kAttention}},
      {"LayerNorm", {Kind::kLayerNorm}},
      {"LayerNormInputGradient", {Kind::kLayerNorm}},
      {"LayerNormWeightGradient", {Kind::kLayerNorm}},
      {"BatchNorm", {Kind::kBatchNorm, 3.0 / 2}},
      {"BatchNormInputGradient", {Kind::kBatchNorm, 5.0 / 3}},
      {"BatchNormWeightGradient", {Kind::kBatchNorm}},
      {"Relu", {Kind::kActivation}},
      {"ReluGradient", {Kind::kActivation}},
      {"Gelu", {Kind::kGelu}},
      {"GeluGradient", {Kind::kGelu}},
      {"MaxPool", {Kind::kPool}},
      {"MaxPoolGradient", {Kind::kPool}},
      {"AveragePool", {Kind::kPool}},
      {"AveragePoolGradient", {Kind::kPool}},
      {"CrossEntropy", {Kind::kLoss, 2}},
      {"CrossEntropyGradient", {Kind::kLoss}},
      {"Add", {Kind::kElementwise}},
      {"AddDropout", {Kind::kElementwise}},
      {"Rotate", {Kind::kElementwise}},
      {"ShareHead", {Kind::kElementwise}},
      {"ShareHeadGradient", {Kind::kElementwise}},
      {"Copy", {Kind::kElementwise}},
      {"CopyColumns", {Kind::kElementwise}},
      {"Fill", {Kind::kElementwise}},
      {"Gate", {Kind::kGelu}},
      {"GateGradient", {Kind::kGelu}},
      {"Lookup", {Kind::kElementwise}},
      {"LookupPart", {Kind::kElementwise, 2.0 / 3}},  // without positions
      {"LookupPartWeightGradient", {Kind::kElementwise}},
      {"LookupWeightGradient", {Kind::kElementwise, 3.0 / 5}},
      {"BagWeightGradient", {Kind::kElementwise}},
  };
  return *forms;
}

WorkOfKind Called(RecordingBackend* backend) {
  WorkOfKind work;
  for (const KernelCall& call : backend->TakeCalls()) {
    const auto form = Forms().find(call.kernel);
    if (form == Forms().end()) {
      ADD_FAILURE() << "no operation is known for the kernel " << call.kernel;
      continue;
    }
    KindWork& of = work[form->second.kind];
    of.flops += call.flops;
    if (!HasProducts(form->second.kind)) {
      of.numbers += form->second.reads * static_cast<double>(call.numbers);
    }
  }
  return work;
}

void AddStated(const std::vector<Operation>& operations, WorkOfKind* work) {
  for (const Operation& o : operations) {
    KindWork& of = (*work)[o.kind];
    of.flops += o.flops.value();
    if (!HasProducts(o.kind)) of.numbers += static_cast<double>(o.numbers);
  }
}

// What images' layers copy that is no call of the backend: weights into the library's layout and
// their gradients back, the data itself.
double OutsideCalls(const LayerSpec& layer, int64_t samples, bool forward) {
  double numbers = 0;
  if (layer.kind == "image_conv") {
    numbers += (forward                ? 2.0
                : layer.inputs.empty() ? 3.0
                                       : 5.0) *
               static_cast<double>(layer.parameters[0].size());
    if (layer.inputs.empty()) numbers += 2.0 * static_cast<double>(samples * layer.data[0].size());
  }
  return numbers;
}

// The gradient of a residual is part of its norm's operation where layers state it.
void PutNormsToSums(WorkOfKind* work) {
  (*work)[OperationKind::kElementwise].numbers += (*work)[OperationKind::kLayerNorm].numbers;
  work->erase(OperationKind::kLayerNorm);
}

void ExpectSame(const WorkOfKind& stated, const WorkOfKind& called, const char* pass) {
  for (int k = 0; k < static_cast<int>(OperationKind::kMeasured); ++k) {
    const auto kind = static_cast<OperationKind>(k);
    const auto of = [kind](const WorkOfKind& work) {
      const auto it = work.find(kind);
      return it == work.end() ? KindWork() : it->second;
    };
    const KindWork s = of(stated), c = of(called);
    EXPECT_NEAR(s.flops, c.flops, 1e-9 * c.flops) << pass << ", " << OperationKindName(kind);
    // Columns of norms, positions and biases are left out on either side.
    EXPECT_NEAR(s.numbers, c.numbers, 0.03 * c.numbers) << pass << ", " << OperationKindName(kind);
  }
}

void ExpectStatedIsCalled(const ModelGraph& graph, int64_t samples) {
  const RandomBatches data(FieldsOf(graph), samples, /*seed=*/1);
  Arena arena;
  RecordingBackend backend(MakeCpuBackend(&arena));
  LayerStageOptions options;
  options.micro_batch_size = samples;
  options.data = &data;
  options.batch_tokens = samples * data.targets_per_sample();
  const int layers = static_cast<int>(graph.layers.size());
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<LayerStage> stage,
      LayerStage::Create(graph, 0, layers, static_cast<Backend*>(&backend), options));
  WorkOfKind forward, backward;
  double outside_forward = 0, outside_backward = 0;
  for (const LayerSpec& layer : graph.layers) {
    const LayerOperations ops = layer.operations(samples, TokenSlice());
    AddStated(ops.forward, &forward);
    AddStated(ops.backward_input, &backward);
    AddStated(ops.backward_weight, &backward);
    outside_forward += OutsideCalls(layer, samples, /*forward=*/true);
    outside_backward += OutsideCalls(layer, samples, /*forward=*/false);
  }
  // Gradients of outputs that several layers take are added up.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition partition, MakeRangePartition(graph, {0}));
  for (const StagePlan::Value& value : MakeStagePlan(graph, partition, 0).values) {
    if (value.consumers.size() < 2) continue;
    const double size = CostsOf(graph.layers[value.layer], samples, TokenSlice()).output / Bytes(4);
    backward[OperationKind::kElementwise].numbers +=
        3 * size * static_cast<double>(value.consumers.size() - 1);
  }

  backend.TakeCalls();  // of the parameters' start
  ASSERT_THAT(stage->Forward({ActionKind::kForward}, {}, /*drop=*/false), IsOk());
  WorkOfKind called = Called(&backend);
  called[OperationKind::kElementwise].numbers += outside_forward;
  ExpectSame(forward, called, "forward");
  ASSERT_THAT(stage->Backward({ActionKind::kBackward}, {}), IsOk());
  called = Called(&backend);
  called[OperationKind::kElementwise].numbers += outside_backward;
  PutNormsToSums(&backward);
  PutNormsToSums(&called);
  ExpectSame(backward, called, "backward");
}

TEST(OperationsCalled, Gpt) {
  GptConfig config;
  config.layers = 2;
  config.hidden = 64;
  config.heads = 2;
  config.tokens = 32;
  config.vocabulary = 96;
  for (bool tied : {false, true}) {
    config.tied_embeddings = tied;
    ExpectStatedIsCalled(*BuildGpt(config), 3);
  }
}

// Latent attention; the feed-forward is GPT's.
TEST(OperationsCalled, LatentAttention) {
  for (const int64_t query_rank : {0, 24}) {
    GptConfig config = LlamaConfig(/*layers=*/2, /*hidden=*/64, /*heads=*/2, /*feed_forward=*/128,
                                   /*tokens=*/32, /*vocabulary=*/96);
    config.latent = {query_rank, /*rank=*/16, /*nope_size=*/24, /*rope_size=*/8, /*value_size=*/20};
    config.feed_forward_kind = FeedForwardKind::kSwiGlu;
    ExpectStatedIsCalled(*BuildGpt(config), 3);
  }
}

TEST(OperationsCalled, AmoebaNet) {
  AmoebaNetConfig config;
  config.layers = 3;
  config.filters = 64;
  config.classes = 10;
  config.height = config.width = 16;
  config.stem_stride = 1;
  config.stem_reductions = 0;
  ExpectStatedIsCalled(BuildAmoebaNet(config)->graph, 4);
}

TEST(OperationsCalled, Transformer) {
  TransformerConfig config;
  config.layers = 1;
  config.hidden = 64;
  config.heads = 2;
  config.feed_forward = 128;
  config.source_tokens = 24;
  config.target_tokens = 32;
  config.vocabulary = 96;
  ExpectStatedIsCalled(*BuildTransformer(config), 2);
}

TEST(OperationsCalled, ResNetAndUNet) {
  ResNetConfig resnet = ResNet50();
  resnet.height = resnet.image_width = 32;
  resnet.width = 16;
  ExpectStatedIsCalled(BuildResNet(resnet)->graph, 2);
  UNetConfig unet;
  unet.side = 32;
  unet.width = 16;
  ExpectStatedIsCalled(BuildUNet(unet)->graph, 2);
}

}  // namespace
}  // namespace pipelab
