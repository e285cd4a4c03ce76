#include "models/files/layer_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/files/graph_order.h"
#include "models/files/profiled_layer.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Above these nothing is real, and sums over a pipeline's micro-batches could pass 63 bits.
constexpr Nanoseconds kMostTime = Milliseconds(1000000);
constexpr Bytes kMostBytes(int64_t{1} << 46);
constexpr Flops kMostFlops(1e24);

template <typename Q>
bool Within(const PassCosts<Q>& costs, Q most) {
  for (const PassCost<Q>& pass : {costs.forward, costs.backward_input, costs.backward_weight}) {
    for (Q q : {pass.fixed, pass.per_sample}) {
      if (!(q >= Q() && q <= most)) return false;  // a NaN is not within either
    }
  }
  return true;
}

bool CostsWithin(const ListedLayer& layer) {
  if (const auto* flops = absl::get_if<PassCosts<Flops>>(&layer.costs)) {
    return Within(*flops, kMostFlops);
  }
  return Within(absl::get<PassCosts<Nanoseconds>>(layer.costs), kMostTime);
}

// Empty, or what is wrong.
absl::string_view WrongIn(const ListedLayer& layer) {
  if (!layer.tensor_parallel.has_value()) return "";
  const ListedSplit& split = *layer.tensor_parallel;
  if (!(split.whole_work >= 0 && split.whole_work <= 1)) {
    return "the share of work that is whole must be from 0 to 1";
  }
  if (split.whole_kept < Bytes(0) || split.whole_kept > layer.kept) {
    return "what is whole of \"kept\" must be from 0 to all of it";
  }
  if (split.whole_parameters < 0 || split.whole_parameters > layer.parameters) {
    return "what is whole of \"parameters\" must be from 0 to all of them";
  }
  for (Bytes sum : {split.forward_sum, split.backward_sum}) {
    if (sum < Bytes(0) || sum > kMostBytes) return "sums must be from 0 to 64 TiB per sample";
  }
  if (split.tokens < 0) return "tokens must be at least 1";
  for (const TensorDimension& d : split.divides) {
    if (d.size < 1) return "sizes to divide must be at least 1";
  }
  return "";
}

class GraphMaker {
 public:
  GraphMaker(const LayerList& list, absl::string_view what) : list_(list), what_(what) {}

  absl::StatusOr<ModelGraph> Make() {
    PIPELAB_RETURN_IF_ERROR(CheckSizes());
    PIPELAB_RETURN_IF_ERROR(NumberLayers());
    PIPELAB_RETURN_IF_ERROR(FindInputs());
    const GraphOrder order = OrderNodes(inputs_);
    if (!order.cycle.empty()) {
      return Error("cyclic layers: ", CycleText(order.cycle, [&](int i) { return Quoted(i); }));
    }
    PIPELAB_RETURN_IF_ERROR(FindOutputs());
    PIPELAB_RETURN_IF_ERROR(CheckOutputBytes());
    graph_.name = list_.name;
    graph_.layers.reserve(list_.layers.size() + 1);
    index_.resize(list_.layers.size());
    for (int i : order.nodes) AddLayer(i);
    if (!LastIsLoss()) AddLoss();
    const absl::Status valid = Validate(graph_);
    if (!valid.ok()) return Error(valid.message());
    return std::move(graph_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", parts...));
  }
  std::string Quoted(int i) const { return absl::StrCat("\"", list_.layers[i].name, "\""); }

  absl::Status CheckSizes() const {
    if (list_.layers.empty()) return Error("layers: there are none");
    const int b = list_.bytes_per_number;
    if (b != 1 && b != 2 && b != 4) return Error("bytes_per_number: ", b, ": must be 1, 2 or 4");
    Bytes bytes;
    int64_t parameters = 0;
    for (const ListedLayer& layer : list_.layers) {
      const auto wrong = [&](absl::string_view field, absl::string_view most) {
        return Error("layer \"", layer.name, "\": ", field, " must be from 0 to ", most);
      };
      if (!CostsWithin(layer)) return wrong("flops and time", "1 Yflop or 1000 s");
      for (Bytes b : {layer.output.value_or(Bytes(0)), layer.kept, layer.workspace.fixed,
                      layer.workspace.per_sample}) {
        if (b < Bytes(0) || b > kMostBytes) return wrong("bytes", "64 TiB");
        bytes += b;
        if (bytes > kMostBytes) return Error("layers: together more than 64 TiB per sample");
      }
      if (layer.parameters < 0 || layer.parameters > kMostParameters) {
        return wrong("parameters", absl::StrCat(kMostParameters));
      }
      if (const absl::string_view problem = WrongIn(layer); !problem.empty()) {
        return Error("layer \"", layer.name, "\": tensor_parallel: ", problem);
      }
      parameters += layer.parameters;
      if (parameters > kMostParameters) {
        return Error("layers: together more than ", kMostParameters, " parameters");
      }
    }
    return absl::OkStatus();
  }

  absl::Status NumberLayers() {
    for (int i = 0; i < num_layers(); ++i) {
      const std::string& name = list_.layers[i].name;
      if (name.empty()) return Error("layers[", i, "]: the name is empty");
      if (!number_.emplace(name, i).second) {
        return Error("layers[", i, "]: the name ", Quoted(i), " is there twice");
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindInputs() {
    consumers_.resize(list_.layers.size());
    for (int i = 0; i < num_layers(); ++i) {
      std::vector<int>& inputs = inputs_.emplace_back();
      for (const std::string& name : list_.layers[i].inputs) {
        const auto it = number_.find(name);
        if (it == number_.end()) {
          return Error("layer ", Quoted(i), ": inputs: unknown input \"", name,
                       "\": no layer has this name");
        }
        std::vector<int>& consumers = consumers_[it->second];
        if (!consumers.empty() && consumers.back() == i) {
          return Error("layer ", Quoted(i), ": inputs: \"", name, "\" is there twice");
        }
        inputs.push_back(it->second);
        consumers.push_back(i);
      }
    }
    return absl::OkStatus();
  }

  // Nobody forgets an edge without being told: that would make one more layer that nothing takes.
  absl::Status FindOutputs() {
    std::set<int> outputs;
    for (const std::string& name : list_.outputs) {
      const auto it = number_.find(name);
      if (it == number_.end()) return Error("outputs: no layer has the name \"", name, "\"");
      if (!outputs.insert(it->second).second) return Error("outputs: \"", name, "\" twice");
    }
    std::vector<std::string> untaken;
    for (int i = 0; i < num_layers(); ++i) {
      if (!consumers_[i].empty() || outputs.count(i) > 0) continue;
      untaken.push_back(Quoted(i));
      if (list_.outputs.empty()) outputs_.push_back(i);
    }
    if (!list_.outputs.empty()) outputs_.assign(outputs.begin(), outputs.end());
    if (untaken.size() == (list_.outputs.empty() ? 1 : 0)) return absl::OkStatus();
    constexpr size_t kShown = 8;
    if (untaken.size() > kShown) {
      untaken.resize(kShown);
      untaken.push_back("...");
    }
    return Error("layers: nothing takes the output of ", absl::StrJoin(untaken, ", "),
                 list_.outputs.empty()
                     ? ": is an input missing? Where all of them end the model, list their names "
                       "in \"outputs\""
                     : ", and \"outputs\" does not have them");
  }

  absl::Status CheckOutputBytes() const {
    for (int i = 0; i < num_layers(); ++i) {
      if (list_.layers[i].output.has_value() || consumers_[i].empty()) continue;
      return Error("layer ", Quoted(i), ": output: missing, and layer ", Quoted(consumers_[i][0]),
                   " takes it");
    }
    return absl::OkStatus();
  }

  bool LastIsLoss() const {
    return outputs_.size() == 1 && consumers_[outputs_[0]].empty() &&
           !list_.layers[outputs_[0]].output.has_value();
  }

  int64_t OutputNumbers(int i) const {
    return NumbersIn(list_.layers[i].output.value_or(Bytes(0)), list_.bytes_per_number);
  }

  void AddLayer(int i) {
    LayerSpec layer = MakeLayer(list_.layers[i], inputs_[i]);
    if (i != outputs_[0] || !LastIsLoss()) layer.output_shape = ShapeOf(OutputNumbers(i));
    index_[i] = static_cast<int>(graph_.layers.size());
    graph_.layers.push_back(std::move(layer));
  }

  void AddLoss() {
    ListedLayer loss;
    loss.name = "loss";
    while (number_.count(loss.name) > 0) loss.name += "_";
    loss.costs = PassCosts<Nanoseconds>();
    loss.keeps_inputs = false;
    // It costs nothing on any device; its rows are those of what it takes.
    loss.tensor_parallel = loss.Whole();
    const ListedLayer& output = list_.layers[outputs_[0]];
    if (output.tensor_parallel.has_value()) {
      loss.tensor_parallel->tokens = output.tensor_parallel->tokens;
    }
    graph_.layers.push_back(MakeLayer(loss, outputs_));
  }

  LayerSpec MakeLayer(const ListedLayer& listed, const std::vector<int>& inputs) const {
    int64_t numbers = 0;
    for (int input : inputs) numbers += OutputNumbers(input);
    LayerSpec layer = ProfiledLayer(listed, numbers, list_.bytes_per_number);
    for (int input : inputs) {
      layer.inputs.push_back(index_[input]);
      layer.input_shapes.push_back(ShapeOf(OutputNumbers(input)));
    }
    return layer;
  }

  // One of a loss would be empty, so never none.
  static std::vector<int64_t> ShapeOf(int64_t numbers) { return {std::max<int64_t>(1, numbers)}; }

  int num_layers() const { return static_cast<int>(list_.layers.size()); }

  const LayerList& list_;
  const absl::string_view what_;
  absl::flat_hash_map<absl::string_view, int> number_;  // of a layer in the list
  std::vector<std::vector<int>> inputs_, consumers_;
  std::vector<int> outputs_;
  std::vector<int> index_;  // of a layer in the graph
  ModelGraph graph_;
};

}  // namespace

absl::StatusOr<ModelGraph> MakeGraph(const LayerList& list, absl::string_view what) {
  return GraphMaker(list, what).Make();
}

}  // namespace pipelab
