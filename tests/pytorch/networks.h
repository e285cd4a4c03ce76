// The networks that are compared with PyTorch, one of each kind in the zoo that trains, with Adam,
// and some with another optimizer ("gpt_sgd"): small ones for the table of losses (losses.csv),
// larger ones for the speed of a step (docs/pytorch.md).
//
//   for (const ComparedNetwork& n : ComparedNetworks(Sizes::kTable)) {
//     const RandomData data(TestFieldsOf(n.graph));      // models/layers/test_layers.h
//     ... SerialTrainer or PipelineTraining, with n's micro-batches and optimizer
//   }
//
// Initial weights (seed kComparedSeed) and data come from counters, so that whoever builds a
// network here has what export_networks wrote for tools/pytorch. Without dropout: its masks are our
// own.
#ifndef PIPELAB_TESTS_PYTORCH_NETWORKS_H_
#define PIPELAB_TESTS_PYTORCH_NETWORKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"
#include "models/layers/optimizer.h"

namespace pipelab {

inline constexpr uint64_t kComparedSeed = 1;

struct ComparedNetwork {
  std::string name;  // "gpt_tied"
  ModelGraph graph;
  int64_t micro_batch_size = 1;
  int num_micro_batches = 1;
  OptimizerOptions optimizer;
  // What shapes of weights do not say: "heads", "layers", ...
  std::map<std::string, int64_t> settings;
};

enum class Sizes : uint8_t { kTable, kSpeed };

std::vector<ComparedNetwork> ComparedNetworks(Sizes sizes);

// By the flags --sizes ("table" or "speed") and --network (empty: all). InvalidArgument names them.
absl::StatusOr<std::vector<ComparedNetwork>> ChosenNetworks(absl::string_view sizes,
                                                            absl::string_view network);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PYTORCH_NETWORKS_H_
