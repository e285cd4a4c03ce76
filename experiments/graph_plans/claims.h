// What the GraphPipe paper claims, beside what the study found, met or missed, and why.
//
//   for (Claim& claim : Claims(results)) report.AddClaim(std::move(claim));
#ifndef PIPELAB_EXPERIMENTS_GRAPH_PLANS_CLAIMS_H_
#define PIPELAB_EXPERIMENTS_GRAPH_PLANS_CLAIMS_H_

#include <cstdint>
#include <vector>

#include "experiments/graph_plans/case_study.h"
#include "experiments/graph_plans/comparison.h"
#include "experiments/report/claim.h"

namespace pipelab {

// The devices of the paper's case study.
inline constexpr int64_t kCaseStudyDevices = 8;

struct StudyResults {
  std::vector<Comparison> nets;      // by net, devices ascending
  std::vector<Comparison> branches;  // CANDLE-Uno, by branches, devices ascending
  std::vector<Comparison> control;   // the plain Transformer
  std::vector<Comparison> case_nets;
  std::vector<Comparison> batches;       // by net, batches ascending, most devices
  std::vector<Comparison> case_batches;  // the case study's devices, batches ascending
  CaseStudy case_study;
};

std::vector<Claim> Claims(const StudyResults& results);

// The largest gain, and its comparison; null where none has one.
const Comparison* LargestGain(const std::vector<Comparison>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_PLANS_CLAIMS_H_
