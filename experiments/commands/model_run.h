// A schedule of a model on a cluster, on paper: `simulate --model`.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, FindModel("--model", "mine.json"));
//   ModelRunOptions options;
//   PIPELAB_ASSIGN_OR_RETURN(options.cluster, LoadCluster("--cluster", "dgx-a100"));
//   PIPELAB_ASSIGN_OR_RETURN(PaperRun run, RunModelOnPaper(graph, schedule, options));
//   FiguresOf(run).makespan;                              // milliseconds
//
// Stages are ranges of layers whose longest takes the least time, or those of a layout. Messages
// and reductions take the cluster's links; an optimizer step is Adam's.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_MODEL_RUN_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_MODEL_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/commands/paper_run.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

struct ModelRunOptions {
  // None: for models all of whose times were measured. Then messages and steps take no time.
  absl::optional<ClusterSpec> cluster;
  absl::optional<NumberType> type;  // none: fp32 where the device has it, else its first
  int64_t samples = 1;              // of a micro-batch
  std::string layout;               // training_layout.h
  bool overlap = true;              // CostTable::overlap
};

// The type to compute with; fp32 without a cluster.
NumberType TypeOf(const ModelRunOptions& options);

// InvalidArgument, "--cluster: ...", where no cluster is given and a layer was not measured, and
// "--samples=..." for none, or more than a step's figures can count in 63 bits of nanoseconds and
// of bytes.
absl::Status CheckSamples(const ModelGraph& graph, const ModelRunOptions& options,
                          int64_t micro_batches);

// InvalidArgument naming the option for sizes that model, schedule and cluster cannot serve.
absl::StatusOr<PaperRun> RunModelOnPaper(const ModelGraph& graph, Schedule schedule,
                                         const ModelRunOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_MODEL_RUN_H_
