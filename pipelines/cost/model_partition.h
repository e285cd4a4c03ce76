// What a partition makes of a model: the layers of each stage, the stage graph with what each of
// its edges carries, and the parameters that several stages share.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelPartition p, MakePartition(graph, {0, 0, 1, 1, 2}));
//   LoweringOptions options;
//   options.stages = p.stages;
//   options.ties = StageTies(graph, p);
//
// There is one edge for each layer and each other stage that takes its output, straight from stage
// to stage (a skip connection passes through no stage in between), ordered by (layer, stage that
// takes it). A chain cut in ranges gives StageGraph::Chain.
//
// Several consumers in one stage share one edge: their gradients are added up there, from the last
// layer to the first, and one sum is sent back. The stage that makes the output adds what comes
// back from the last stage to the first, and then the shares of its own consumers, from the last
// layer to the first. An edge brings no gradient where all its consumers are detached.
#ifndef PIPELAB_PIPELINES_COST_MODEL_PARTITION_H_
#define PIPELAB_PIPELINES_COST_MODEL_PARTITION_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph/layer_spec.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

struct ModelPartition {
  std::vector<int> stage_of_layer;
  std::vector<std::vector<int>> layers;  // [stage], ascending
  StageGraph stages;
  std::vector<int> edge_layer;  // [edge of `stages`] -> the layer whose output it carries
  int loss_stage = 0;
  // [layer] Not empty: every stage keeps the inputs of its blocks alone, and its backward rebuilds
  // the activations of one block at a time, from the last to the first. A block is consecutive
  // layers of a stage with the same number; layers of -1 keep what they have. RebuiltBlocks.
  std::vector<int> block_of_layer;
  // [layer] Whose weight part runs with the input part (I), where a schedule splits backwards, so
  // that W finds nothing to do: HeadLayers. Empty: none.
  std::vector<bool> unsplit;

  bool Splits(int layer) const { return unsplit.empty() || !unsplit[layer]; }
  int num_stages() const { return static_cast<int>(layers.size()); }
};

// Stages may be any sets of layers as long as no edge leads to a stage of a lower number (so they
// are convex, and the stage graph has no cycle). InvalidArgument names the layer or the stage.
absl::StatusOr<ModelPartition> MakePartition(const ModelGraph& graph,
                                             std::vector<int> stage_of_layer);

// Stages that are ranges of layers: the first layer of each, ascending from 0 (chain_partition.h).
absl::StatusOr<ModelPartition> MakeRangePartition(const ModelGraph& graph,
                                                  absl::Span<const int> first_layers);

// The layers [begin, end) as one stage, those before and those after as one each, where there are
// any. The range's own stage is the number 0 or 1: `*stage`.
absl::StatusOr<ModelPartition> MakeStageOfRange(const ModelGraph& graph, int begin, int end,
                                                int* stage);

// `block_of_layer` of a model in blocks: those with a layer that takes nothing of others (an
// embedding) or with the loss are -1, as frameworks recompute what is between the two alone.
std::vector<int> RebuiltBlocks(const ModelGraph& graph, std::vector<int> block_of_layer);

// `unsplit` of a model's head: the losses, and what makes the scores that they compare, back to the
// last layer with parameters. Split, it would keep the gradients of all scores until W.
std::vector<bool> HeadLayers(const ModelGraph& graph);

// Which blocks are rebuilt: every `every`-th one of a device, of which stage s + `devices` is where
// stage s is (torchtitan); of each stage's the `first` (Megatron-LM's --recompute-method block; 0:
// all); and as many of a stage as `together` at a time, of which the first one's inputs alone are
// kept (its --recompute-method uniform).
struct RebuiltPart {
  int first = 0, every = 1, together = 1;

  bool all() const { return first == 0 && every == 1; }
  bool operator==(const RebuiltPart& other) const {
    return std::tie(first, every, together) == std::tie(other.first, other.every, other.together);
  }
  bool operator<(const RebuiltPart& other) const {
    return std::tie(first, every, together) < std::tie(other.first, other.every, other.together);
  }
  template <typename H>
  friend H AbslHashValue(H h, const RebuiltPart& part) {
    return H::combine(std::move(h), part.first, part.every, part.together);
  }
};
void RebuildPart(const RebuiltPart& part, int devices, ModelPartition* partition);

// A tie within one stage is that stage's own affair and not listed.
std::vector<Tie> StageTies(const ModelGraph& graph, const ModelPartition& partition);

// Values of the model: tied parameters count once (LoweringOptions::norm_values).
int64_t NumParameterValues(const ModelGraph& graph);

// Whether the gradients of every output are added up as without stages, from the last consumer to
// the first: then training has the same bits. Always so for outputs of one or two consumers.
bool SumsInLayerOrder(const ModelGraph& graph, const ModelPartition& partition);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_MODEL_PARTITION_H_
