#include "models/specs/adapters.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/graph/cost_math.h"
#include "models/specs/change_costs.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/unfused_attention_spec.h"

namespace pipelab {
namespace {

// x_[M, in] w_[in, out], and which of the two a group divides: a dimension of w, or none (-1).
struct Product {
  int64_t in, out;
  int divided;

  int64_t In(TensorParallel split) const { return divided == 0 ? in / split.degree : in; }
  int64_t Out(TensorParallel split) const { return divided == 1 ? out / split.degree : out; }
};

// The sum with the product's output, and the sums of gradients over micro-batches.
void AddAdapter(const Product& p, int64_t rank, int64_t rows, TensorParallel split,
                LayerOperations* ops) {
  const int64_t in = p.In(split), out = p.Out(split);
  AddMatmul(rows, rank, in, ops);
  AddMatmul(rows, out, rank, ops);
  AddElementwise(3 * rows * out, 3 * rows * in, ops);
  for (const int64_t size : {in * rank, rank * out}) {
    ops->backward_weight.push_back(ElementwiseOperation(3 * size));
  }
}

void Freeze(LayerSpec* layer) {
  layer->parameters.clear();
  ChangeCosts(
      layer, [](int64_t, TensorParallel, LayerCosts* costs) { costs->backward_weight = Flops(0); });
  ChangeOperations(
      layer, [](int64_t, TensorParallel, LayerOperations* ops) { ops->backward_weight.clear(); });
}

void Adapt(const std::vector<Product>& products, int64_t rank, LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0];
  ChangeCosts(layer, [=](int64_t samples, TensorParallel split, LayerCosts* costs) {
    const int64_t rows = SplitRows(samples * tokens, split).all;
    for (const Product& p : products) {
      const Flops flops = MatmulFlops(rows, rank, p.In(split) + p.Out(split));
      costs->forward += flops;
      costs->backward_input += flops;
      costs->backward_weight += flops;
      const Bytes kept = FloatBytes(rows * rank);  // x a
      costs->kept += kept;
      costs->forward_peak += kept;
      costs->kept_for_weight += kept;
    }
  });
  ChangeOperations(layer, [=](int64_t samples, TensorParallel split, LayerOperations* ops) {
    const int64_t rows = SplitRows(samples * tokens, split).all;
    for (const Product& p : products) AddAdapter(p, rank, rows, split, ops);
  });
}

std::vector<Product> ProductsOf(const LayerSpec& layer, bool all) {
  std::vector<Product> products;
  const bool attention = layer.kind == kGptAttention || layer.kind == kUnfusedAttention;
  if (!attention && (layer.kind != kGptMlp || !all)) return products;
  for (const ParameterSpec& p : layer.parameters) {
    if (p.shape.size() != 2) continue;
    products.push_back({p.shape[0], p.shape[1], p.split_dimension});
    if (!all) break;  // queries, keys and values come first
  }
  return products;
}

// The norm's output and the activation's, which only weight gradients read.
void DropInputs(ProductInputs inputs, LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0], hidden = layer->output_shape[1];
  const int64_t inner = WholeAttribute(*layer, "inner");
  ChangeCosts(layer, [=](int64_t samples, TensorParallel split, LayerCosts* costs) {
    const SplitRows rows(samples * tokens, split);
    const int64_t numbers = rows.own * hidden + rows.all * (inner / split.degree);
    const Bytes less = FloatBytes(inputs == ProductInputs::kHalfAsWide ? numbers / 2 : numbers);
    costs->kept -= less;
    costs->forward_peak -= less;
    costs->kept_for_weight -= less;
  });
}

void AddParameters(const std::vector<Product>& products, int64_t rank, LayerSpec* layer) {
  for (size_t i = 0; i < products.size(); ++i) {
    const Product& p = products[i];
    const auto add = [&](const char* name, std::vector<int64_t> shape, int divided) {
      ParameterSpec a;
      a.name = absl::StrCat(layer->name, "/adapter", i, name);
      a.shape = std::move(shape);
      a.split_dimension = divided;
      layer->parameters.push_back(std::move(a));
    };
    add("/a", {p.in, rank}, p.divided == 0 ? 0 : -1);
    add("/b", {rank, p.out}, p.divided == 1 ? 1 : -1);
  }
}

}  // namespace

ModelGraph WithAdapters(ModelGraph graph, const Adapters& adapters) {
  for (LayerSpec& layer : graph.layers) {
    const std::vector<Product> products = ProductsOf(layer, adapters.all_products);
    Freeze(&layer);
    if (!products.empty()) {
      Adapt(products, adapters.rank, &layer);
      AddParameters(products, adapters.rank, &layer);
    } else if (layer.kind == kGptMlp) {
      DropInputs(adapters.inputs, &layer);
    }
  }
  return graph;
}

}  // namespace pipelab
