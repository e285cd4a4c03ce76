#include "models/files/network_layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/files/network_json.h"
#include "models/files/network_layer_keys.h"
#include "models/specs/add_spec.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/concat_spec.h"
#include "models/specs/data_input_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/element_loss_spec.h"
#include "models/specs/embedding_bag_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/image_conv_spec.h"
#include "models/specs/norm_spec.h"
#include "models/specs/patch_embedding_spec.h"
#include "models/specs/pool_spec.h"
#include "models/specs/relu_spec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

class LayerReader : NetworkLayerKeys {
 public:
  using NetworkLayerKeys::NetworkLayerKeys;

  absl::StatusOr<NetworkLayer> DataInput() {
    DataInputSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"field", "shape"}, 0, 0));
    PIPELAB_ASSIGN_OR_RETURN(sizes.field, object_.String("field"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.shape, Shape("shape"));
    sizes.name = s_.name;
    return Rows(DataInputSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> DenseLayer() {
    DenseSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"out", "activation"}, 1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeRows(&sizes.tokens, &sizes.in));
    PIPELAB_ASSIGN_OR_RETURN(sizes.out, Size("out"));
    PIPELAB_ASSIGN_OR_RETURN(const int activation,
                             Choice("activation", {"none", "gelu", "relu"}, "none"));
    sizes.activation = static_cast<Activation>(activation);
    sizes.stddev = std::sqrt(2.0 / static_cast<double>(sizes.in));  // He et al. 2015
    Place(&sizes);
    return Rows(DenseSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> ReluLayer() {
    PIPELAB_RETURN_IF_ERROR(Allow({}, 1, 1));
    ReluSizes sizes{s_.name, s_.inputs[0].index, s_.inputs[0].value.shape};
    return AsFirst(ReluSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> NormLayer() {
    NormSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({}, 1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeRows(&sizes.tokens, &sizes.hidden));
    Place(&sizes);
    return AsFirst(NormSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> AddLayers() {
    PIPELAB_RETURN_IF_ERROR(Allow({}, 2, 64));
    AddSizes sizes;
    for (const NetworkLayerInput& input : s_.inputs) {
      if (input.value.shape != s_.inputs[0].value.shape) {
        return InputError(input,
                          absl::StrCat(FirstGives(), ", and a sum's inputs must have one shape"));
      }
      sizes.inputs.push_back(input.index);
    }
    sizes.name = s_.name;
    sizes.shape = s_.inputs[0].value.shape;
    return AsFirst(AddSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> ConcatLayers() {
    PIPELAB_RETURN_IF_ERROR(Allow({}, 2, 64));
    ConcatSizes sizes;
    for (const NetworkLayerInput& input : s_.inputs) {
      PIPELAB_RETURN_IF_ERROR(CheckRows(input));
      if (input.value.shape[0] != s_.inputs[0].value.shape[0]) {
        return InputError(
            input, absl::StrCat(FirstGives(),
                                ", and inputs side by side must have the same number of rows"));
      }
      sizes.inputs.push_back(input.index);
      sizes.widths.push_back(input.value.shape[1]);
    }
    sizes.name = s_.name;
    sizes.tokens = s_.inputs[0].value.shape[0];
    return AsFirst(ConcatSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> Loss() {
    ElementLossSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"loss"}, 1, 1));
    PIPELAB_ASSIGN_OR_RETURN(const int kind,
                             Choice("loss", {"squared_error", "binary_cross_entropy"}, nullptr));
    sizes.kind = static_cast<ElementLossKind>(kind);
    int64_t rows = 0;
    PIPELAB_RETURN_IF_ERROR(TakeRows(&rows, &sizes.width));
    if (rows != 1) return InputError(s_.inputs[0], "this loss takes one row of a sample");
    Place(&sizes);
    return Rows(ElementLossSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> ClassifierLayer() {
    ClassifierSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"classes"}, 1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeRows(&sizes.rows, &sizes.channels));
    PIPELAB_ASSIGN_OR_RETURN(sizes.classes, Size("classes"));
    Place(&sizes);
    return Rows(ClassifierSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> Embedding() {
    GptEmbeddingSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"field", "tokens", "hidden", "vocabulary", "positions"}, 0, 0));
    if (object_.Has("field")) {
      PIPELAB_ASSIGN_OR_RETURN(sizes.field, object_.String("field"));
    }
    PIPELAB_ASSIGN_OR_RETURN(sizes.tokens, Size("tokens"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.hidden, Size("hidden"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.vocabulary, Size("vocabulary"));
    PIPELAB_ASSIGN_OR_RETURN(const int positions,
                             Choice("positions", {"learned", "sinusoidal", "none"}, "learned"));
    sizes.positions = static_cast<Positions>(positions);
    sizes.name = s_.name;
    return Rows(GptEmbeddingSpec(sizes));
  }

  absl::StatusOr<NormKind> Norm() const {
    PIPELAB_ASSIGN_OR_RETURN(const int norm, Choice("norm", {"layer", "rms"}, "layer"));
    return static_cast<NormKind>(norm);
  }

  absl::StatusOr<NetworkLayer> Attention() {
    GptAttentionSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"heads", "kv_heads", "causal", "window", "dropout", "norm",
                                   "query_key_norms", "bias", "rotary"},
                                  1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeRows(&sizes.tokens, &sizes.hidden));
    PIPELAB_ASSIGN_OR_RETURN(sizes.heads, Size("heads"));
    if (sizes.hidden % sizes.heads != 0) {
      return object_.Error("heads", sizes.heads, ": must divide the ", sizes.hidden,
                           " numbers of a row");
    }
    PIPELAB_ASSIGN_OR_RETURN(sizes.kv_heads, Size("kv_heads", sizes.heads));
    if (sizes.heads % sizes.kv_heads != 0) {
      return object_.Error("kv_heads", sizes.kv_heads, ": must divide the ", sizes.heads, " heads");
    }
    if (object_.Has("causal")) {
      PIPELAB_ASSIGN_OR_RETURN(sizes.causal, object_.Bool("causal"));
    }
    if (object_.Has("window")) {
      PIPELAB_ASSIGN_OR_RETURN(sizes.window, Size("window"));
      if (!sizes.causal) {
        return object_.Error("window", sizes.window, ": causal attention has windows");
      }
    }
    PIPELAB_ASSIGN_OR_RETURN(sizes.dropout, Dropout());
    PIPELAB_ASSIGN_OR_RETURN(sizes.norm, Norm());
    PIPELAB_ASSIGN_OR_RETURN(sizes.query_key_norms, Flag("query_key_norms", false));
    PIPELAB_ASSIGN_OR_RETURN(const bool biases, Flag("bias", true));
    sizes.biases = biases ? Biases::kAll : Biases::kNone;
    if (object_.Has("rotary")) {  // the base
      PIPELAB_ASSIGN_OR_RETURN(const int64_t base, Size("rotary"));
      sizes.rotary_base = static_cast<double>(base);
      if (sizes.hidden / sizes.heads % 2 != 0) {
        return object_.Error("rotary", base, ": heads of ", sizes.hidden / sizes.heads,
                             " numbers; they must be even");
      }
    }
    Place(&sizes);
    return Rows(GptAttentionSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> Mlp() {
    GptMlpSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"inner", "dropout", "gate", "norm", "bias"}, 1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeRows(&sizes.tokens, &sizes.hidden));
    PIPELAB_ASSIGN_OR_RETURN(sizes.inner, Size("inner", 4 * sizes.hidden));
    PIPELAB_ASSIGN_OR_RETURN(sizes.dropout, Dropout());
    PIPELAB_ASSIGN_OR_RETURN(const int kind, Choice("gate", {"none", "swish", "gelu"}, "none"));
    sizes.kind = static_cast<FeedForwardKind>(kind);
    PIPELAB_ASSIGN_OR_RETURN(sizes.norm, Norm());
    PIPELAB_ASSIGN_OR_RETURN(sizes.biases, Flag("bias", true));
    if (!sizes.biases && sizes.kind == FeedForwardKind::kGelu) {
      return object_.Error("bias", "false: only with a gate");
    }
    Place(&sizes);
    return Rows(GptMlpSpec(sizes));
  }

  // A factor from 0 on, which may be left out.
  absl::StatusOr<double> Factor(absl::string_view key, double if_absent) const {
    if (!object_.Has(key)) return if_absent;
    PIPELAB_ASSIGN_OR_RETURN(const double factor, object_.Number(key));
    if (factor >= 0 && factor <= 1e6) return factor;
    return object_.Error(key, factor, ": must be from 0 to 1e6");
  }

  absl::StatusOr<NetworkLayer> Experts() {
    GptExpertsSizes sizes;
    ExpertChoice& e = sizes.choice;
    PIPELAB_RETURN_IF_ERROR(Allow({"experts", "chosen", "shared", "inner", "scores", "normalized",
                                   "scale", "capacity", "balance", "dropout", "gate", "norm"},
                                  1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeRows(&sizes.tokens, &sizes.hidden));
    PIPELAB_ASSIGN_OR_RETURN(e.experts, Size("experts"));
    PIPELAB_ASSIGN_OR_RETURN(e.chosen, Size("chosen"));
    if (e.chosen > e.experts) {
      return object_.Error("chosen", e.chosen, ": there are ", e.experts, " experts");
    }
    if (object_.Has("shared")) {
      PIPELAB_ASSIGN_OR_RETURN(e.shared, Size("shared"));
    }
    PIPELAB_ASSIGN_OR_RETURN(sizes.inner, Size("inner", 4 * sizes.hidden));
    // The bound of a layer's tables elsewhere; parameters are three such.
    if ((e.experts + e.shared) * sizes.inner > int64_t{1} << 30) {
      return object_.Error("experts", e.experts + e.shared, ": of ", sizes.inner,
                           " columns each; must have at most 2^30 together");
    }
    PIPELAB_ASSIGN_OR_RETURN(const int scores, Choice("scores", {"softmax", "sigmoid"}, "softmax"));
    e.sigmoid = scores == 1;
    PIPELAB_ASSIGN_OR_RETURN(e.normalized, Flag("normalized", true));
    PIPELAB_ASSIGN_OR_RETURN(e.scale, Factor("scale", 1));
    PIPELAB_ASSIGN_OR_RETURN(e.capacity_factor, Factor("capacity", 0));
    PIPELAB_ASSIGN_OR_RETURN(e.balance, Factor("balance", 0));
    PIPELAB_ASSIGN_OR_RETURN(sizes.dropout, Dropout());
    PIPELAB_ASSIGN_OR_RETURN(const int gate, Choice("gate", {"swish", "gelu"}, "swish"));
    sizes.kind = gate == 0 ? FeedForwardKind::kSwiGlu : FeedForwardKind::kGeGlu;
    PIPELAB_ASSIGN_OR_RETURN(const int norm, Choice("norm", {"layer", "rms"}, "rms"));
    sizes.norm = static_cast<NormKind>(norm);
    Place(&sizes);
    return Rows(GptExpertsSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> Head() {
    GptHeadSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"vocabulary", "norm"}, 1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeRows(&sizes.tokens, &sizes.hidden));
    PIPELAB_ASSIGN_OR_RETURN(sizes.vocabulary, Size("vocabulary"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.norm, Norm());
    Place(&sizes);
    return Rows(GptHeadSpec(sizes));
  }

  // Without inputs it reads the data's image, whose shape the layer then gives.
  absl::StatusOr<NetworkLayer> Convolution() {
    ImageConvSizes sizes;
    PIPELAB_RETURN_IF_ERROR(
        Allow({"shape", "out", "kernel", "stride", "relu", "norm", "bias"}, 0, 1));
    if (s_.inputs.empty()) {
      PIPELAB_RETURN_IF_ERROR(TakeDataImage(&sizes.height, &sizes.width, &sizes.in));
    } else {
      PIPELAB_RETURN_IF_ERROR(TakeImage(&sizes.height, &sizes.width, &sizes.in));
      sizes.input = s_.inputs[0].index;
    }
    PIPELAB_ASSIGN_OR_RETURN(sizes.out, Size("out"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.kernel_height, Size("kernel", 3));
    if (sizes.kernel_height % 2 == 0) return object_.Error("kernel", "must be odd");
    sizes.kernel_width = sizes.kernel_height;
    PIPELAB_ASSIGN_OR_RETURN(sizes.stride_height, Size("stride", 1));
    sizes.stride_width = sizes.stride_height;
    PIPELAB_ASSIGN_OR_RETURN(sizes.relu, Flag("relu", !s_.inputs.empty()));
    PIPELAB_ASSIGN_OR_RETURN(sizes.norm, Flag("norm", false));
    PIPELAB_ASSIGN_OR_RETURN(sizes.bias, Flag("bias", !sizes.norm));
    sizes.name = s_.name;
    return NetworkLayer{ImageConvSpec(sizes), sizes.out_height(), sizes.out_width()};
  }

  absl::StatusOr<NetworkLayer> Pooling() {
    PoolSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"pool", "kernel", "stride"}, 1, 1));
    PIPELAB_RETURN_IF_ERROR(TakeImage(&sizes.height, &sizes.width, &sizes.channels));
    PIPELAB_ASSIGN_OR_RETURN(const int kind, Choice("pool", {"max", "average", "global"}, nullptr));
    if (kind == 2) {
      return Rows(PoolSpec(
          GlobalAverage(s_.name, s_.inputs[0].index, sizes.height, sizes.width, sizes.channels)));
    }
    sizes.kind = static_cast<PoolKind>(kind);
    PIPELAB_ASSIGN_OR_RETURN(sizes.kernel, Size("kernel", 2));
    PIPELAB_ASSIGN_OR_RETURN(sizes.stride, Size("stride", sizes.kernel));
    if (sizes.kernel > std::min(sizes.height, sizes.width)) {
      return object_.Error("kernel", sizes.kernel, ": the image is ", sizes.height, " x ",
                           sizes.width);
    }
    Place(&sizes);
    return NetworkLayer{PoolSpec(sizes), sizes.out_height(), sizes.out_width()};
  }

  absl::StatusOr<NetworkLayer> Bag() {
    EmbeddingBagSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"field", "ids", "rows", "out", "mean"}, 0, 0));
    PIPELAB_ASSIGN_OR_RETURN(sizes.field, object_.String("field"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.ids, Size("ids"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.rows, Size("rows"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.width, Size("out"));
    PIPELAB_ASSIGN_OR_RETURN(sizes.mean, Flag("mean", false));
    sizes.name = s_.name;
    return Rows(EmbeddingBagSpec(sizes));
  }

  absl::StatusOr<NetworkLayer> Patches() {
    PatchEmbeddingSizes sizes;
    PIPELAB_RETURN_IF_ERROR(Allow({"shape", "patch", "hidden"}, 0, 0));
    PIPELAB_RETURN_IF_ERROR(TakeDataImage(&sizes.height, &sizes.width, &sizes.channels));
    PIPELAB_ASSIGN_OR_RETURN(sizes.patch, Size("patch"));
    if (sizes.height % sizes.patch + sizes.width % sizes.patch != 0) {
      return object_.Error("patch", sizes.patch, ": must divide ", sizes.height, " and ",
                           sizes.width);
    }
    PIPELAB_ASSIGN_OR_RETURN(sizes.hidden, Size("hidden"));
    sizes.name = s_.name;
    return Rows(PatchEmbeddingSpec(sizes));
  }
};

using ReadKind = absl::StatusOr<NetworkLayer> (LayerReader::*)();
const std::map<std::string, ReadKind>& Kinds() {
  static const auto& kinds = *new std::map<std::string, ReadKind>{
      {kAdd, &LayerReader::AddLayers},          {kClassifier, &LayerReader::ClassifierLayer},
      {kConcat, &LayerReader::ConcatLayers},    {kDataInput, &LayerReader::DataInput},
      {kDense, &LayerReader::DenseLayer},       {kElementLoss, &LayerReader::Loss},
      {kEmbeddingBag, &LayerReader::Bag},       {kGptAttention, &LayerReader::Attention},
      {kGptEmbedding, &LayerReader::Embedding}, {kGptExperts, &LayerReader::Experts},
      {kGptHead, &LayerReader::Head},           {kGptMlp, &LayerReader::Mlp},
      {kImageConv, &LayerReader::Convolution},  {kNorm, &LayerReader::NormLayer},
      {kPatchEmbedding, &LayerReader::Patches}, {kPool, &LayerReader::Pooling},
      {kRelu, &LayerReader::ReluLayer},
  };
  return kinds;
}

}  // namespace

std::vector<std::string> NetworkKinds() {
  std::vector<std::string> names;
  for (const auto& [name, read] : Kinds()) names.push_back(name);
  return names;
}

bool ReadsDataByItself(const JsonObject& object, const std::string& kind) {
  return kind == kDataInput || kind == kGptEmbedding || kind == kEmbeddingBag ||
         kind == kPatchEmbedding || (kind == kImageConv && object.Has("shape"));
}

absl::StatusOr<NetworkLayer> ReadNetworkLayer(const NetworkLayerSource& source) {
  const auto it = Kinds().find(source.kind);
  if (it == Kinds().end()) {
    return source.object.Error("kind", "\"", source.kind, "\" is unknown; there are ",
                               absl::StrJoin(NetworkKinds(), ", "));
  }
  LayerReader reader(source);
  return (reader.*it->second)();
}

}  // namespace pipelab
