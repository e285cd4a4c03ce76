// How one stage of a partition runs, tensor by tensor: what both its prediction (stage_costs.h) and
// its execution (pipelines/runtime/layer_stage.h) follow, so that the two agree to the byte.
//
//   const StagePlan plan = MakeStagePlan(graph, partition, stage);
//   for (int v : plan.released(StagePass::kForward)[place]) values[v] = Tensor();
//
// A *value* is a tensor of one micro-batch that the stage's layers take: first what comes in on
// each in-edge, then each layer's output. Layers run in order forward, and from the last to the
// first backward. Rules:
//  * A value is held until nobody needs it: the forward and recompute let go of one that no
//    backward part reads (InputUse), a backward lets go of the others after the first layer that
//    reads them. A forward that drops keeps the values of in-edges only.
//  * The weight part of a layer that is not split (ModelPartition::unsplit) runs right after its
//    input part, in every backward.
//  * A stage that rebuilds its blocks (ModelPartition::block_of_layer; Chen et al. 2016, and what
//    Megatron-LM calls full recomputation) drops in every forward all but the inputs of its blocks.
//    A backward runs the forward of a block again (kRecompute) before it comes to the block's last
//    layer, and holds its inputs until it is through with the block, its outputs until it is
//    through with the layers that made them.
//  * A value that leaves does so when the forward is over. Each out-edge owns its tensor: the value
//    itself for the last of its out-edges, unless it is kept here, and copies for the others. So
//    sends and hand-overs need not know of one another.
//  * Backward, the gradients that came back for a value are added up first, from the last out-edge
//    to the first, in place; then the layers that take it add theirs as they run.
#ifndef PIPELAB_PIPELINES_COST_STAGE_PLAN_H_
#define PIPELAB_PIPELINES_COST_STAGE_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "models/graph/layer_spec.h"
#include "pipelines/cost/model_partition.h"

namespace pipelab {

enum class StagePass : uint8_t {
  kForward,
  kForwardDrop,  // keeps the in-edges' values, and inputs of blocks; a recompute comes
  kRecompute,
  kBackward,  // input and weight part of each layer, one after the other
  kBackwardInput,
  kBackwardWeight,
};
inline constexpr int kNumStagePasses = 6;

struct StagePlan {
  struct Value {
    int layer = 0;               // of the graph: whose output it is
    std::vector<int> consumers;  // places of the stage's layers that take it, ascending
    std::vector<int> out_edges;  // of the stage, ascending
    int back_edges = 0;          // of these, that bring a gradient
    int shares = 0;              // consumers here that give it one
    // The longest use by a consumer here; kForward: no backward reads it.
    InputUse use = InputUse::kForward;
    // By a forward of a stage that rebuilds blocks: an input of a block, or read by the backward of
    // a layer that drops nothing. In-edges are not marked: they are always held.
    bool held = false;

    bool kept() const { return use != InputUse::kForward; }  // by a forward, for its backward
    // Copies made when a forward ends.
    int copies(bool drop) const {
      return static_cast<int>(out_edges.size()) - (out_edges.empty() || stays(drop) ? 0 : 1);
    }
    bool stays(bool drop) const { return held || (kept() && !drop); }  // when a forward ends
  };
  struct Block {  // places [begin, end)
    int begin = 0, end = 0;
    bool rebuilt = false;
  };

  std::vector<int> layers;  // of the graph, ascending; a place is an index into it
  // [place] False: the weight part runs with the input part (ModelPartition::unsplit).
  std::vector<bool> splits;
  std::vector<InputUse> uses;  // [place] of its inputs
  int num_in_edges = 0;
  std::vector<Value> values;             // of the in-edges, then of the places
  std::vector<std::vector<int>> inputs;  // [place] -> values, as LayerSpec::inputs
  std::vector<std::vector<bool>> gives;  // the same: whether the layer gives it a gradient
  std::vector<int> out_values;           // [out-edge] -> value
  // All places in their order; one that is not rebuilt where the stage does not rebuild blocks.
  std::vector<Block> blocks;
  bool rebuilds = false;
  // [pass][place] -> values that nobody needs once the layer at the place has run.
  std::array<std::vector<std::vector<int>>, kNumStagePasses> released_of_pass;

  // Whether a forward that drops does so in this block.
  bool Drops(const Block& block) const { return block.rebuilt || !rebuilds; }
  // A split backward that rebuilds the value finds it: it waits for the weight part.
  bool FindsValue(int value, StagePass backward) const {
    return backward == StagePass::kBackwardInput && values[value].held &&
           values[value].use == InputUse::kWeightGradient;
  }
  int output(int place) const { return num_in_edges + place; }
  const std::vector<std::vector<int>>& released(StagePass pass) const {
    return released_of_pass[static_cast<int>(pass)];
  }
};

StagePlan MakeStagePlan(const ModelGraph& graph, const ModelPartition& partition, int stage);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STAGE_PLAN_H_
