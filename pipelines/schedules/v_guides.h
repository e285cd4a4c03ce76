// Guides (guided_order.h) for two stages a device in a V. Private to v_schedules.
#ifndef PIPELAB_PIPELINES_SCHEDULES_V_GUIDES_H_
#define PIPELAB_PIPELINES_SCHEDULES_V_GUIDES_H_

#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// Orders of F and I of repeated building blocks (v_schedules.cc), in different memory.
std::vector<Schedule> VGuides(const SchemeParams& params);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_V_GUIDES_H_
