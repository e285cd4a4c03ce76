// What a mixture of experts takes on one device: of any share of the experts and any load.
//
//   ExpertWork work(rows, sizes, split);      // of an even load
//   work.came = 120;                          // of this one
//   LayerCosts costs = ExpertCosts(work, sizes, width);
//
// Private to gpt_experts_spec.cc. The order of allocations is in models/layers/gpt_experts.cc.
#ifndef PIPELAB_MODELS_SPECS_EXPERT_COSTS_H_
#define PIPELAB_MODELS_SPECS_EXPERT_COSTS_H_

#include <cstdint>

#include "models/graph/layer_spec.h"

namespace pipelab {

struct ExpertSizes {
  int64_t c, inner, experts, shared, chosen;  // shared: their inner columns
  int64_t statistics;                         // what the norm keeps of a row
  bool dropout, biases;
};

// What one device does, of an even load. Split rows as in gpt_mlp_spec.cc; with whole experts a
// device of a group routes its own.
struct ExpertWork {
  ExpertWork(const SplitRows& rows, const ExpertSizes& s, TensorParallel split)
      : all(rows.all),
        own(rows.own),
        routes_own(split.whole_experts && rows.scattered()),
        m(routes_own ? rows.own : rows.all),
        routed(m * s.chosen),
        routed_f(s.inner / split.expert_degree()),
        shared_f(s.shared / split.degree),
        experts(s.experts / split.experts),
        away(split.experts > 1),
        came(routed) {}

  int64_t all, own;            // rows of a group and of the device
  bool routes_own;             // and not those of the group
  int64_t m;                   // that it routes
  int64_t routed;              // rows that it sends to experts
  int64_t routed_f, shared_f;  // inner columns
  int64_t experts;             // routed ones that the device has
  bool away;                   // others have the rest
  int64_t came;                // rows that its experts get
};

LayerCosts ExpertCosts(const ExpertWork& work, const ExpertSizes& sizes, NumberWidth width);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_EXPERT_COSTS_H_
