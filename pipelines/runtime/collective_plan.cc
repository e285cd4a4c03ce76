#include "pipelines/runtime/collective_plan.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "pipelines/runtime/place.h"

namespace pipelab {

absl::StatusOr<CollectivePlan> PlanCollective(const Program& program, int device,
                                              const HeldStages& held, const Instruction& i) {
  const auto error = [&](absl::string_view place, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("device ", device, ", ", place, ": ", what));
  };
  CollectivePlan plan;
  plan.gather = i.op != OpCode::kReduce;
  const size_t known = plan.gather ? program.gathers.size() : program.reductions.size();
  if (i.arg < 0 || i.arg >= static_cast<int64_t>(known)) {
    const char* what = plan.gather ? "gather" : "reduction";
    return error(what, absl::StrCat("there is no ", what, " ", i.arg));
  }
  if (!plan.gather) {
    plan.parameter = program.reductions[i.arg].parameter;
    plan.scatter = program.reductions[i.arg].scatter;
  }
  std::set<int> devices;
  for (const StageCopy& m :
       plan.gather ? program.gathers[i.arg].members : program.reductions[i.arg].members) {
    devices.insert(m.device);
    if (m.device != device) continue;
    StageModule* module = held.OfReplica(m.replica, m.stage).module;
    if (module == nullptr) return error(Place(program, i), "the device does not hold a member");
    plan.modules.push_back(module);
  }
  if (plan.modules.empty()) return error(Place(program, i), "the device holds no member");
  plan.devices.assign(devices.begin(), devices.end());
  return plan;
}

}  // namespace pipelab
