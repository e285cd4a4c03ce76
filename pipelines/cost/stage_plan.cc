#include "pipelines/cost/stage_plan.h"

#include <algorithm>
#include <map>

#include "absl/types/optional.h"

namespace pipelab {
namespace {

// The first of the places whose layer reads a value so long.
int FirstReader(const StagePlan& plan, const std::vector<int>& places, InputUse at_least) {
  for (int place : places) {
    if (plan.uses[place] >= at_least) return place;
  }
  return -1;
}

// The place after which a pass lets go of the value, or -1. Of a stage that rebuilds no blocks.
int ReleasePlace(const StagePlan& plan, int value, StagePass pass) {
  const StagePlan::Value& v = plan.values[value];
  const bool in_edge = value < plan.num_in_edges;
  const int last_consumer = v.consumers.empty() ? -1 : v.consumers.back();
  switch (pass) {
    case StagePass::kForward:  // a value that leaves waits for the end
      return v.kept() || !v.out_edges.empty() ? -1 : last_consumer;
    case StagePass::kForwardDrop:
      return in_edge || !v.out_edges.empty() ? -1 : last_consumer;
    case StagePass::kRecompute:  // nothing leaves
      if (v.kept()) return -1;
      return last_consumer >= 0 ? last_consumer : value - plan.num_in_edges;
    case StagePass::kBackward:
      return FirstReader(plan, v.consumers, InputUse::kInputGradient);
    case StagePass::kBackwardInput:
      if (v.use != InputUse::kInputGradient) return -1;
      return FirstReader(plan, v.consumers, v.use);
    case StagePass::kBackwardWeight:
      return FirstReader(plan, v.consumers, InputUse::kWeightGradient);
  }
  return -1;
}

// The releases of a stage that rebuilds blocks, where a value may have two lives: what a forward
// leaves to later blocks, and what comes back when its own block is rebuilt.
class BlockReleases {
 public:
  explicit BlockReleases(StagePlan* plan) : plan_(*plan) {
    for (const StagePlan::Block& block : plan_.blocks) {
      block_of_place_.resize(block.end, &block);
    }
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      plan_.values[v].held = value >= plan_.num_in_edges && !HoldersOf(value).empty();
    }
  }

  // The places after which the pass lets go of the value, without those of -1.
  std::vector<int> Of(int value, StagePass pass) const {
    const StagePlan::Value& v = plan_.values[value];
    const int maker = value - plan_.num_in_edges;
    const bool rebuilt = maker >= 0 && block_of_place_[maker]->rebuilt;
    const std::vector<int> holders = HoldersOf(value);
    std::vector<int> places;
    switch (pass) {
      case StagePass::kForward:
      case StagePass::kForwardDrop:
        if (maker >= 0 && !v.held) return {ReleasePlace(plan_, value, pass)};
        break;
      case StagePass::kRecompute:
        if (rebuilt && !v.held && !v.kept()) {
          const std::vector<int> own = OwnConsumers(value);
          return {own.empty() ? maker : own.back()};
        }
        break;
      case StagePass::kBackwardInput:
        if (v.use == InputUse::kWeightGradient) break;
        [[fallthrough]];
      case StagePass::kBackward: {
        if (!holders.empty()) places.push_back(holders.front());
        if (!rebuilt) break;
        const int reader = FirstReader(plan_, OwnConsumers(value), InputUse::kInputGradient);
        places.push_back(reader < 0 && v.held ? maker : reader);
        break;
      }
      case StagePass::kBackwardWeight:
        return {ReleasePlace(plan_, value, pass)};
    }
    return places;
  }

 private:
  // The consumers that need what the forward left of it, ascending.
  std::vector<int> HoldersOf(int value) const {
    const int maker = value - plan_.num_in_edges;
    std::vector<int> holders;
    for (int place : plan_.values[value].consumers) {
      const StagePlan::Block* block = block_of_place_[place];
      const bool reads = plan_.uses[place] != InputUse::kForward;
      const bool other = maker < 0 || block_of_place_[maker] != block;
      if (maker < 0 || (block->rebuilt ? other : reads)) holders.push_back(place);
    }
    return holders;
  }

  // In the block that makes it.
  std::vector<int> OwnConsumers(int value) const {
    const int maker = value - plan_.num_in_edges;
    std::vector<int> own;
    for (int place : plan_.values[value].consumers) {
      if (block_of_place_[place] == block_of_place_[maker]) own.push_back(place);
    }
    return own;
  }

  StagePlan& plan_;
  std::vector<const StagePlan::Block*> block_of_place_;
};

// Runs of places in one block.
std::vector<StagePlan::Block> BlocksOf(const ModelPartition& partition,
                                       const std::vector<int>& layers) {
  std::vector<StagePlan::Block> blocks;
  int before = -1;
  for (int place = 0; place < static_cast<int>(layers.size()); ++place) {
    const int block =
        partition.block_of_layer.empty() ? -1 : partition.block_of_layer[layers[place]];
    if (blocks.empty() || block != before) blocks.push_back({place, place, block >= 0});
    ++blocks.back().end;
    before = block;
  }
  return blocks;
}

void FillReleases(StagePlan* plan) {
  absl::optional<BlockReleases> of_blocks;
  if (plan->rebuilds) of_blocks.emplace(plan);
  for (int pass = 0; pass < kNumStagePasses; ++pass) {
    plan->released_of_pass[pass].resize(plan->layers.size());
    for (int value = 0; value < static_cast<int>(plan->values.size()); ++value) {
      const StagePass p = static_cast<StagePass>(pass);
      const auto let_go = [&](int place) {
        if (place >= 0) plan->released_of_pass[pass][place].push_back(value);
      };
      if (plan->rebuilds) {
        for (int place : of_blocks->Of(value, p)) let_go(place);
      } else {
        let_go(ReleasePlace(*plan, value, p));
      }
    }
  }
}

}  // namespace

StagePlan MakeStagePlan(const ModelGraph& graph, const ModelPartition& partition, int stage) {
  StagePlan plan;
  plan.layers = partition.layers[stage];
  plan.blocks = BlocksOf(partition, plan.layers);
  plan.rebuilds = !partition.block_of_layer.empty();
  plan.values.reserve(partition.stages.in_edges[stage].size() + plan.layers.size());
  plan.inputs.reserve(plan.layers.size());
  plan.gives.reserve(plan.layers.size());
  std::map<int, int> value_of_edge;  // by its layer
  const auto add = [&](int layer) {
    plan.values.emplace_back();
    plan.values.back().layer = layer;
  };
  for (int edge : partition.stages.in_edges[stage]) {
    value_of_edge[partition.edge_layer[edge]] = static_cast<int>(plan.values.size());
    add(partition.edge_layer[edge]);
  }
  plan.num_in_edges = static_cast<int>(plan.values.size());
  for (int layer : plan.layers) add(layer);
  const auto value_of_layer = [&](int layer) {
    const auto at = std::lower_bound(plan.layers.begin(), plan.layers.end(), layer);
    if (at == plan.layers.end() || *at != layer) return value_of_edge.at(layer);
    return plan.output(static_cast<int>(at - plan.layers.begin()));
  };
  for (int place = 0; place < static_cast<int>(plan.layers.size()); ++place) {
    const LayerSpec& layer = graph.layers[plan.layers[place]];
    plan.splits.push_back(partition.Splits(plan.layers[place]));
    plan.uses.push_back(plan.splits.back() ? layer.input_use
                                           : std::min(layer.input_use, InputUse::kInputGradient));
    plan.inputs.emplace_back();
    plan.gives.emplace_back();
    for (int input : layer.inputs) {
      const int value = value_of_layer(input);
      plan.inputs.back().push_back(value);
      plan.gives.back().push_back(!IsDetached(layer, input));
      plan.values[value].shares += plan.gives.back().back() ? 1 : 0;
      plan.values[value].consumers.push_back(place);
      plan.values[value].use = std::max(plan.values[value].use, plan.uses[place]);
    }
  }
  for (int edge : partition.stages.out_edges[stage]) {
    const int value = value_of_layer(partition.edge_layer[edge]);
    plan.values[value].out_edges.push_back(static_cast<int>(plan.out_values.size()));
    if (!partition.stages.edges[edge].gradient.none()) {
      ++plan.values[value].back_edges;
    }
    plan.out_values.push_back(value);
  }
  FillReleases(&plan);
  return plan;
}

}  // namespace pipelab
