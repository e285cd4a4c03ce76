// Which layers make which stage.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> first, PartitionChain({1, 4, 4, 1}, 2));   // {0, 2}
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> same, ParseLayout("2,2", 4));              // {0, 2}
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> of_layer,
//                            ParseStages("0,2;1,3", 4));                         // {0, 1, 0, 1}
//
// A partition into ranges is the first layer of each stage, ascending from 0; any other is the
// stage of each layer (cost/model_partition.h checks it against the model). Stages are never empty.
#ifndef PIPELAB_PIPELINES_COST_CHAIN_PARTITION_H_
#define PIPELAB_PIPELINES_COST_CHAIN_PARTITION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pipelab {

// What is special about a stage that ends with a layer and is not the last.
struct StageEnd {
  double cost = 0;   // of what the stage has more, a head; not negative
  int earliest = 0;  // the first layer that it may begin with; behind this one: no stage ends here
};

// Minimises the largest stage's cost; exact (dynamic program over prefixes, mostly
// O(stages * layers * log(layers)); only chains made for it take O(stages * layers^2)).
// Of several best partitions it takes the one whose later stages begin first, the same on every
// machine. Costs are of any unit, finite and not negative. InvalidArgument when there are more
// stages than layers. `ends`: of each layer; empty: none is special. NotFound where they allow no
// partition.
absl::StatusOr<std::vector<int>> PartitionChain(absl::Span<const double> layer_costs,
                                                int num_stages,
                                                absl::Span<const StageEnd> ends = {});

// Minimises the variance of the stages' costs, as GPipe cuts a model (Huang et al. 2019, section
// 2.1); otherwise as PartitionChain. The largest stage may be larger than it must be:
// {8, 8, 13} has less variance than {11, 12, 6}.
absl::StatusOr<std::vector<int>> PartitionChainByVariance(absl::Span<const double> layer_costs,
                                                          int num_stages,
                                                          absl::Span<const StageEnd> ends = {});

// From the first layer of each stage to its number of layers: {0, 2} of 5 is {2, 3}.
std::vector<int> StageSizes(const std::vector<int>& first_layers, int num_layers);

// "3,2,2,3": the number of layers of each stage. InvalidArgument names the stage without layers, or
// the sum that is not the number of layers.
absl::StatusOr<std::vector<int>> ParseLayout(absl::string_view layout, int num_layers);

// The stage of each layer, from either form: numbers of layers ("3,2,2,3"), or the layers of each
// stage with ';' between stages and ranges with '-': "0-3;4,5,9;6-8". InvalidArgument names the
// layer that is in no stage or in two.
absl::StatusOr<std::vector<int>> ParseStages(absl::string_view layout, int num_layers);
// The layers of each stage, as ParseStages reads them; "" for none.
std::string StagesText(const std::vector<int>& stage_of_layer);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_CHAIN_PARTITION_H_
