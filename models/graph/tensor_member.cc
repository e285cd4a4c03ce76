#include "models/graph/tensor_member.h"

#include <vector>

#include "glog/logging.h"
#include "models/graph/context_parallel.h"

namespace pipelab {
namespace {

// Elements that follow one another in the whole are those of one block of the divided dimension,
// and of all dimensions behind it.
void Cut(TensorParallel split, int64_t member, ParameterSpec* p) {
  if (p->split_dimension < 0 || split.degree == 1) return;
  if (p->experts > 0 && split.expert_degree() == 1) return;
  int64_t behind = 1;
  for (size_t d = static_cast<size_t>(p->split_dimension) + 1; d < p->shape.size(); ++d) {
    behind *= p->shape[d];
  }
  int64_t& size = p->shape[p->split_dimension];
  CHECK_EQ(size % (split.degree * p->split_units()), 0)
      << p->name << ": " << split.degree << " devices divide " << p->split_units() << " blocks of "
      << size;
  size /= split.degree;
  p->cut.parts = split.degree;
  p->cut.part = member;
  p->cut.run = size / p->split_units() * behind;
  p->cut.lead = p->split_lead;
  p->cut.others = p->split_blocks - 1;
  p->split_dimension = -1;
}

// One share of the experts, which follow one another; before each of these is cut.
void CutExperts(TensorParallel split, int64_t share, ParameterSpec* p) {
  if (p->experts == 0 || split.experts == 1) return;
  CHECK_EQ(p->shape[0] % split.experts, 0)
      << p->name << ": " << split.experts << " devices divide " << p->shape[0] << " experts";
  p->shape[0] /= split.experts;
  p->cut.slices = split.experts;
  p->cut.offset = share * p->size();
}

void CutTokens(int64_t parts, LayerSpec* layer) {
  const auto cut = [&](std::vector<int64_t>* shape) {
    CHECK_EQ(shape->front() % parts, 0) << layer->name << ": tokens";
    shape->front() /= parts;
  };
  if (!layer->output_shape.empty()) cut(&layer->output_shape);
  for (std::vector<int64_t>& shape : layer->input_shapes) cut(&shape);
}

}  // namespace

LayerSpec MemberLayer(const LayerSpec& layer, TensorParallel split, int64_t member,
                      ContextPart context, int64_t experts) {
  CHECK(0 <= experts && experts < split.experts) << experts << " of " << split.experts;
  CHECK(0 <= member && member < split.degree) << member << " of " << split.degree;
  CHECK_EQ(context.parts, split.context) << layer.name;
  LayerSpec part = layer;
  if (!context.whole()) {
    part.context = context;
    CutTokens(context.parts, &part);
    part.costs = [layer, split](int64_t samples) {
      return CostsOf(layer, samples, TokenSlice(), split);
    };
    part.operations = [layer, split](int64_t samples, TokenSlice) {
      return ShareOf(layer, samples, TokenSlice(), split).operations;
    };
    part.slice_costs = nullptr;
  }
  if ((split.degree == 1 && split.experts == 1) || layer.split.empty()) return part;
  for (ParameterSpec& p : part.parameters) {
    CutExperts(split, experts, &p);
    Cut(split, member, &p);
    p.experts = 0;
  }
  for (const TensorDimension& d : layer.split.dimensions) {
    if (d.attribute.empty()) continue;
    CHECK_EQ(d.size % split.degree, 0) << layer.name << ": " << d.name;
    part.attributes.at(d.attribute) = static_cast<double>(d.size / split.degree);
  }
  part.costs = [costs = layer.split.costs, split](int64_t samples) {
    return costs(samples, TokenSlice(), split);
  };
  if (part.slice_costs) {
    part.slice_costs = [costs = layer.split.costs, split](int64_t samples, TokenSlice slice) {
      return costs(samples, slice, split);
    };
  }
  part.operations = [operations = layer.split.operations, split](int64_t samples,
                                                                 TokenSlice slice) {
    return operations(samples, slice, split);
  };
  if (split.scatters_rows()) {
    part.rows = {split.degree, member};
    CutTokens(split.degree, &part);
  }
  part.split = LayerSplit();
  return part;
}

ModelGraph MemberGraph(const ModelGraph& graph, TensorParallel split, int64_t member,
                       int64_t context, int64_t experts) {
  ModelGraph part;
  part.name = graph.name;
  part.width = graph.width;
  ContextPart tokens = ContextPartOf(graph, split.context, context);
  tokens.exchange = split.exchange;
  for (const LayerSpec& layer : graph.layers) {
    part.layers.push_back(MemberLayer(layer, split, member, tokens, experts));
  }
  return part;
}

}  // namespace pipelab
