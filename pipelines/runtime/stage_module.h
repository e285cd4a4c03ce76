// What the runtime asks of one stage on one device: forward, backward (whole or split), recompute,
// step. The runtime knows schedules and messages; a module knows layers and tensors.
//
// A module keeps what its forwards leave for their backwards, by micro-batch. Tensors are passed
// one an edge of the stage graph, in the order of StageGraph::in_edges / out_edges; a group member
// has its rows only. Along an edge without gradients (Reads::None()) they are empty
// tensors, as along one whose outputs are listed (Reads::List()) in a pass that reads nothing; late
// gradients are zeros until the first is there. In-process tensors are handed over without a copy:
// a module that returns one tensor for several edges shares it among the stages there, so none of
// them may write to it. LayerStage returns a tensor of its own for each edge, and writes to the
// gradients that it gets.
#ifndef PIPELAB_PIPELINES_RUNTIME_STAGE_MODULE_H_
#define PIPELAB_PIPELINES_RUNTIME_STAGE_MODULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/tensor.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// The stage's untied parameters or their gradients, flat: all of them, padded to equal parts, and
// this device's part (ir/sharding.h).
struct PartedTensor {
  Tensor whole, part;
};

// Parameters that copies of a stage have in common.
class SharedParameters {
 public:
  virtual ~SharedParameters() = default;

  // The gradients behind a reduction: all untied parameters for "", else the named tied parameter;
  // flat. The sum is written back to the tensor that is returned, so it is a view and not a copy.
  // Two modules that share a reduction have gradients of equal size.
  virtual absl::StatusOr<Tensor> Gradients(absl::string_view parameter) = 0;

  // Sharded parameters. A gather fills `whole` from everybody's `part`, once between BeginGather
  // and EndGather, or another copy on the device does; StageModule::Release lets go of it until the
  // next one.
  virtual absl::StatusOr<PartedTensor> BeginGather() { return NotSharded(); }
  virtual absl::Status EndGather() { return NotSharded().status(); }
  // The gradients that have been added since the last time. Between the two calls the sum of
  // everybody's part is put in `part`; weight gradients may go on into other memory.
  virtual absl::StatusOr<PartedTensor> BeginScatter() { return NotSharded(); }
  virtual absl::Status EndScatter() { return NotSharded().status(); }

 protected:
  static absl::StatusOr<PartedTensor> NotSharded() {
    return absl::UnimplementedError("the stage's parameters cannot be sharded");
  }
};

class StageModule : public SharedParameters {
 public:
  // The experts that only some copies have (Program::expert_copies); their parameters are not among
  // its own. Null: none.
  virtual SharedParameters* experts() { return nullptr; }

  // `drop`: keep the inputs only; a Recompute will come.
  virtual absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                                      bool drop) = 0;
  virtual absl::Status Recompute(const Action& a) = 0;
  // kBackward: both gradients; kBackwardInput: keeps what the weight part needs. Returns the input
  // gradients.
  virtual absl::StatusOr<std::vector<Tensor>> Backward(const Action& a,
                                                       std::vector<Tensor> output_gradients) = 0;
  virtual absl::Status BackwardWeight(const Action& a) = 0;
  // What the forward of the action's micro-batch has left for its backward, all of it: the caller
  // may put other tensors of the same values in their place, on the device (kOffload of it,
  // kReload) or in the host's memory, as long as no backward runs on those.
  virtual absl::StatusOr<std::vector<Tensor*>> Kept(const Action& /*a*/) {
    return absl::UnimplementedError("the stage cannot give away what a forward keeps");
  }
  // Optimizer step with the gradients accumulated since the last one, which it clears.
  virtual absl::Status Step(const Action& a) = 0;

  // What arrives on in-edge / out-edge i for this module's rows of one micro-batch, or of a token
  // slice of it where the schedule has several; where edges carry (Schedule::carried), `slice` is
  // the micro-batch. The first dimension is the one that groups divide.
  virtual TensorSpec InputSpec(int in_edge, int slice) const = 0;
  virtual TensorSpec OutputSpec(int out_edge, int slice) const = 0;

  // Weights that travel (Schedule::weights_travel): what a hop moves, the values or the sum of
  // gradients so far. The sender keeps the values until its Release, and writes to them only in a
  // Step; it gives the sum up. Values that come are the stage's until its Release; to a sum that
  // comes, the stage's own gradients are added.
  virtual TensorSpec HopSpec(bool /*gradient*/) const { return {}; }
  virtual absl::StatusOr<Tensor> SendHop(bool /*gradient*/) { return NotSharded().status(); }
  // NOLINTNEXTLINE(performance-unnecessary-value-param): modules keep it
  virtual absl::Status ReceiveHop(bool /*gradient*/, Tensor /*tensor*/) {
    return NotSharded().status();
  }

  // Lets go of all values that were gathered, or came by a hop.
  virtual absl::Status Release() { return NotSharded().status(); }

  // The global norm. What this copy adds to it, a float for each parameter value of the model (the
  // sum of squares of its gradient, once all gradients are summed, or 0), and what all copies
  // together have, on which the next Step goes.
  virtual absl::StatusOr<Tensor> BeginNorm(const NormShare&) { return NoNorm(); }
  virtual absl::Status EndNorm(const Tensor& /*squares*/) { return NoNorm(); }

  // Nanoseconds that the module has spent inside vendor libraries so far.
  virtual int64_t library_ns() const { return 0; }

 private:
  static absl::Status NoNorm() {
    return absl::UnimplementedError("the stage knows no global norm");
  }
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_STAGE_MODULE_H_
