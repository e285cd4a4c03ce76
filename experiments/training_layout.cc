#include "experiments/training_layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/graph/token_slice.h"
#include "pipelines/cost/chain_partition.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<ModelPartition> PartitionOfLayout(const ModelGraph& graph,
                                                 absl::string_view layout) {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<int> stage_of_layer,
                           ParseStages(layout, static_cast<int>(graph.layers.size())));
  absl::StatusOr<ModelPartition> partition = MakePartition(graph, std::move(stage_of_layer));
  if (partition.ok()) return partition;
  return absl::InvalidArgumentError(
      absl::StrCat("--layout=", layout, ": ", partition.status().message()));
}

}  // namespace

absl::StatusOr<ModelPartition> GivenPartition(const ModelGraph& graph,
                                              const std::vector<int>& stage_of_layer,
                                              absl::string_view layout) {
  if (!stage_of_layer.empty()) return MakePartition(graph, stage_of_layer);
  return PartitionOfLayout(graph, layout);
}

absl::StatusOr<std::vector<int64_t>> ChooseSlices(const Schedule& schedule, int64_t tokens,
                                                  const std::vector<int64_t>& lengths) {
  const int slices = schedule.num_slices;
  if (lengths.empty() && slices == 1) return lengths;
  if (lengths.empty() && slices <= tokens) return EqualTokenSlices(tokens, slices);
  if (lengths.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--slices=", slices, ": more token slices than a sample's ", tokens, " tokens"));
  }
  if (static_cast<int>(lengths.size()) != slices) {
    return absl::InvalidArgumentError(absl::StrCat("token slices of ", absl::StrJoin(lengths, ","),
                                                   " tokens, but the schedule has ", slices));
  }
  return lengths;
}

absl::StatusOr<ModelPartition> ChooseBalancedPartition(const ModelGraph& graph, int num_stages,
                                                       absl::Span<const double> layer_costs,
                                                       absl::string_view layout) {
  if (layout.empty()) {
    const absl::StatusOr<std::vector<int>> first_layers = PartitionChain(layer_costs, num_stages);
    if (first_layers.ok()) return MakeRangePartition(graph, *first_layers);
    return absl::InvalidArgumentError(
        absl::StrCat("--devices and --chunks make ", first_layers.status().message()));
  }
  PIPELAB_ASSIGN_OR_RETURN(ModelPartition partition, PartitionOfLayout(graph, layout));
  if (partition.num_stages() != num_stages) {
    return absl::InvalidArgumentError(absl::StrCat("--layout=", layout, ": ",
                                                   partition.num_stages(),
                                                   " stages, but the scheme has ", num_stages));
  }
  return partition;
}

absl::StatusOr<ModelPartition> ChoosePartition(const ModelGraph& graph, int num_stages,
                                               int64_t micro_batch_samples,
                                               absl::string_view layout) {
  std::vector<double> flops;
  for (const LayerSpec& layer : graph.layers) {
    const LayerCosts c = layer.costs(micro_batch_samples);
    flops.push_back((c.forward + c.backward_input + c.backward_weight).value());
  }
  absl::StatusOr<ModelPartition> partition =
      ChooseBalancedPartition(graph, num_stages, flops, layout);
  if (partition.ok() || !layout.empty()) return partition;
  return absl::InvalidArgumentError(absl::StrCat(partition.status().message(), "; see --layers"));
}

}  // namespace pipelab
