// What `run` trains and how, as its flags say: a GPT under a schedule, or a plan's model.
//
//   PIPELAB_ASSIGN_OR_RETURN(const RunInput study, RunInputFromFlags(words));
#ifndef PIPELAB_EXPERIMENTS_RUN_RUN_INPUT_H_
#define PIPELAB_EXPERIMENTS_RUN_RUN_INPUT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "experiments/commands/command.h"
#include "kernels/compute_device.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/optimizer.h"
#include "models/zoo/local_heads.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/batch_norm.h"

namespace pipelab {

struct RunInput {
  std::string source, title;
  ModelGraph graph;
  Schedule schedule;
  std::vector<int> stage_of_layer;  // of a plan; empty: ranges of about as many flops
  std::vector<int> block_of_layer;  // TrainingOptions::block_of_layer
  RebuiltPart rebuilt;              // TrainingOptions::rebuilt
  bool whole_head = false;          // TrainingOptions::whole_head
  bool sequential = false;          // TrainingOptions::sequential
  int64_t micro_batch_size = 1;
  std::unique_ptr<BatchSource> data;
  int steps = 0;
  uint64_t seed = 0;
  OptimizerOptions optimizer;
  int tensor_parallel = 1;
  bool sequence_parallel = false;
  int context_parallel = 1;
  ContextExchange context_exchange = ContextExchange::kGather;
  int expert_parallel = 1;
  bool whole_experts = false;

  TensorParallel split() const {
    return {tensor_parallel, sequence_parallel, context_parallel,
            expert_parallel, whole_experts,     context_exchange};
  }

  LoweringOptions lowering;
  BatchNormCopies batch_norm = BatchNormCopies::kSynchronised;
  LocalHead local_heads = LocalHead::kLinear;
  ComputeDevices devices;
  absl::Duration wait_limit;
  std::string checkpoint, resume;  // files; empty: none
  std::string pretrained;          // the model whose published weights it starts from; empty: none
  int checkpoint_every = 0;        // steps; 0: at the end alone

  // What a checkpoint must have in common with the training that goes on from it.
  std::map<std::string, std::string> CheckpointSettings() const;
};

// InvalidArgument naming the flag; FailedPrecondition for what is wrong in a file.
absl::StatusOr<RunInput> RunInputFromFlags(const Words& words);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_RUN_RUN_INPUT_H_
