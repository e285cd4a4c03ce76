// What a swarm trains, as its coordinator sends it to all who join: a GPT in a chain of stages.
//
//   swarm::Job job = MakeJob(config, optimizer);        // then stages, steps, micro-batches, ...
//   PIPELAB_ASSIGN_OR_RETURN(const SwarmLayout layout, LayoutOf(job));
//   layout.boundary[0];                                 // numbers of a micro-batch's output
//   PIPELAB_RETURN_IF_ERROR(CheckValues(values, layout.boundary[0], job.eight_bits()));
//
// Stages are ranges of layers, balanced by flops of forwards. Messages have float32 values as they
// lie in memory, or blocks of int8 (kernels/messages/int8_blocks.h).
//
// InvalidArgument: sizes that the model or this file does not take; another network than the
// coordinator's; values of another size.
#ifndef PIPELAB_PIPELINES_SWARM_JOB_H_
#define PIPELAB_PIPELINES_SWARM_JOB_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/checkpoint/training_state.h"
#include "models/graph/layer_spec.h"
#include "models/layers/optimizer.h"
#include "models/zoo/gpt.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/swarm/swarm.pb.h"
#include "pipelines/swarm/updates.h"

namespace pipelab {

// What a backward costs, which runs its forward again: forwards, as SWARM's authors count.
inline constexpr double kBackwardWork = 2.5;
// A micro-batch at a stage, forwards: the last one's backwards are its forwards, too.
inline constexpr double StageWork(int stage, int stages) {
  return stage + 1 == stages ? kBackwardWork : 1 + kBackwardWork;
}

struct SwarmLayout {
  ModelGraph graph;
  ModelPartition partition;
  std::vector<int64_t> boundary;  // [stage] numbers of what it gives to the next; the last's is 0
};

// A job that trains a GPT with Adam, with the sizes that both functions below read back.
swarm::Job MakeJob(const GptConfig& model, const OptimizerOptions& optimizer);
GptConfig ModelOf(const swarm::Job& job);
OptimizerOptions OptimizerOf(const swarm::Job& job);
absl::StatusOr<SwarmLayout> LayoutOf(const swarm::Job& job);
inline absl::Duration WaitLimit(const swarm::Job& job) { return absl::Milliseconds(job.wait_ms()); }

// The values, by option, that a training must share with its checkpoint and with all who take part:
// {"--seed", "3"}.
using SwarmSettings = std::map<std::string, std::string>;
// All of a job that losses depend on; neither stages nor steps, which may change.
SwarmSettings SettingsOf(const swarm::Job& job, const SwarmLayout& layout);
// The name and a fingerprint of the graph, its loss included, as this build makes it.
std::string NetworkOf(const ModelGraph& graph);
// Says the first value of `given` that differs: "--seed is "3"; it must be "4", as in WHERE". It is
// empty when nothing does.
std::string FirstDifference(const SwarmSettings& given, const SwarmSettings& right,
                            absl::string_view where);

inline UpdateRule UpdateRuleOf(const swarm::Job& job) { return {job.delay(), job.fresh_every()}; }

// What a checkpoint is read into and written from; it refers to the layout's graph.
StateTarget TargetOf(const swarm::Job& job, const SwarmLayout& layout);

// These check, write and read the numbers of messages.
absl::Status CheckValues(const swarm::Values& values, int64_t numbers, bool eight_bits);
absl::Status ToValues(absl::Span<const float> numbers, bool eight_bits, swarm::Values* values);
absl::Status FromValues(const swarm::Values& values, bool eight_bits, absl::Span<float> numbers);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_JOB_H_
