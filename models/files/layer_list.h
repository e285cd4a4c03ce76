// A model as a list of layers with costs and nothing that runs: what a user's file says, and what
// the profiles of other planners become.
//
//   LayerList list;
//   list.name = "mine";
//   list.layers.push_back({"embed", {}, PassCosts<Nanoseconds>{...}});
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, MakeGraph(list, "--model=mine.json"));
//
// Costs are of a micro-batch: a fixed part and a part a sample. Layers may come in any order.
// layer_list_json.h reads and writes files, model_file.h takes files of every format.
#ifndef PIPELAB_MODELS_FILES_LAYER_LIST_H_
#define PIPELAB_MODELS_FILES_LAYER_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/variant.h"
#include "models/graph/layer_spec.h"
#include "tools/base/units.h"

namespace pipelab {

inline constexpr int64_t kMostParameters = int64_t{1} << 50;  // of a list

// Q is Flops, Nanoseconds or Bytes.
template <typename Q>
struct PassCost {
  Q fixed, per_sample;

  Q Of(int64_t samples) const {
    return fixed + per_sample * static_cast<decltype(per_sample.value())>(samples);
  }
};

template <typename Q>
struct PassCosts {
  PassCost<Q> forward, backward_input, backward_weight;
};

// From the time of a whole backward: half of it is the weight part; without parameters there is
// none.
template <typename Q>
PassCosts<Q> SplitBackward(const PassCost<Q>& forward, const PassCost<Q>& backward,
                           bool has_parameters) {
  PassCosts<Q> costs{forward, backward, {}};
  if (!has_parameters) return costs;
  costs.backward_weight = {Q(backward.fixed.value() / 2), Q(backward.per_sample.value() / 2)};
  costs.backward_input = {backward.fixed - costs.backward_weight.fixed,
                          backward.per_sample - costs.backward_weight.per_sample};
  return costs;
}

// How a tensor-parallel group of T devices computes a layer (models/graph/tensor_parallel.h). Each
// does 1/T of its work, and has 1/T of `kept` and of the parameters, but for what it says is whole;
// fixed costs, workspace, inputs and output are whole. With sequence parallelism, which needs
// `tokens`, a device has 1/T of what is whole, too, but for parameters, fixed costs and workspace,
// and what the group gathers on top of its workspace.
struct ListedSplit {
  std::vector<TensorDimension> divides;  // name and size
  double whole_work = 0;                 // share of flops and time that every device does
  Bytes whole_kept;                      // of a sample
  int64_t whole_parameters = 0;
  // What the group sums after the forward (outputs) and after the backward (gradients of inputs),
  // of a sample.
  Bytes forward_sum, backward_sum;
  int64_t tokens = 0;  // of a sample; 0: no sequence parallelism
};

struct ListedLayer {
  std::string name;
  std::vector<std::string> inputs;  // names of layers
  // What it computes, for a machine to say how long that takes; or how long it took on some
  // machine, and then takes on any.
  absl::variant<PassCosts<Flops>, PassCosts<Nanoseconds>> costs;
  OperationKind operation = OperationKind::kMatmul;  // of flops: one operation a pass
  // What it hands on of a sample. None: nothing takes it.
  absl::optional<Bytes> output;
  // What the forward of a sample leaves for the backward, besides the inputs.
  Bytes kept;
  bool keeps_inputs = true;   // the backward reads them, so they stay until it
  PassCost<Bytes> workspace;  // while a pass runs
  int64_t parameters = 0;
  absl::optional<ListedSplit> tensor_parallel;  // none: no group can compute it

  // The split of a layer that every device computes whole.
  ListedSplit Whole() const { return {{}, 1, kept, parameters, {}, {}, 0}; }
};

struct LayerList {
  std::string name;
  std::string source;  // where the figures are from; may be empty
  // Bytes of the numbers whose bytes the layers give (parameters are counted): 1, 2 or 4. On a
  // machine that computes with others, activations have other bytes.
  int bytes_per_number = 4;
  std::vector<ListedLayer> layers;
  // The layers whose outputs the loss takes. Empty: the one layer that no other takes.
  std::vector<std::string> outputs;
};

// Layers in topological order, otherwise as listed. A loss that takes the outputs and costs nothing
// comes last, unless the only output is a layer without `output`: that is the loss then.
//
// Bytes become whole numbers, rounded up, of 4 bytes as in every graph (LayerCosts). The memory of
// a layer's passes follows from them: a backward makes the gradients of its inputs before it lets
// go of anything, and the weight part needs what was kept and the output's gradient. The operation
// of a forward reads inputs and parameters and writes the output and what is kept; those of the
// backward read this and write the gradients.
//
// InvalidArgument, "WHAT: REASON": names that are empty or there twice, inputs that are no layers,
// a cycle (its layers are named), several layers that nothing takes, an output without bytes,
// numbers that are negative or too large, more that is whole than there is.
absl::StatusOr<ModelGraph> MakeGraph(const LayerList& list, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_LAYER_LIST_H_
