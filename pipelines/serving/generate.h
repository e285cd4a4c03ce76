// Decodes the requests of a plan over a pipeline of devices, one thread each, with a model's
// weights: the program that the simulator prices, executed.
//
//   GenerateOptions options;
//   options.plan = plan;                        // pipelines/serving/pass_plan.h
//   options.prompts = {{17, 4, 9}, {8}};        // ids, a prompt each request
//   options.set_weights = [&](StageParameters* stage) { return Read(stage); };
//   PIPELAB_ASSIGN_OR_RETURN(Generated made, Generate(graph, options));
//   made.tokens[0]                              // what follows {17, 4, 9}
//
// Tokens do not depend on the number of devices, groups or chunks, but for logits that differ by
// rounding: the same products of more or fewer rows may sum in another order.
#ifndef PIPELAB_PIPELINES_SERVING_GENERATE_H_
#define PIPELAB_PIPELINES_SERVING_GENERATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/compute_device.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/stage_parameters.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/units.h"

namespace pipelab {

struct GenerateOptions {
  PassPlan plan;
  std::vector<std::vector<int32_t>> prompts;  // [request] ids, of the plan's lengths
  // Fills the values of a stage's parameters, by name.
  std::function<absl::Status(StageParameters* stage)> set_weights;
  // One stage for each device of the plan; none: ranges of about equal flops a token.
  ModelPartition partition;
  ComputeDevices devices;  // null: CPUs
  // 0: the likeliest token. Else drawn from softmax(logits / temperature), by seed, request and
  // position.
  double temperature = 0;
  uint64_t seed = 1;
};

struct Generated {
  std::vector<std::vector<int32_t>> tokens;  // [request]
  Trace trace;
  std::vector<Bytes> caches;  // [device] that the stage's caches take
};

// InvalidArgument names what does not fit: a prompt, a layer without a cache, a token that the
// model does not know, --devices more than the model has layers.
absl::StatusOr<Generated> Generate(const ModelGraph& graph, const GenerateOptions& options);

// The token that GenerateOptions chooses.
int32_t ChooseToken(absl::Span<const float> logits, double temperature, uint64_t seed, int request,
                    int64_t position);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_GENERATE_H_
