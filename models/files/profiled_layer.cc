#include "models/files/profiled_layer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// Numbers, of a sample unless they say otherwise.
struct LayerNumbers {
  int64_t inputs = 0, output = 0, kept = 0, kept_for_weight = 0;
  int64_t workspace = 0, fixed_workspace = 0;
  int64_t parameters = 0;
};

LayerNumbers NumbersOf(const ListedLayer& listed, int64_t input_numbers, int bytes_per_number) {
  const auto in = [&](Bytes bytes) { return NumbersIn(bytes, bytes_per_number); };
  LayerNumbers n;
  n.inputs = input_numbers;
  n.output = in(listed.output.value_or(Bytes(0)));
  n.kept = in(listed.kept);
  if (listed.parameters > 0) n.kept_for_weight = n.kept + n.output;
  n.workspace = in(listed.workspace.per_sample);
  n.fixed_workspace = in(listed.workspace.fixed);
  n.parameters = listed.parameters;
  return n;
}

LayerCosts CostsFor(const ListedLayer& listed, const LayerNumbers& n, int64_t samples) {
  LayerCosts costs;
  if (const auto* flops = absl::get_if<PassCosts<Flops>>(&listed.costs)) {
    costs.forward = flops->forward.Of(samples);
    costs.backward_input = flops->backward_input.Of(samples);
    costs.backward_weight = flops->backward_weight.Of(samples);
  }
  costs.output = FloatBytes(n.output * samples);
  costs.kept = FloatBytes(n.kept * samples);
  costs.kept_for_weight = FloatBytes(n.kept_for_weight * samples);
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
    AddMeasured(time->forward.Of(samples), &ops.forward);
    AddMeasured(time->backward_input.Of(samples), &ops.backward_input);
    AddMeasured(time->backward_weight.Of(samples), &ops.backward_weight);
    return ops;
  }
  const auto& flops = absl::get<PassCosts<Flops>>(listed.costs);
  const int64_t passed = (n.inputs + n.output + n.kept) * samples;
  AddComputed(listed.operation, flops.forward.Of(samples), passed + n.parameters, &ops.forward);
  AddComputed(listed.operation, flops.backward_input.Of(samples), passed + n.parameters,
              &ops.backward_input);
  if (n.parameters == 0 && flops.backward_weight.Of(samples) == Flops(0)) return ops;
  AddComputed(listed.operation, flops.backward_weight.Of(samples), passed + n.parameters,
              &ops.backward_weight);
  return ops;
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
  if (listed.parameters > 0) {
    ParameterSpec all;
    all.name = absl::StrCat(listed.name, "/parameters");
    all.shape = {listed.parameters};
    layer.parameters = {std::move(all)};
  }
  layer.costs = [listed, n](int64_t samples) { return CostsFor(listed, n, samples); };
  layer.operations = [listed, n](int64_t samples, TokenSlice) {
    return OperationsFor(listed, n, samples);
  };
  return layer;
}

}  // namespace pipelab
