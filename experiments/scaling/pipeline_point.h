// One configuration of a pipeline on paper: a model cut into stages, a scheme, a cluster, and what
// the simulator says of a training step.
//
//   PipelineCase c;
//   c.model = &model;  c.cluster = &cluster;  c.type = NumberType::kBf16;
//   c.scheme = "gpipe";  c.sizes.devices = 8;  c.sizes.micro_batches = 32;  c.sizes.recompute =
//   true; PIPELAB_ASSIGN_OR_RETURN(PipelinePoint p, EvaluatePipeline(c)); p.samples_per_second();
//
// All times and bytes come from the model's graph and the cluster's specification; nothing else
// goes in.
#ifndef PIPELAB_EXPERIMENTS_SCALING_PIPELINE_POINT_H_
#define PIPELAB_EXPERIMENTS_SCALING_PIPELINE_POINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// What a cut into stages minimises. Stages are ranges of groups.
enum class PartitionRule : uint8_t {
  kFlopsVariance,  // the variance of the stages' flops: GPipe's own partitioner
  kTime,           // the longest stage's time on the machine: the optimal one for long pipelines
  kMemory,         // the largest stage's state and activations
};

struct PipelineCase {
  const GroupedModel* model = nullptr;
  const ClusterSpec* cluster = nullptr;
  NumberType type = NumberType::kFp32;
  std::string scheme = "gpipe";
  SchemeParams sizes;
  int64_t micro_batch_samples = 1;
  PartitionRule rule = PartitionRule::kFlopsVariance;
  // Tensors that the optimizer keeps of each parameter. One: 12 bytes a parameter with value and
  // gradient, as GPipe counts.
  int optimizer_tensors = 1;
};

struct PipelinePoint {
  std::vector<int> groups_of_stage;
  int64_t samples = 0;  // of a step
  Program program;
  CostTable costs;
  Trace trace;

  double samples_per_second() const;
  Bytes largest_device() const;  // state and activations, at their peaks
  Bytes activations() const;     // peaks of all devices together
  Bytes state() const;
  std::string Layout() const;  // "5,7,6,6"
};

// [group] What the rule adds up to stages.
absl::StatusOr<std::vector<double>> GroupCosts(const PipelineCase& c);

// InvalidArgument for sizes that the scheme or the model cannot serve; NotFound for what the device
// lacks.
absl::StatusOr<PipelinePoint> EvaluatePipeline(const PipelineCase& c);

// The same program with every stage taking the mean of the stages' times: what remains of its idle
// time is the bubble and the transfers, and what it is faster by is the imbalance.
absl::StatusOr<Trace> SimulateBalanced(const PipelinePoint& point);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_PIPELINE_POINT_H_
