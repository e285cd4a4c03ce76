#include "models/layers/factory.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/layers/makers.h"
#include "models/layers/vocabulary_layers.h"
#include "models/specs/add_spec.h"
#include "models/specs/batch_norm_spec.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/concat_spec.h"
#include "models/specs/cross_attention_spec.h"
#include "models/specs/data_input_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/element_loss_spec.h"
#include "models/specs/embedding_bag_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/graph_conv_spec.h"
#include "models/specs/image_conv_spec.h"
#include "models/specs/norm_spec.h"
#include "models/specs/patch_embedding_spec.h"
#include "models/specs/pool_spec.h"
#include "models/specs/relu_spec.h"
#include "models/specs/subsample_spec.h"
#include "models/specs/up_conv_spec.h"
#include "models/specs/vocabulary_parts.h"

namespace pipelab {
namespace {

struct Kind {
  const char* name;
  std::unique_ptr<Layer> (*make)(const LayerSpec&);
};

constexpr Kind kKinds[] = {
    {kAdd, MakeAdd},
    {kBatchNorm, MakeBatchNorm},
    {kClassifier, MakeClassifier},
    {kConcat, MakeConcat},
    {kCrossAttention, MakeCrossAttention},
    {kDataInput, MakeDataInput},
    {kDense, MakeDense},
    {kElementLoss, MakeElementLoss},
    {kEmbeddingBag, MakeEmbeddingBag},
    {kGatConv, MakeGatConv},
    {kGinConv, MakeGinConv},
    {kGptAttention, MakeGptAttention},
    {kGptEmbedding, MakeGptEmbedding},
    {kGptExperts, MakeGptExperts},
    {kGptHead, MakeGptHead},
    {kGptLatentAttention, MakeGptLatentAttention},
    {kGptMlp, MakeGptMlp},
    {kImageConv, MakeImageConv},
    {kNorm, MakeNorm},
    {kPatchEmbedding, MakePatchEmbedding},
    {kPool, MakePool},
    {kRelu, MakeRelu},
    {kSageConv, MakeSageConv},
    {kSubsample, MakeSubsample},
    {kUpConv, MakeUpConv},
    {kVocabularyEmbedding, MakeVocabularyEmbedding},
    {kVocabularyLoss, MakeVocabularyLoss},
    {kVocabularyShard, MakeVocabularyShard},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> MakeLayer(const LayerSpec& spec) {
  if (!spec.priced_alone.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layer \"", spec.name, "\" has ", spec.priced_alone, ", which are priced and do not run"));
  }
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
