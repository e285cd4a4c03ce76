#include "models/layers/factory.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/layers/add.h"
#include "models/layers/add_spec.h"
#include "models/layers/batch_norm.h"
#include "models/layers/batch_norm_spec.h"
#include "models/layers/classifier.h"
#include "models/layers/classifier_spec.h"
#include "models/layers/concat.h"
#include "models/layers/concat_spec.h"
#include "models/layers/cross_attention.h"
#include "models/layers/cross_attention_spec.h"
#include "models/layers/data_input.h"
#include "models/layers/data_input_spec.h"
#include "models/layers/dense.h"
#include "models/layers/dense_spec.h"
#include "models/layers/element_loss.h"
#include "models/layers/element_loss_spec.h"
#include "models/layers/embedding_bag.h"
#include "models/layers/embedding_bag_spec.h"
#include "models/layers/gpt_attention.h"
#include "models/layers/gpt_attention_spec.h"
#include "models/layers/gpt_embedding.h"
#include "models/layers/gpt_embedding_spec.h"
#include "models/layers/gpt_head.h"
#include "models/layers/gpt_head_spec.h"
#include "models/layers/gpt_mlp.h"
#include "models/layers/gpt_mlp_spec.h"
#include "models/layers/image_conv.h"
#include "models/layers/image_conv_spec.h"
#include "models/layers/norm.h"
#include "models/layers/norm_spec.h"
#include "models/layers/patch_embedding.h"
#include "models/layers/patch_embedding_spec.h"
#include "models/layers/pool.h"
#include "models/layers/pool_spec.h"
#include "models/layers/relu.h"
#include "models/layers/relu_spec.h"
#include "models/layers/subsample.h"
#include "models/layers/subsample_spec.h"
#include "models/layers/up_conv.h"
#include "models/layers/up_conv_spec.h"

namespace pipelab {
namespace {

struct Kind {
  const char* name;
  std::unique_ptr<Layer> (*make)(const LayerSpec&);
};

template <class T>
std::unique_ptr<Layer> Make(const LayerSpec& spec) {
  return std::make_unique<T>(spec);
}

constexpr Kind kKinds[] = {
    {kAdd, Make<Add>},
    {kBatchNorm, Make<BatchNorm>},
    {kClassifier, Make<Classifier>},
    {kConcat, Make<Concat>},
    {kCrossAttention, Make<CrossAttention>},
    {kDataInput, Make<DataInput>},
    {kDense, Make<Dense>},
    {kElementLoss, Make<ElementLoss>},
    {kEmbeddingBag, Make<EmbeddingBag>},
    {kGptAttention, Make<GptAttention>},
    {kGptEmbedding, Make<GptEmbedding>},
    {kGptHead, Make<GptHead>},
    {kGptMlp, Make<GptMlp>},

    {kImageConv, Make<ImageConv>},
    {kNorm, Make<Norm>},
    {kPatchEmbedding, Make<PatchEmbedding>},
    {kPool, Make<Pool>},
    {kRelu, Make<ReluLayer>},
    {kSubsample, Make<Subsample>},
    {kUpConv, Make<UpConv>},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> MakeLayer(const LayerSpec& spec) {
  for (const Kind& kind : kKinds) {
    if (spec.kind == kind.name) return kind.make(spec);
  }
  return absl::InvalidArgumentError(absl::StrCat("layer \"", spec.name, "\" is of kind \"",
                                                 spec.kind, "\"; there are ",
                                                 absl::StrJoin(LayerKinds(), ", ")));
}

std::vector<std::string> LayerKinds() {
  std::vector<std::string> kinds;
  for (const Kind& kind : kKinds) kinds.push_back(kind.name);
  return kinds;
}

}  // namespace pipelab
