// The part of Lower that adds collectives and optimizer steps: which stage's gradients are summed
// when, and which weights are put together and let go. lower.cc calls it along the walk of the
// global order; nothing else needs it.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto writer, CollectiveWriter::Make(&program, options));
//   for (each action in the global order) {
//     writer.Before(device, position);
//     ...  // the action's instructions
//     writer.After(device, position);
//   }
//   writer.Finish();
//
// Every collective is appended to the lists of all its members at one point of the global order.
// Where gradients or values are sharded, or steps stand in the order, the members of a group must
// have one list (InvalidArgument): the walk then takes them through it in lockstep, so that what
// one of them is about to need is put before the same action of all.
#ifndef PIPELAB_PIPELINES_IR_COLLECTIVE_WRITER_H_
#define PIPELAB_PIPELINES_IR_COLLECTIVE_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/spmd_groups.h"

namespace pipelab {

inline void AppendInstruction(Program* program, int device, OpCode op, int replica,
                              const Action& action, int32_t arg) {
  program->instructions[device].push_back({op, static_cast<uint8_t>(replica), action, arg});
}

class CollectiveWriter {
 public:
  // `program` has its schedule and must outlive the writer.
  static absl::StatusOr<CollectiveWriter> Make(Program* program, const LoweringOptions& options);

  void Before(int device, int32_t position);
  void After(int device, int32_t position);
  // What stands at the end of the lists.
  void Finish();

 private:
  // How far a group has come.
  struct Progress {
    std::vector<int32_t> gathers;  // [weights] -> gather; those that have begun
    size_t awaited = 0;            // weights whose gather is over
    size_t reduced = 0;            // runs of gradients that have been reduced
    int finished = 0;              // devices at the end of the next one
    int32_t pending = -1;          // reduction that is not awaited yet: of the last run
    int32_t stepped = -1;          // position of the last step in the order
  };

  CollectiveWriter(Program* program, const LoweringOptions& options)
      : p_(program), options_(options) {}
  absl::Status Prepare();
  const Schedule& schedule() const { return p_->schedule; }
  std::vector<StageCopy> CopiesOf(const std::vector<int>& stages) const;
  // The copies that divide what is sharded: sets that have all of it each.
  std::vector<std::vector<StageCopy>> SetsOf(int stage) const;
  // Appends to the list of each member's device, once.
  void AppendForAll(const std::vector<StageCopy>& members, OpCode op, int32_t id);
  int32_t Reduce(std::string parameter, std::vector<StageCopy> members, bool scatter);
  void ReduceStage(int stage);
  void ReduceTie(size_t tie);
  void CountGradient(int stage);
  void BeginGather(const SpmdGroup& group, Progress* at);
  void FinishRunOfGradients(const SpmdGroup& group, Progress* at);
  // The stage whose sums between sets can begin.
  absl::optional<int> AwaitRun(const SpmdGroup& group, Progress* at);
  void ReduceBetweenSets(int stage);
  void AwaitReductions(const std::vector<int32_t>& reductions);
  void SumSquares();
  void StepAll();

  Program* p_;
  LoweringOptions options_;
  bool own_steps_ = false, eager_ = false;
  bool sharded_gradients_ = false;  // kGradients, kFully
  std::vector<SpmdGroup> groups_;
  std::vector<Progress> progress_;             // [group]
  std::vector<int> group_of_;                  // [device] or -1
  std::vector<size_t> released_;               // [device] runs of weights
  std::vector<int32_t> visited_;               // [device] actions so far
  std::vector<int64_t> gradients_left_;        // [stage] weight gradients to come, on all devices
  std::vector<std::vector<int32_t>> pending_;  // [stage] reductions that its step needs
  std::vector<char> reduced_;                  // [stage]
  // [stage] Sets whose last run of gradients is not summed; 0: sums between them have begun.
  std::vector<size_t> sets_left_;
  std::vector<char> tie_reduced_;  // [tie]
  std::vector<char> awaited_;      // [reduction]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_COLLECTIVE_WRITER_H_
