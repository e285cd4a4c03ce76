#include "pipelines/runtime/collective_plan.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/runtime/describe.h"

namespace pipelab {

namespace {

// The same of the members' experts. Where no other device has them, nothing is divided.
void AddExperts(const Program& program, int device, CollectivePlan* plan) {
  if (!plan->parameter.empty() || plan->modules[0]->experts() == nullptr) return;
  CollectivePlan experts;
  experts.kind = plan->kind;
  experts.devices = ExpertDevices(
      program, plan->devices, device,
      plan->kind == CollectiveKind::kReduce && SumsEqualParts(program, /*scatter=*/false));
  if (experts.devices.size() == 1) {
    if (plan->modules.size() == 1 || plan->kind == CollectiveKind::kGather) return;
    experts.kind = CollectiveKind::kReduce;
  }
  for (StageModule* module : plan->modules) experts.parameters.push_back(module->experts());
  plan->experts.push_back(std::move(experts));
}

}  // namespace

absl::StatusOr<CollectivePlan> PlanCollective(const Program& program, int device,
                                              const HeldStages& held, const Instruction& i) {
  const auto error = [&](absl::string_view place, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("device ", device, ", ", place, ": ", what));
  };
  CollectivePlan plan;
  const std::vector<StageCopy>* members = nullptr;
  const size_t arg = static_cast<size_t>(i.arg);  // a negative one is beyond any size
  if (i.op == OpCode::kNorm) {
    plan.kind = CollectiveKind::kNorm;
    if (program.norm.has_value()) members = &program.norm->members;
  } else if (i.op == OpCode::kReduce) {
    if (arg < program.reductions.size()) {
      const Reduction& reduction = program.reductions[arg];
      plan.kind = reduction.scatter ? CollectiveKind::kReduceScatter : CollectiveKind::kReduce;
      plan.parameter = reduction.parameter;
      members = &reduction.members;
    }
  } else {
    plan.kind = CollectiveKind::kGather;
    if (arg < program.gathers.size()) members = &program.gathers[arg].members;
  }
  if (members == nullptr) {
    const char* what = i.op == OpCode::kReduce ? "reduction"
                       : i.op == OpCode::kNorm ? "norm"
                                               : "gather";
    return error(what, absl::StrCat("there is no ", what, " ", i.arg));
  }
  std::set<int> devices;
  for (const StageCopy& m : *members) {
    devices.insert(m.device);
    if (m.device != device) continue;
    StageModule* module = held.OfReplica(m.replica, m.stage).module;
    if (module == nullptr) return error(Describe(program, i), "the device does not hold a member");
    plan.modules.push_back(module);
    if (i.op == OpCode::kNorm) plan.shares.push_back(NormShareOf(program, m));
  }
  if (plan.modules.empty()) return error(Describe(program, i), "the device holds no member");
  plan.devices.assign(devices.begin(), devices.end());
  if (i.op == OpCode::kNorm) return plan;
  plan.parameters.assign(plan.modules.begin(), plan.modules.end());
  AddExperts(program, device, &plan);
  return plan;
}

}  // namespace pipelab
