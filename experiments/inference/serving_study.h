// Decoding on paper: device use, latencies and policies of pipelines that serve, simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ServingStudy study, SimulateServing(size));
//   for (Table& table : ServingTables(study)) report.AddTable(std::move(table));
#ifndef PIPELAB_EXPERIMENTS_INFERENCE_SERVING_STUDY_H_
#define PIPELAB_EXPERIMENTS_INFERENCE_SERVING_STUDY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/serving/pass_plan.h"
#include "pipelines/serving/serving_figures.h"
#include "tools/base/units.h"

namespace pipelab {

struct ServingSize {
  std::string model = "llama-3-70b", cluster = "dgx-h100";
  int64_t prompt = 256, output = 128;  // tokens of a request, or their mean
  int requests = 256;
  std::vector<Request> given = {};  // that arrive, in the place of random ones
  uint64_t seed = 1;
};

struct ServingRow {
  std::string what;  // "continuous", "chunks of 256"
  int devices = 1, groups = 1, slots = 1;
  double load = 0;  // as a share of the most; 0: as they are given, or all at the start
  int64_t int4_group = 0;
  ServingFigures figures;
  Bytes caches, weights;  // of the fullest stage
};

struct ServingStudy {
  ServingSize size;
  std::vector<ServingRow> use;       // devices x groups
  std::vector<ServingRow> batching;  // static, continuous
  std::vector<ServingRow> prompts;   // whole, in chunks, under arrivals
  std::vector<ServingRow> weights;   // bfloat16, int4, by slots
};

// InvalidArgument or NotFound of a model or a cluster that is not there.
absl::StatusOr<ServingStudy> SimulateServing(const ServingSize& size);
std::vector<Table> ServingTables(const ServingStudy& study);
std::vector<Claim> ServingClaims(const ServingStudy& study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_INFERENCE_SERVING_STUDY_H_
