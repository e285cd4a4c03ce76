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
#include "pipelines/ir/schedule.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

struct RunInput {
  std::string source, title;
  ModelGraph graph;
  StepConfig config;  // as TrainingOptions has it
  // It is trained under this, or under one of the same sizes: passes' times may order it otherwise.
  Schedule schedule;
  bool own = false;         // TrainingOptions::schedule: the configuration does not say it
  bool sequential = false;  // TrainingOptions::sequential
  std::unique_ptr<BatchSource> data;
  int steps = 0;
  uint64_t seed = 0;
  OptimizerOptions optimizer;
  ComputeDevices devices;
  absl::Duration wait_limit;
  std::string checkpoint, resume;  // files; empty: none
  std::string pretrained;          // the model whose published weights it starts from; empty: none
  int checkpoint_every = 0;        // steps; 0: at the end alone

  // Samples of a micro-batch, over all copies.
  int64_t samples() const { return config.micro_batch_size * config.data; }

  // What a checkpoint must have in common with the training that goes on from it.
  std::map<std::string, std::string> CheckpointSettings() const;
};

// InvalidArgument naming the flag; FailedPrecondition for what is wrong in a file.
absl::StatusOr<RunInput> RunInputFromFlags(const Words& words);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_RUN_RUN_INPUT_H_
