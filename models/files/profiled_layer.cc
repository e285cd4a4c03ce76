#include "models/files/profiled_layer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// Numbers, of a sample unless they say otherwise, of one device of a group or of the only one.
struct LayerNumbers {
  int64_t inputs = 0, output = 0, kept = 0;
  int64_t workspace = 0, fixed_workspace = 0;
  int64_t parameters = 0;
  int64_t passed = 0;  // inputs and outputs as operations take them
  double work = 1;     // share of what follows the samples

  int64_t kept_for_weight() const { return parameters > 0 ? kept + output : 0; }
};

LayerNumbers NumbersOf(const ListedLayer& listed, int64_t input_numbers, int bytes_per_number) {
  const auto in = [&](Bytes bytes) { return NumbersIn(bytes, bytes_per_number); };
  LayerNumbers n;
  n.inputs = input_numbers;
  n.output = in(listed.output.value_or(Bytes(0)));
  n.passed = n.inputs + n.output;
  n.kept = in(listed.kept);
  n.workspace = in(listed.workspace.per_sample);
  n.fixed_workspace = in(listed.workspace.fixed);
  n.parameters = listed.parameters;
  return n;
}

template <typename Q>
Q ScaledCost(const PassCost<Q>& cost, int64_t samples, double share) {
  if (share == 1) return cost.Of(samples);
  const auto part = static_cast<double>(cost.Of(samples).value() - cost.fixed.value()) * share;
  using Number = decltype(cost.fixed.value());
  return cost.fixed + Q(std::is_integral<Number>::value ? static_cast<Number>(std::llround(part))
                                                        : static_cast<Number>(part));
}

LayerCosts CostsFor(const ListedLayer& listed, const LayerNumbers& n, int64_t samples) {
  LayerCosts costs;
  if (const auto* flops = absl::get_if<PassCosts<Flops>>(&listed.costs)) {
    costs.forward = ScaledCost(flops->forward, samples, n.work);
    costs.backward_input = ScaledCost(flops->backward_input, samples, n.work);
    costs.backward_weight = ScaledCost(flops->backward_weight, samples, n.work);
  }
  costs.output = FloatBytes(n.output * samples);
  costs.kept = FloatBytes(n.kept * samples);
  costs.kept_for_weight = FloatBytes(n.kept_for_weight() * samples);
  const Bytes workspace = FloatBytes(n.fixed_workspace + n.workspace * samples);
  costs.forward_peak = costs.kept + costs.output + workspace;
  costs.backward_peak = costs.backward_input_peak = FloatBytes(n.inputs * samples) + workspace;
  costs.backward_weight_peak = workspace;
  return costs;
}

// What costs nothing is no operation: it would have a launch overhead.
void AddMeasured(Nanoseconds time, std::vector<Operation>* pass) {
  if (time > Nanoseconds(0)) pass->push_back(MeasuredOperation(time));
}

void AddComputed(OperationKind kind, Flops flops, int64_t numbers, std::vector<Operation>* pass) {
  if (numbers == 0 || (HasProducts(kind) && flops == Flops(0))) return;
  Operation operation = MemoryOperation(kind, numbers);
  operation.flops = flops;
  pass->push_back(operation);
}

LayerOperations OperationsFor(const ListedLayer& listed, const LayerNumbers& n, int64_t samples) {
  LayerOperations ops;
  if (const auto* time = absl::get_if<PassCosts<Nanoseconds>>(&listed.costs)) {
    AddMeasured(ScaledCost(time->forward, samples, n.work), &ops.forward);
    AddMeasured(ScaledCost(time->backward_input, samples, n.work), &ops.backward_input);
    AddMeasured(ScaledCost(time->backward_weight, samples, n.work), &ops.backward_weight);
    return ops;
  }
  const auto& flops = absl::get<PassCosts<Flops>>(listed.costs);
  const int64_t numbers = (n.passed + n.kept) * samples + n.parameters;
  const auto add = [&](const PassCost<Flops>& pass, std::vector<Operation>* operations) {
    AddComputed(listed.operation, ScaledCost(pass, samples, n.work), numbers, operations);
  };
  add(flops.forward, &ops.forward);
  add(flops.backward_input, &ops.backward_input);
  if (n.parameters == 0 && flops.backward_weight.Of(samples) == Flops(0)) return ops;
  add(flops.backward_weight, &ops.backward_weight);
  return ops;
}

// What a group gathers or sums, of a sample.
struct GroupNumbers {
  int64_t forward = 0, backward = 0;
};

// One device's part. Where rows are split by tokens it has its own outside of the products, and all
// of them, gathered, inside.
LayerNumbers PartOf(LayerNumbers n, const ListedSplit& split, const GroupNumbers& group,
                    int bytes_per_number, TensorParallel tensor) {
  if (tensor.degree == 1) return n;
  const auto part = [&](int64_t all, int64_t whole) {
    return whole + (all - whole + tensor.degree - 1) / tensor.degree;
  };
  const bool rows = tensor.scatters_rows();
  n.kept = part(n.kept, rows ? 0 : NumbersIn(split.whole_kept, bytes_per_number));
  n.parameters = part(n.parameters, split.whole_parameters);
  const double whole_work = rows ? 0 : split.whole_work;
  n.work = whole_work + (1 - whole_work) / static_cast<double>(tensor.degree);
  if (!rows) return n;
  n.inputs = part(n.inputs, 0);
  n.output = part(n.output, 0);
  if (group.forward + group.backward == 0) n.passed = n.inputs + n.output;
  n.workspace += std::max(group.forward, group.backward);
  return n;
}

// The gradient of a sum is gathered, and that of what was gathered is summed; the weight part
// gathers its inputs again.
TensorCollectives CollectivesOf(const GroupNumbers& group, int64_t samples, bool has_weights,
                                TensorParallel split) {
  TensorCollectives collectives;
  const Bytes forward = FloatBytes(group.forward * samples),
              backward = FloatBytes(group.backward * samples);
  if (backward > Bytes(0)) AddGather(split, backward, &collectives.forward);
  if (forward > Bytes(0)) {
    AddSum(split, forward, &collectives.forward);
    AddGather(split, forward, &collectives.backward_input);
  }
  if (backward > Bytes(0)) {
    AddSum(split, backward, &collectives.backward_input);
    if (has_weights) AddGather(split, backward, &collectives.backward_weight);
  }
  return collectives;
}

void SetSplit(const std::shared_ptr<const ListedLayer>& listed, const LayerNumbers& n,
              int bytes_per_number, LayerSpec* layer) {
  const ListedSplit& split = *listed->tensor_parallel;
  const GroupNumbers group = {NumbersIn(split.forward_sum, bytes_per_number),
                              NumbersIn(split.backward_sum, bytes_per_number)};
  const auto part = [n, split, group, bytes_per_number](TensorParallel tensor) {
    return PartOf(n, split, group, bytes_per_number, tensor);
  };
  layer->split.costs = [listed, part](int64_t samples, TokenSlice, TensorParallel tensor) {
    return CostsFor(*listed, part(tensor), samples);
  };
  layer->split.operations = [listed, part](int64_t samples, TokenSlice, TensorParallel tensor) {
    return OperationsFor(*listed, part(tensor), samples);
  };
  layer->split.collectives = [group, has_weights = n.parameters > 0](int64_t samples, TokenSlice,
                                                                     TensorParallel tensor) {
    return CollectivesOf(group, samples, has_weights, tensor);
  };
  layer->split.dimensions = split.divides;
  if (split.tokens > 0) layer->split.dimensions.push_back({"tokens", split.tokens, true});
}

// One for what a group divides, if it does, and one for what each of its devices has.
std::vector<ParameterSpec> ParametersOf(const ListedLayer& listed) {
  std::vector<ParameterSpec> parameters;
  const auto add = [&](absl::string_view name, int64_t size, int split_dimension) {
    if (size == 0) return;
    ParameterSpec p;
    p.name = absl::StrCat(listed.name, name);
    p.shape = {size};
    p.split_dimension = split_dimension;
    parameters.push_back(std::move(p));
  };
  const bool splits = listed.tensor_parallel.has_value();
  const int64_t whole = splits ? listed.tensor_parallel->whole_parameters : 0;
  add("/parameters", listed.parameters - whole, splits ? 0 : -1);
  add("/whole", whole, -1);
  return parameters;
}

InputUse UseOf(const ListedLayer& listed) {
  if (!listed.keeps_inputs) return InputUse::kForward;
  return listed.parameters > 0 ? InputUse::kWeightGradient : InputUse::kInputGradient;
}

}  // namespace

LayerSpec ProfiledLayer(const ListedLayer& listed, int64_t input_numbers, int bytes_per_number) {
  const LayerNumbers n = NumbersOf(listed, input_numbers, bytes_per_number);
  LayerSpec layer;
  layer.name = listed.name;
  layer.kind = kProfiled;
  layer.input_use = UseOf(listed);
  layer.parameters = ParametersOf(listed);
  // Copies of a graph share it.
  const auto kept = std::make_shared<const ListedLayer>(listed);
  layer.costs = [kept, n](int64_t samples) { return CostsFor(*kept, n, samples); };
  layer.operations = [kept, n](int64_t samples, TokenSlice) {
    return OperationsFor(*kept, n, samples);
  };
  if (listed.tensor_parallel.has_value()) SetSplit(kept, n, bytes_per_number, &layer);
  return layer;
}

}  // namespace pipelab
