// The networks of the GraphPipe study (Jeon et al., ASPLOS 2025), in the layers that planners cut
// between, and the batch that each device adds.
//
//   for (const StudyNet& net : StudyNets()) net.samples_per_device;
//   StudyNet wider = CandleUnoOf(/*branches=*/16);
#ifndef PIPELAB_EXPERIMENTS_GRAPH_PLANS_STUDY_NETS_H_
#define PIPELAB_EXPERIMENTS_GRAPH_PLANS_STUDY_NETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/zoo/layer_groups.h"

namespace pipelab {

struct StudyNet {
  std::string name;
  GroupedModel model;
  // Samples of a step. The paper's batches grow with the devices; how large they are is assumed.
  int64_t samples_per_device = 1;
};

// MMT, DLRM and CANDLE-Uno.
std::vector<StudyNet> StudyNets();
// CANDLE-Uno with as many branches.
StudyNet CandleUnoOf(int branches);
// Two branches of (attention, linear, linear) four times, and one join.
StudyNet CaseStudyNet();
// A plain Transformer: as many layers, and as wide, as the MMT's branches together.
StudyNet SequentialNet();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_PLANS_STUDY_NETS_H_
