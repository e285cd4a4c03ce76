// The net of GraphPipe's case study (Jeon et al., ASPLOS 2025): two branches of (attention, linear,
// linear) four times, and one join; on 8 devices a chain of 8 stages or a graph of depth 4.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildCaseStudy(CaseStudyConfig()));
//
// Layers, branch after branch: an embedding of the same tokens, then attention, a dense layer to
// feed_forward with a GELU and one back for each repeat; then the join: the branches' sum and the
// head. The widths are not published: those of the paper's MMT.
#ifndef PIPELAB_MODELS_ZOO_CASE_STUDY_H_
#define PIPELAB_MODELS_ZOO_CASE_STUDY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

struct CaseStudyConfig {
  int64_t branches = 2, repeats = 4;
  int64_t hidden = 1024, heads = 16;
  int64_t tokens = 256;  // of a sample (sequence length)
  int64_t feed_forward = 4096;
  int64_t vocabulary = 32000;
};

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<ModelGraph> BuildCaseStudy(const CaseStudyConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_CASE_STUDY_H_
