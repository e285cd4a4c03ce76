// What an instruction does to its device: time and memory, from a cost table. The one place where
// the memory semantics of ir/program.h become numbers.
//
//   InstructionCostTable instruction_costs(program, costs);
//   InstructionCost e = instruction_costs.Of(device, instruction);
//
// Nanoseconds and bytes, for one member of the stage's group and one slice.
#ifndef PIPELAB_PIPELINES_SIM_INSTRUCTION_COST_H_
#define PIPELAB_PIPELINES_SIM_INSTRUCTION_COST_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/flow_maps.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/reshard_memory.h"
#include "tools/base/units.h"

namespace pipelab {

struct InstructionCost {
  int64_t time = 0;    // of compute and steps
  int64_t peak = 0;    // bytes above the level while it runs
  int64_t change = 0;  // of the level, once it is over
  // For backwards, of each of the two. The rest of `change` is messages.
  int64_t peak_kept = 0;
  int64_t kept = 0;  // inputs included
};

class InstructionCostTable {
 public:
  // Keeps references to both.
  InstructionCostTable(const Program& program, const CostTable& costs);

  // `device` runs the instruction. Always inline: callers use parts of it, a million times.
  ABSL_ATTRIBUTE_ALWAYS_INLINE InstructionCost Of(int device, const Instruction& i) const {
    switch (i.op) {
      case OpCode::kCompute:
      case OpCode::kStep: {
        if (ABSL_PREDICT_FALSE(i.arg >= 0 && !exchanges_.empty())) {
          return exchanges_[costs_.exchanges.of_pass[i.arg]][static_cast<int>(i.action.kind)];
        }
        const InstructionCost& cost = OfAction(i, i.action.kind);
        if (ABSL_PREDICT_FALSE(late_)) return WithFlows(cost, i);  // in whole rows
        return reshard_.any() ? WithReshard(cost, device, i) : cost;
      }
      // Hops are state (cost/state_walk.h).
      case OpCode::kSend:
        if (ABSL_PREDICT_FALSE(IsHop(i))) return {};
        return {0, 0, -MessageBytes(program_.messages[i.arg]), 0, 0};
      case OpCode::kReceive:
        if (ABSL_PREDICT_FALSE(IsHop(i))) return {};
        return {0, 0, SentBytes(program_.messages[i.arg]), 0, 0};
      case OpCode::kWait:
        return costs_.divided_messages ? OfGather(program_.messages[i.arg]) : InstructionCost();
      case OpCode::kReload:
        return OfAction(i, ActionKind::kReload);
      case OpCode::kHostWait:
        return i.action.kind == ActionKind::kOffload ? OfAction(i, ActionKind::kOffload)
                                                     : InstructionCost();
      case OpCode::kNorm:
        return {0, 0, norm_bytes_[device], 0, 0};
      case OpCode::kNormWait:
        return {0, 0, -norm_bytes_[device], 0, 0};
      default:
        return {};
    }
  }

  // What an offload moves: all that the forward keeps for its backward, but for what slices share.
  int64_t HostBytes(const Instruction& i) const { return OfAction(i, ActionKind::kReload).change; }

  // The bytes of a message; SentBytes are those that one member of a tensor-parallel group sends of
  // it.
  int64_t MessageBytes(const Message& m) const {
    if (ABSL_PREDICT_FALSE(m.is_hop())) return hop_bytes_[2 * m.hop_of_stage + m.gradient];
    const int64_t bytes = message_bytes_[m.edge + (slices_differ_ ? ShapeOf(m) * num_edges_ : 0)];
    const int64_t parts = m.row_parts * slice_parts_;
    if (parts == 1) return bytes;  // nearly always; saves a division
    return bytes * (m.row_end - m.row_begin) / parts;
  }
  Bytes LargestHostCopy() const {
    int64_t largest = 0;
    for (const StageInstructionCosts& costs : table_) {
      largest = std::max(largest, costs[static_cast<int>(ActionKind::kReload)].change);
    }
    return Bytes(largest);
  }
  Bytes LargestMessage() const {
    int64_t largest = 0;
    for (int64_t bytes : message_bytes_) largest = std::max(largest, bytes);
    for (int64_t bytes : hop_bytes_) largest = std::max(largest, bytes);
    return Bytes(largest);
  }
  int64_t SentBytes(const Message& m) const {
    const int64_t bytes = MessageBytes(m);
    return costs_.divided_messages && !m.is_hop() ? bytes / costs_.PartsOfMessage(bytes) : bytes;
  }

 private:
  using StageInstructionCosts = std::array<InstructionCost, kNumActionKinds>;

  ABSL_ATTRIBUTE_ALWAYS_INLINE const InstructionCost& OfAction(const Instruction& i,
                                                               ActionKind kind) const {
    const int slice = num_slices_ > 1 ? costs_.ShapeOf(i.action) : 0;
    return table_[(i.replica * num_stages_ + i.action.stage) * num_slices_ + slice]
                 [static_cast<int>(kind)];
  }

  bool IsHop(const Instruction& i) const {
    return !hop_bytes_.empty() && program_.messages[i.arg].is_hop();
  }
  size_t ShapeOf(const Message& m) const {
    return static_cast<size_t>(costs_.of_passes ? m.micro_batch : int32_t{m.slice});
  }
  InstructionCost WithReshard(InstructionCost cost, int device, const Instruction& i) const;
  InstructionCost WithFlows(InstructionCost cost, const Instruction& i) const;
  StageInstructionCosts CostsOfStage(const StageCost& cost, int stage, int slice, bool recomputed,
                                     const std::vector<int>& group) const;
  // The time of what the group does together in the action, one after the other.
  int64_t StatisticsTime(const Action& a, const std::vector<int>& group) const;
  // The whole of a message beside the part that has come, until it is gathered.
  InstructionCost OfGather(const Message& m) const {
    const int64_t whole = MessageBytes(m), part = SentBytes(m);
    return part == whole ? InstructionCost() : InstructionCost{0, whole, whole - part, 0, 0};
  }

  const Program& program_;
  const CostTable& costs_;
  int num_stages_;
  int num_slices_;       // that differ: 1 where the table knows no slices
  int64_t slice_parts_;  // that are alike
  const ReshardMemoryTable reshard_;
  const FlowMaps flows_;
  std::vector<int64_t> norm_bytes_;  // [device] terms of all its copies; empty without a norm
  size_t num_edges_ = 0;
  bool slices_differ_ = false;
  // Some gradient or input is that of an earlier micro-batch, or is read in several passes.
  bool late_ = false;
  std::vector<int64_t> message_bytes_;            // [edge, slice where they differ] of all its rows
  std::vector<int64_t> hop_bytes_;                // [2 stage + gradient] where weights travel
  std::vector<StageInstructionCosts> table_;      // [(replica * stages + stage) * slices + slice]
  std::vector<StageInstructionCosts> exchanges_;  // [CostTable::Exchanges::costs]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_INSTRUCTION_COST_H_
