#include "models/graph/alike_layers.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipelab {
namespace {

// Samples of the operations that are compared: kernels differ where sizes do.
constexpr int64_t kSomeSamples[] = {1, 3};

void AppendOperations(const std::vector<Operation>& pass, std::string* text) {
  for (const Operation& o : pass) {
    absl::StrAppend(text, static_cast<int>(o.kind), " ", o.flops.value(), " ", o.numbers, " ", o.m,
                    " ", o.n, " ", o.k, " ", o.time.value(), " ", o.own, o.half, o.sums_rows,
                    o.backward, o.adds_gradient, o.of_product, static_cast<int>(o.sums), " ",
                    o.groups, " ", o.packed.value(), ";");
  }
  absl::StrAppend(text, "|");
}

// All that two layers must have in common, but for their inputs.
std::string KeyOf(const LayerSpec& layer) {
  std::string key = absl::StrCat(layer.kind, "|", static_cast<int>(layer.input_use), "|",
                                 absl::StrJoin(layer.output_shape, "x"), "|");
  absl::StrAppend(&key, layer.inputs.size(), "|", layer.detached.size());
  for (const std::vector<int64_t>& shape : layer.input_shapes) {
    absl::StrAppend(&key, "|", absl::StrJoin(shape, "x"));
  }
  for (const auto& [name, value] : layer.attributes) absl::StrAppend(&key, "|", name, "=", value);
  for (const ParameterSpec& p : layer.parameters) {
    absl::StrAppend(&key, "|", absl::StrJoin(p.shape, "x"), " ", p.experts, " ", p.split_dimension,
                    " ", p.split_blocks, " ", p.split_lead);
  }
  for (const int64_t samples : kSomeSamples) {
    if (!layer.operations) break;
    const LayerOperations operations = layer.operations(samples, TokenSlice());
    AppendOperations(operations.forward, &key);
    AppendOperations(operations.backward_input, &key);
    AppendOperations(operations.backward_weight, &key);
  }
  return key;
}

}  // namespace

std::vector<int> FirstAlike(const ModelGraph& graph) {
  std::vector<int> own_key, first;
  std::map<std::string, int> keys;
  std::map<std::vector<int>, int> by_keys;  // a layer's and those of its inputs
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const LayerSpec& layer = graph.layers[i];
    const int number = static_cast<int>(i);
    const std::string key = layer.kind.empty() ? absl::StrCat("layer ", i) : KeyOf(layer);
    own_key.push_back(keys.emplace(key, number).first->second);
    std::vector<int> all = {own_key.back()};
    for (const int input : layer.inputs) all.push_back(own_key[input]);
    first.push_back(by_keys.emplace(std::move(all), number).first->second);
  }
  return first;
}

}  // namespace pipelab
