// What a max-load plan cannot part: operators of one colour, what must then share a device with
// them, and what costs nothing beside its only neighbour.
//
//   OperatorGroups units = PlacementUnits(problem);
//
// As dnn-partitioning does it (Tarnawski et al. 2020, throughput): the cuts are those of the
// forward part, and the backward operators of a colour go with its forward ones. A colour that has
// backward operators alone is placed by the mirror image of their edges. Colours that need one
// another are one unit. A unit that takes no time and has one neighbour joins it: nothing is lost
// by that where its bytes fit there.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLACEMENT_UNITS_H_
#define PIPELAB_PIPELINES_PLANNERS_PLACEMENT_UNITS_H_

#include <cstdint>

#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

enum class JoinIdle : uint8_t { kAll, kFree };
OperatorGroups PlacementUnits(const PlanProblem& problem, JoinIdle join = JoinIdle::kAll);

// Whether everything fits on one device.
bool LosesNothing(const PlanProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLACEMENT_UNITS_H_
