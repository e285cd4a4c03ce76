// A layer as the paper side sees it: shapes, parameters, floating-point operations and bytes,
// nothing that runs. The layer that runs stands beside its specification (models/specs/x_spec.h,
// x.h), and a test holds the two to the byte.
//
//   ModelGraph g = BuildGpt({.layers = 4, .hidden = 128, ...});     // models/zoo/gpt.h
//   g.layers[1].costs(/*samples=*/2).forward                        // flops
#ifndef PIPELAB_MODELS_GRAPH_LAYER_SPEC_H_
#define PIPELAB_MODELS_GRAPH_LAYER_SPEC_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/context_part.h"     // IWYU pragma: export
#include "models/graph/cost_math.h"        // IWYU pragma: export
#include "models/graph/data_field.h"       // IWYU pragma: export
#include "models/graph/layer_costs.h"      // IWYU pragma: export
#include "models/graph/operation.h"        // IWYU pragma: export
#include "models/graph/tensor_parallel.h"  // IWYU pragma: export
#include "models/graph/token_slice.h"      // IWYU pragma: export
#include "tools/base/units.h"

namespace pipelab {

inline constexpr char kProfiled[] = "profiled";  // LayerSpec::kind of layers from files

// How a parameter starts.
enum class InitKind : uint8_t { kZeros, kOnes, kNormal };

// Which elements of a parameter one device has: of a tensor-parallel group, run `part` of each
// `parts` runs of the whole. A device's runs come in periods: a leading one of lead * run elements,
// then `others` of `run` elements. With the experts divided, one of so many equal slices alone,
// which begins at `offset`.
struct ParameterCut {
  int64_t parts = 1, part = 0, run = 1, lead = 1, others = 0;
  int64_t slices = 1, offset = 0;

  bool whole() const { return parts == 1 && slices == 1; }
  int64_t shares() const { return parts * slices; }  // of the whole, each as large
  int64_t period() const { return (lead + others) * run; }
  // The place in the whole of the device's element i.
  int64_t WholeIndex(int64_t i) const {
    if (parts == 1) return offset + i;
    const int64_t first = lead * run, at = i % period();
    const int64_t begin = offset + i / period() * period() * parts;
    if (at < first) return begin + part * first + at;
    const int64_t behind = at - first;
    return begin + first * parts + (behind / run * parts + part) * run + behind % run;
  }
  friend bool operator==(const ParameterCut& a, const ParameterCut& b) {
    return a.parts == b.parts && a.part == b.part && a.run == b.run && a.lead == b.lead &&
           a.others == b.others && a.slices == b.slices && a.offset == b.offset;
  }
};

// The rows (tokens of each sample) that a layer's inputs and output have on one device of a group
// that splits them: of `parts` equal parts, number `part`.
struct RowPart {
  int64_t parts = 1, part = 0;
};

struct ParameterSpec {
  std::string name;  // unique in the model: "block3/mlp/w1"; the random stream "init/<name>"
  std::vector<int64_t> shape;
  InitKind init = InitKind::kZeros;
  double stddev = 0;  // of kNormal
  // Parameters of one tie have one value. Empty: not tied.
  std::string tie;
  // The dimension that a tensor-parallel group divides into equal parts, device by device; -1: each
  // device has all. With `split_blocks` the dimension is so many blocks side by side, each of which
  // is divided: 3 of q, k and v. The first is split_lead times as long as each other one.
  int split_dimension = -1;
  int split_blocks = 1;
  int64_t split_lead = 1;
  // In the layers of one device (tensor_member.h), whose shape is that of its part.
  ParameterCut cut = {};
  // How many experts, the first dimension, are divided among devices (TensorParallel::experts); 0:
  // all devices have the parameter.
  int64_t experts = 0;
  // Which of the device's buffers takes the gradient of one product (fused_sums.h); -1: none
  // does.
  int gradient_buffer = -1;

  // In blocks behind the first.
  int64_t split_units() const { return split_lead + split_blocks - 1; }
  int64_t size() const;                                 // elements
  int64_t size_on(const TensorParallel& split) const {  // elements on one device of the group
    if (experts > 0) return experts_on(split);
    return split_dimension < 0 ? size() : size() / split.degree;
  }
  // Elements of the device's experts.
  int64_t experts_on(const TensorParallel& split) const {
    if (experts == 0) return 0;
    return size() / split.experts / (split_dimension < 0 ? 1 : split.expert_degree());
  }
  // Elements of one of the device's products with it: of one expert, where it has several.
  int64_t product_on(const TensorParallel& split) const {
    return experts == 0 ? size_on(split) : experts_on(split) / (experts / split.experts);
  }
};

// How long a layer's inputs must stay.
enum class InputUse : uint8_t {
  kForward,         // no backward part reads them
  kInputGradient,   // the input-gradient part does, and not the weight part
  kWeightGradient,  // the weight part does
};

struct LayerSpec {
  std::string name;  // "block3/mlp"
  std::string kind;  // key of models/layers/factory.h: "gpt_mlp"
  // Indices of earlier layers, each once; empty: it only reads the data.
  std::vector<int> inputs;
  // The inputs that get no gradient from it: what is before them learns nothing by this use.
  std::vector<int> detached;
  std::vector<std::vector<int64_t>> input_shapes;  // what each of them must have as output_shape
  std::vector<int64_t> output_shape;  // of one sample: {tokens, hidden}; empty for a loss
  InputUse input_use = InputUse::kWeightGradient;
  std::vector<DataField> data;  // what it reads of the data set
  std::vector<ParameterSpec> parameters;
  // Numbers that a layer carries from step to step and no gradient changes: running statistics of
  // a batch normalisation. Not counted as parameters; 4 bytes each of state.
  std::vector<ParameterSpec> statistics;
  // What the running layer needs: "heads", "dropout", ...
  std::map<std::string, double> attributes;
  std::string priced_alone;  // what of it no running layer does; empty: there is one (factory.h)
  std::function<LayerCosts(int64_t samples)> costs;
  // The same for a slice of each sample's tokens, the first dimension of output_shape. Null: the
  // layer takes whole samples only.
  std::function<LayerCosts(int64_t samples, TokenSlice slice)> slice_costs;
  // The operations behind these flops; of a slice only where slice_costs is there.
  std::function<LayerOperations(int64_t samples, TokenSlice slice)> operations;
  // Sets costs, slice_costs and the split's costs and collectives, for activations of this width.
  // Null: the running layer has them in float32 alone. See SetCosts, WithNumberWidth.
  std::function<void(NumberWidth width, LayerSpec* layer)> set_costs;
  // How a tensor-parallel group computes it (tensor_parallel.h). Empty and not `whole`: no group
  // can.
  LayerSplit split;
  // In the layers of one device (tensor_member.h): which rows its shapes are of.
  RowPart rows;
  ContextPart context;  // and of which tokens these are
};

// Layers as a DAG. An output may have several consumers. Layers without an output are losses, and
// every other layer gets a gradient from one. A model has one, unless its blocks learn locally
// (zoo/local_heads.h) or others are priced alone; then the last is what the model is judged by.
struct ModelGraph {
  std::string name;
  std::vector<LayerSpec> layers;  // in topological order
  // The width of activations and of parameters in layers. Narrow ones have float32 masters, which
  // the optimizer steps.
  NumberWidth width;
  // For the user: which model was taken for a name, what of a file is not priced.
  std::vector<std::string> notes = {};

  int64_t num_parameters() const;  // tied parameters counted once
};

// OK, or InvalidArgument naming a layer that takes whole samples only.
absl::Status CheckTakesSlices(const ModelGraph& graph);
// costs or slice_costs, which a layer that is asked for a slice must have: CHECKs, naming it. With
// `split` of one device's part.
LayerCosts CostsOf(const LayerSpec& layer, int64_t samples, TokenSlice slice,
                   TensorParallel split = TensorParallel());

// One device's part of the layer: with a degree of 1, and where it is not split, the whole layer.
TensorShare ShareOf(const LayerSpec& layer, int64_t samples, TokenSlice slice,
                    TensorParallel split);
// Costs, slice_costs and operations of a layer that says how it is split: those of a degree of 1.
void SetWholeCosts(LayerSpec* layer);
// Keeps `set` as the layer's set_costs, and calls it with the width of float32.
void SetCosts(LayerSpec* layer, std::function<void(NumberWidth width, LayerSpec* layer)> set);
// The model as it is trained with activations of this width: other bytes, and nothing else.
// InvalidArgument naming the option and a layer that has activations in float32 alone.
absl::StatusOr<ModelGraph> WithNumberWidth(ModelGraph graph, NumberWidth width,
                                           absl::string_view option);
// InvalidArgument naming the option and a layer that does not say how it splits, what the degree
// does not divide ("--tensor_parallel=3: must divide the 32 heads of layer "block0/attention"; the
// nearest ..."), or, with sequence parallelism, a layer that is not split by tokens.
absl::Status CheckTensorParallel(const ModelGraph& graph, TensorParallel split,
                                 absl::string_view degree_option = "--tensor_parallel",
                                 absl::string_view sequence_option = "--sequence_parallel");

// What every builder of graphs calls last: names are there and unique, inputs come before their
// users (so there is no cycle) and have the shapes that these take, each output leads to a loss by
// layers that are not detached, each layer has costs and operations, parameters have sizes, and
// parameters of one tie have one shape and one start. The error names the layer or the parameter.
absl::Status Validate(const ModelGraph& graph);

// [layer] -> the layers that take its output, ascending.
std::vector<std::vector<int>> Consumers(const ModelGraph& graph);
// Those that give it a gradient.
std::vector<std::vector<int>> GradientSources(const ModelGraph& graph);
// The last layer without an output. The graph is valid: CHECKed.
int LossLayer(const ModelGraph& graph);
// Whether the layer's input gets no gradient from it.
inline bool IsDetached(const LayerSpec& layer, int input) {
  return std::find(layer.detached.begin(), layer.detached.end(), input) != layer.detached.end();
}

// The rows of a sample: the first dimension of its output, or of a loss's input. Of all devices
// where the layer is one device's (tensor_member.h).
int64_t TokensOf(const LayerSpec& layer);

// An attribute that a layer of this kind must have: CHECKs, naming layer and attribute.
double Attribute(const LayerSpec& layer, absl::string_view name);
// One that is a whole number.
inline int64_t WholeAttribute(const LayerSpec& layer, absl::string_view name) {
  return static_cast<int64_t>(Attribute(layer, name));
}

// What a pass of the layer holds of the data while it runs, on every device of a group, on top of
// the layer's own costs: 4 bytes a number. `context` devices each have their tokens of it.
Bytes DataBytes(const LayerSpec& layer, int64_t samples, TokenSlice slice = TokenSlice(),
                int64_t context = 1);

// The name under which a parameter starts ("init/<this>"): the tie's where it is tied, so that all
// have one value.
const std::string& ValueName(const ParameterSpec& parameter);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_LAYER_SPEC_H_
