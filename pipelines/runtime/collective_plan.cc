#include "pipelines/runtime/collective_plan.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "pipelines/runtime/place.h"

namespace pipelab {

absl::StatusOr<ReducePlan> PlanReduce(const Program& program, int device, const HeldStages& held,
                                      const Instruction& i) {
  const auto error = [&](absl::string_view place, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("device ", device, ", ", place, ": ", what));
  };
  if (i.arg < 0 || i.arg >= static_cast<int>(program.reductions.size())) {
    return error("reduction", absl::StrCat("there is no reduction ", i.arg));
  }
  const Reduction& reduction = program.reductions[i.arg];
  ReducePlan reduce;
  reduce.parameter = reduction.parameter;
  std::set<int> devices;
  for (const ReductionMember& m : reduction.members) {
    devices.insert(m.device);
    if (m.device != device) continue;
    StageModule* module = held.OfReplica(m.replica, m.stage).module;
    if (module == nullptr) return error(Place(program, i), "the device does not hold a member");
    reduce.modules.push_back(module);
  }
  if (reduce.modules.empty()) return error(Place(program, i), "the device holds no member");
  reduce.devices.assign(devices.begin(), devices.end());
  return reduce;
}

}  // namespace pipelab
