// What the GraphPipe paper claims, beside what the study found: one line each, reached or missed,
// and why.
//
//   for (const std::string& line : Claims(results)) report.AddNote(line);
#ifndef PIPELAB_EXPERIMENTS_GRAPH_PLANS_CLAIMS_H_
#define PIPELAB_EXPERIMENTS_GRAPH_PLANS_CLAIMS_H_

#include <string>
#include <vector>

#include "experiments/graph_plans/case_study.h"
#include "experiments/graph_plans/comparison.h"

namespace pipelab {

struct StudyResults {
  std::vector<Comparison> nets;      // by net, devices ascending
  std::vector<Comparison> branches;  // CANDLE-Uno, by branches, devices ascending
  std::vector<Comparison> control;   // the plain Transformer
  std::vector<Comparison> case_nets;
  std::vector<Comparison> batches;  // by net, batches ascending, most devices
  CaseStudy case_study;
};

std::vector<std::string> Claims(const StudyResults& results);

// The largest gain, and its comparison; null where none has one.
const Comparison* LargestGain(const std::vector<Comparison>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_PLANS_CLAIMS_H_
