#include "models/zoo/local_heads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/image_conv_spec.h"
#include "models/specs/pool_spec.h"
#include "models/specs/relu_spec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kHeadWidth = 128;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Appends the heads of blocks to a graph that grows.
class HeadBuilder {
 public:
  HeadBuilder(const LayerSpec& loss, LocalHead kind) : loss_(loss), kind_(kind) {}

  // A head named `name` on the output of layer `input`, and its loss's number.
  absl::StatusOr<int> Add(const std::string& name, int input, ModelGraph* graph) const {
    const std::vector<int64_t> shape = graph->layers[input].output_shape;
    if (loss_.kind == kGptHead) return AddGptHead(name, input, shape, graph);
    if (loss_.kind != kClassifier || loss_.data[0].shape[0] != 1) {
      return Invalid("the loss \"", loss_.name, "\" (", loss_.kind,
                     ") has no local heads; a classifier of whole samples or a gpt_head has");
    }
    int at = input;
    std::vector<int64_t> rows = shape;
    if (kind_ == LocalHead::kConvolution) {
      PIPELAB_ASSIGN_OR_RETURN(at, AddConvolution(name, input, shape, graph));
      rows = graph->layers[at].output_shape;
    }
    at = Push(PoolSpec(GlobalAverage(name + "/mean", at, rows[0], 1, rows[1])), graph);
    int64_t width = rows[1];
    if (kind_ == LocalHead::kConvolution) {
      DenseSizes dense{name + "/dense", at, 1, width, kHeadWidth, Activation::kRelu};
      dense.stddev = std::sqrt(2.0 / static_cast<double>(width));
      at = Push(DenseSpec(dense), graph);
      width = kHeadWidth;
    }
    ClassifierSizes classifier{name + "/classifier", at, 1, width};
    classifier.classes = loss_.parameters[ClassifierParameter::kW].shape[1];
    return Push(ClassifierSpec(classifier), graph);
  }

 private:
  static int Push(LayerSpec layer, ModelGraph* graph) {
    graph->layers.push_back(std::move(layer));
    return static_cast<int>(graph->layers.size()) - 1;
  }

  static absl::StatusOr<int> AddConvolution(const std::string& name, int input,
                                            const std::vector<int64_t>& shape, ModelGraph* graph) {
    const int64_t side = std::llround(std::sqrt(static_cast<double>(shape[0])));
    if (side * side != shape[0]) {
      return Invalid("a local head of a convolution needs square images; layer \"",
                     graph->layers[input].name, "\" makes ", shape[0], " rows");
    }
    ImageConvSizes conv;
    conv.name = name + "/conv";
    conv.input = input;
    conv.height = conv.width = side;
    conv.in = shape[1];
    // As in the three parts of a CIFAR ResNet, 16 and 32 channels get half of the image.
    conv.out = shape[1] <= 16 ? 32 : 64;
    conv.stride_height = conv.stride_width = shape[1] <= 32 && side > 1 ? 2 : 1;
    conv.kernel_height = conv.kernel_width = 3;
    conv.relu = conv.norm = true;
    const int made = Push(ImageConvSpec(conv), graph);
    return Push(ReluSpec({name + "/relu", made, graph->layers[made].output_shape}), graph);
  }

  absl::StatusOr<int> AddGptHead(const std::string& name, int input,
                                 const std::vector<int64_t>& shape, ModelGraph* graph) const {
    if (kind_ != LocalHead::kLinear) {
      return Invalid("--local_heads=convolution: the model \"", graph->name,
                     "\" is of tokens, not of images; use linear");
    }
    GptHeadSizes head;
    head.name = name;
    head.input = input;
    head.tokens = shape[0];
    head.hidden = shape[1];
    head.vocabulary = loss_.data[0].limit;
    head.padded_targets = loss_.data[0].padded;
    return Push(GptHeadSpec(head), graph);
  }

  const LayerSpec& loss_;
  const LocalHead kind_;
};

absl::Status CheckCuts(const ModelGraph& graph, absl::Span<const int> cuts) {
  const int layers = static_cast<int>(graph.layers.size());
  const std::vector<int> first = FirstLayersOfBlocks(graph);
  int before = 0;
  for (int cut : cuts) {
    if (cut <= before || cut >= layers) {
      return Invalid("a cut before layer ", cut, ": cuts ascend, from 1 to ", layers - 1,
                     ", the model's last layer");
    }
    if (first[cut - 1] == cut) {
      return Invalid("a cut before layer \"", graph.layers[cut].name,
                     "\": no layer behind it takes \"", graph.layers[cut - 1].name,
                     "\", on which the block's head would stand");
    }
    before = cut;
  }
  int losses = 0;
  for (const LayerSpec& layer : graph.layers) losses += layer.output_shape.empty() ? 1 : 0;
  if (losses == 1) return absl::OkStatus();
  return Invalid("the model \"", graph.name, "\" has ", losses,
                 " losses already; local heads go on a model with one");
}

}  // namespace

const char* LocalHeadName(LocalHead kind) {
  return kind == LocalHead::kLinear ? "linear" : "convolution";
}

absl::StatusOr<LocalHead> FindLocalHead(absl::string_view name) {
  for (LocalHead kind : {LocalHead::kLinear, LocalHead::kConvolution}) {
    if (name == LocalHeadName(kind)) return kind;
  }
  return Invalid("must be one of linear, convolution");
}

absl::StatusOr<ModelGraph> LocalHeadGraph(const ModelGraph& graph, int layer, LocalHead kind) {
  ModelGraph head;
  head.name = graph.name;
  head.layers.push_back(graph.layers[layer]);
  PIPELAB_RETURN_IF_ERROR(
      HeadBuilder(graph.layers[LossLayer(graph)], kind).Add("exit", 0, &head).status());
  return head;
}

std::vector<int> FirstLayersOfBlocks(const ModelGraph& graph) {
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  std::vector<int> first(graph.layers.size());
  for (int end = 0; end < static_cast<int>(first.size()); ++end) {
    int begin = consumers[end].empty() ? end + 1 : end;
    while (begin > 0 && begin <= end && !consumers[begin - 1].empty() &&
           consumers[begin - 1].front() <= end) {
      --begin;
    }
    first[end] = begin;
  }
  return first;
}

absl::StatusOr<LocalModel> WithLocalHeads(const ModelGraph& graph, absl::Span<const int> cuts,
                                          LocalHead kind) {
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  PIPELAB_RETURN_IF_ERROR(CheckCuts(graph, cuts));
  const HeadBuilder heads(graph.layers[LossLayer(graph)], kind);
  LocalModel local;
  local.graph.name = graph.name;
  std::vector<int> moved_to;  // [layer of the model]
  std::vector<int> block_of;  // the same
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    const int block = static_cast<int>(local.losses.size());
    LayerSpec layer = graph.layers[i];
    for (int& input : layer.inputs) {
      const bool crosses = block_of[input] != block;
      input = moved_to[input];
      if (crosses) layer.detached.push_back(input);
    }
    moved_to.push_back(static_cast<int>(local.graph.layers.size()));
    local.layer_of.push_back(i);
    block_of.push_back(block);
    local.graph.layers.push_back(std::move(layer));
    if (std::count(cuts.begin(), cuts.end(), i + 1) > 0) {
      PIPELAB_ASSIGN_OR_RETURN(const int loss,
                               heads.Add(absl::StrCat("exit", block), moved_to[i], &local.graph));
      local.losses.push_back(loss);
    }
    local.stage_of_layer.resize(local.graph.layers.size(), block);
    local.layer_of.resize(local.graph.layers.size(), -1);
  }
  local.losses.push_back(LossLayer(local.graph));
  // Heads, too, have the activations of the model.
  PIPELAB_ASSIGN_OR_RETURN(local.graph,
                           WithNumberWidth(std::move(local.graph), graph.width, "local heads"));
  const absl::Status valid = Validate(local.graph);
  if (!valid.ok()) return Invalid(valid.message(), "; cut the model elsewhere");
  return local;
}

}  // namespace pipelab
