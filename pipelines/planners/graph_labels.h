// What graph_exact.h keeps of partial plans: labels of upsets, those that no other beats.
//
//   GraphLabelStore store(/*most_labels=*/16);
//   std::vector<GraphLabel*> of_upset;
//   if (store.Add(label, &of_upset)) ...          // nothing there is as good
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_LABELS_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_LABELS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "pipelines/planners/operator_sets.h"

namespace pipelab {

struct GraphLabel {
  double value = 0;    // the longest stage, or what is left of the batch at its pace
  double longest = 0;  // path; 0 unless it is of the batch
  int64_t devices = 0;
  // [operator that feeds the upset, ascending]
  std::vector<int64_t> samples;
  std::vector<double> paths;
  const GraphLabel* next = nullptr;  // and the stage in front of it
  uint64_t stage = 0;
  StageShape shape;
  int64_t in_flight = 0;
  bool merged = false;  // of no plan: the least of several labels' figures

  double Value() const { return value + longest; }
};

class GraphLabelStore {
 public:
  // At most so many labels are kept for an upset and a number of devices: others become one with
  // the least figures.
  explicit GraphLabelStore(size_t most_labels) : most_same_(most_labels) {}

  // To the labels of its upset. False: one of them is not worse.
  bool Add(const GraphLabel& label, std::vector<GraphLabel*>* others);
  size_t size() const { return labels_.size(); }

 private:
  bool Merge(const GraphLabel& label, const std::vector<GraphLabel*>& others) const;

  const size_t most_same_;
  std::deque<GraphLabel> labels_;
  std::vector<GraphLabel*> unused_;  // of these
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_LABELS_H_
