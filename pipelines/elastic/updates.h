// When micro-batches of the next optimizer step may begin: delayed parameter updates (Ren et al.,
// ZeRO-Offload, arXiv 2101.06840), as SWARM uses them (arXiv 2301.11913).
//
//   UpdateRule rule{/*delay=*/1};
//   if (rule.MayBegin(step, /*averaged=*/3)) { ... }    // steps 0 to 4 may
//
// A step's gradients are averaged inside each stage when all its micro-batches are done; then all
// peers step. With delay 0 the next step's micro-batches wait for that. With delay 1 they begin
// with weights that are one step old, while the averages are on their way.
#ifndef PIPELAB_PIPELINES_ELASTIC_UPDATES_H_
#define PIPELAB_PIPELINES_ELASTIC_UPDATES_H_

#include <cstdint>

namespace pipelab {

struct UpdateRule {
  int64_t delay = 0;  // steps, at least 0

  // `averaged`: how many steps' gradients have been averaged.
  constexpr bool MayBegin(int64_t step, int64_t averaged) const { return step <= averaged + delay; }
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_ELASTIC_UPDATES_H_
