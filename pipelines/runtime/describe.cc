#include "pipelines/runtime/describe.h"

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

std::string ReductionPlace(const Program& program, const Instruction& instruction) {
  const Reduction& reduction = program.reductions[instruction.arg];
  if (!reduction.parameter.empty()) {
    return absl::StrCat("gradient reduction of ", reduction.parameter);
  }
  return absl::StrCat("gradient reduction of stage ", instruction.action.stage);
}

// Or what a hop moves.
std::string ActionOf(const Program& program, const Instruction& i) {
  const bool message = i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait;
  if (message && i.arg >= 0 && i.arg < static_cast<int64_t>(program.messages.size()) &&
      program.messages[i.arg].is_hop()) {
    return absl::StrCat(program.messages[i.arg].gradient ? "gradients" : "weights", " of stage ",
                        i.action.stage);
  }
  return ToString(i.action);
}

}  // namespace

std::string Describe(const Program& program, const Instruction& instruction) {
  const auto valid = [&](size_t size) {
    return instruction.arg >= 0 && instruction.arg < static_cast<int64_t>(size);
  };
  const std::string action = ActionOf(program, instruction);
  switch (instruction.op) {
    case OpCode::kCompute:
      return action;
    case OpCode::kStep:
      return absl::StrCat("optimizer step of stage ", instruction.action.stage);
    case OpCode::kReduce:
    case OpCode::kReduceWait:
      if (!valid(program.reductions.size())) break;
      return ReductionPlace(program, instruction);
    case OpCode::kGather:
    case OpCode::kGatherWait:
      return absl::StrCat("gather of stage ", instruction.action.stage);
    case OpCode::kNorm:
    case OpCode::kNormWait:
      return "global norm of the gradients";
    case OpCode::kRelease:
      return absl::StrCat("release of stage ", instruction.action.stage);
    case OpCode::kOffload:
    case OpCode::kReload:
    case OpCode::kHostWait:
      return absl::StrCat("copy ", action);
    case OpCode::kFill:
      return absl::StrCat("fill ", instruction.arg);
    case OpCode::kSynchronise:
      return absl::StrCat("end of call ", instruction.arg);
    case OpCode::kSend:
      if (!valid(program.messages.size())) break;
      return absl::StrCat(action, " to device ", program.messages[instruction.arg].to_device);
    case OpCode::kReceive:
    case OpCode::kWait:
      if (!valid(program.messages.size())) break;
      return absl::StrCat(action, " from device ", program.messages[instruction.arg].from_device);
  }
  return absl::StrCat(OpCodeName(instruction.op), " ", action);
}

std::string SpecToString(const TensorSpec& spec) {
  return absl::StrCat(DataTypeName(spec.type), ShapeToString(spec.shape));
}

std::string LimitToString(absl::Duration limit) {
  return absl::StrCat(absl::ToDoubleSeconds(limit), " s");
}

}  // namespace pipelab
