// A P x T x D grid of devices for a model on a cluster: what a search chooses, and what it is
// given.
//
//   GridConfig c;
//   c.scheme = "breadth_first";  c.pipeline = 8;  c.tensor = 8;  c.loops = 8;  c.micro_batches = 8;
//   c.ToString()     // "breadth_first:P=8,T=8,D=1,V=8,b=1,M=8"
//
// Ranks are (p D + d) T + t: tensor groups are innermost, then data, then the pipeline.
#ifndef PIPELAB_PIPELINES_PLAN_GRID_CONFIG_H_
#define PIPELAB_PIPELINES_PLAN_GRID_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/tensor_parallel.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/ir/sharding.h"

namespace pipelab {

struct GridConfig {
  std::string scheme = "1f1b";
  int pipeline = 1, tensor = 1, data = 1;
  int loops = 0;                    // stages of a pipeline device; 0: the scheme's own
  int64_t micro_batch_samples = 1;  // of one pipeline
  int micro_batches = 1;            // of one pipeline, in a step
  bool recompute = false;
  bool sequence_parallel = false;  // within tensor-parallel groups
  Sharding sharding = Sharding::kReplicated;
  Residency residency = Residency::kRun;
  // Messages, and reductions and gathers, beside compute. Without the first a device either
  // computes or communicates; without the second reductions wait for the last backward.
  bool overlap_pipeline = true, overlap_data = true;
  // A device of a tensor-parallel group sends all rows of its messages, not a T-th of them.
  bool whole_messages = false;

  int64_t batch() const { return micro_batch_samples * micro_batches * data; }
  int64_t devices() const { return int64_t{pipeline} * tensor * data; }
  TensorParallel split() const { return {tensor, sequence_parallel}; }
  // "breadth_first:P=8,T=8,D=1,V=8,b=1,M=8,sharding=fully,recompute".
  std::string ToString() const;
};

// Reads what ToString writes; P, T, D, V, b and M may be left out where they are 1 (V: 0). Also
// "gathers_each" (Residency::kMicroBatch), "sequence", "no_pipeline_overlap", "no_data_overlap" and
// "whole_messages".
// InvalidArgument naming option, word and what would be right.
absl::StatusOr<GridConfig> ParseGridConfig(absl::string_view option, absl::string_view text);

// What all configurations share.
struct GridModel {
  const GroupedModel* model = nullptr;  // cut between its groups
  const ClusterSpec* cluster = nullptr;
  NumberType type = NumberType::kFp16;
  int optimizer_tensors = 2;  // that the optimizer keeps of each parameter
  // False: the program has a device for every d. The same result, D / 2 times as slow: for tests.
  bool fold_data = true;
};

// The narrowest numbers that the device computes with: what large models are trained with.
NumberType NarrowestType(const DeviceSpec& device);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLAN_GRID_CONFIG_H_
