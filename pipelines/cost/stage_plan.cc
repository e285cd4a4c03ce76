#include "pipelines/cost/stage_plan.h"

#include <algorithm>
#include <map>

namespace pipelab {
namespace {

// The place after which a pass lets go of the value, or -1.
int ReleasePlace(const ModelGraph& graph, const StagePlan& plan, int value, StagePass pass) {
  const StagePlan::Value& v = plan.values[value];
  const bool in_edge = value < plan.num_in_edges;
  const int last_consumer = v.consumers.empty() ? -1 : v.consumers.back();
  const auto first_reader = [&](InputUse at_least) {
    for (int place : v.consumers) {
      if (graph.layers[plan.layers[place]].input_use >= at_least) return place;
    }
    return -1;
  };
  switch (pass) {
    case StagePass::kForward:  // a value that leaves waits for the end
      return v.kept() || !v.out_edges.empty() ? -1 : last_consumer;
    case StagePass::kForwardDrop:
      return in_edge || !v.out_edges.empty() ? -1 : last_consumer;
    case StagePass::kRecompute:  // nothing leaves
      if (v.kept()) return -1;
      return last_consumer >= 0 ? last_consumer : value - plan.num_in_edges;
    case StagePass::kBackward:
      return first_reader(InputUse::kInputGradient);
    case StagePass::kBackwardInput:
      return v.use == InputUse::kInputGradient ? first_reader(v.use) : -1;
    case StagePass::kBackwardWeight:
      return first_reader(InputUse::kWeightGradient);
  }
  return -1;
}

}  // namespace

StagePlan MakeStagePlan(const ModelGraph& graph, const ModelPartition& partition, int stage) {
  StagePlan plan;
  plan.layers = partition.layers[stage];
  std::map<int, int> value_of_layer;
  const auto add = [&](int layer) {
    value_of_layer[layer] = static_cast<int>(plan.values.size());
    plan.values.emplace_back();
    plan.values.back().layer = layer;
  };
  for (int edge : partition.stages.in_edges[stage]) add(partition.edge_layer[edge]);
  plan.num_in_edges = static_cast<int>(plan.values.size());
  for (int layer : plan.layers) add(layer);
  for (int place = 0; place < static_cast<int>(plan.layers.size()); ++place) {
    const LayerSpec& layer = graph.layers[plan.layers[place]];
    plan.inputs.emplace_back();
    for (int input : layer.inputs) {
      const int value = value_of_layer.at(input);
      plan.inputs.back().push_back(value);
      plan.values[value].consumers.push_back(place);
      plan.values[value].use = std::max(plan.values[value].use, layer.input_use);
    }
  }
  for (int edge : partition.stages.out_edges[stage]) {
    const int value = value_of_layer.at(partition.edge_layer[edge]);
    plan.values[value].out_edges.push_back(static_cast<int>(plan.out_values.size()));
    plan.out_values.push_back(value);
  }
  for (int pass = 0; pass < kNumStagePasses; ++pass) {
    plan.released_of_pass[pass].resize(plan.layers.size());
    for (int value = 0; value < static_cast<int>(plan.values.size()); ++value) {
      const int place = ReleasePlace(graph, plan, value, static_cast<StagePass>(pass));
      if (place >= 0) plan.released_of_pass[pass][place].push_back(value);
    }
  }
  return plan;
}

}  // namespace pipelab
