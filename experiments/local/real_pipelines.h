// Two pipelines that need no flush, run here on two devices and on one: stages that learn locally
// (PPLL) and a stream with late gradients (PARTIME).
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<RealPipeline> real, RunRealPipelines(/*runs=*/15));
//   report.AddTable(RealPipelineTable(real));
//
// On one device local learning runs the same program's actions one after another, and the stream is
// online training. Both are the same runtime and the same kernels.
#ifndef PIPELAB_EXPERIMENTS_LOCAL_REAL_PIPELINES_H_
#define PIPELAB_EXPERIMENTS_LOCAL_REAL_PIPELINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct RealPipeline {
  std::string scheme;
  std::vector<double> one_ms, two_ms;  // [run] of kRealSamples micro-batches, in turn
  bool same_losses = false;            // of both; of late gradients they differ
  std::vector<double> latency_ms;      // [run] on two devices: of the median sample
  double core_share = 0;               // processor time of the two devices, over their wall time
  int cores = 0;

  double speedup() const;  // median over median
  double ticks() const;    // latency over the time that two devices take for a micro-batch
};

// `hidden`: the GPT's width, smaller where only bits count.
absl::StatusOr<std::vector<RealPipeline>> RunRealPipelines(int runs, int64_t hidden = 128);
Table RealPipelineTable(const std::vector<RealPipeline>& real);
std::vector<Claim> RealPipelineClaims(const std::vector<RealPipeline>& real);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_LOCAL_REAL_PIPELINES_H_
