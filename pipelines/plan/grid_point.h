// One configuration of a P x T x D grid of devices: pipeline, tensor and data parallelism,
// schedule, micro-batches, sharding; and what the simulator says of a training step.
//
//   GridConfig c;
//   c.scheme = "breadth_first";  c.pipeline = 8;  c.tensor = 8;  c.loops = 8;  c.micro_batches = 8;
//   GridModel model = ...;                       // graph, groups, cluster, number type
//   PIPELAB_ASSIGN_OR_RETURN(GridPoint p, EvaluateGrid(model, c));
//   p.step_time;  p.tflops_a_device;  p.largest_device;
//
// Ranks are (p D + d) T + t: tensor groups are innermost, then data, then the pipeline
// (cluster/grid_links.h says what each kind of transfer gets of the cluster). Ranks that differ in
// d or t alone do the same, so the program has one device for all t, and two for all d
// (Program::devices_a_member): the gathers, reductions and shards are those of all of them.
//
// grid_network.h has the links.
//
// Every time is the simulator's, of the lowered program; none is a closed form.
#ifndef PIPELAB_PIPELINES_PLAN_GRID_POINT_H_
#define PIPELAB_PIPELINES_PLAN_GRID_POINT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/plan/grid_cache.h"
#include "pipelines/plan/grid_config.h"  // IWYU pragma: export

namespace pipelab {

struct GridPoint {
  GridConfig config;
  Program program;
  CostTable costs;
  Trace trace;
  Nanoseconds step_time;
  Bytes largest_device;        // state and activations, the most at a time
  double tflops_a_device = 0;  // of the model's products, recomputation not counted

  double samples_per_second() const {
    return static_cast<double>(config.batch()) * 1e9 / static_cast<double>(step_time.value());
  }
};

// InvalidArgument naming the option and what would be right: more devices than the cluster has,
// sizes that the scheme refuses, more stages than groups. NotFound for what the device lacks.
absl::StatusOr<GridPoint> EvaluateGrid(const GridModel& model, const GridConfig& config);
// The same; many configurations of one model share the cache.
absl::StatusOr<GridPoint> EvaluateGrid(GridCache* cache, const GridConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLAN_GRID_POINT_H_
