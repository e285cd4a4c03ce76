// The parameters of one stage: values, gradients and what the optimizer keeps, each in one flat
// tensor, so that a stage is reduced and stepped in one call.
//
//   StageParameters p(graph, /*layers=*/{3, 4, 5}, optimizer, backend, /*seed=*/1);
//   layer->SetParameters(p.OfLayer(4));
//   p.Step(/*step=*/1);               // with the gradients added up so far, which it clears
//
// Layout: first what this stage alone has, then each tie that other stages have too, then
// (gradients only) the second and later uses of a tie. A tie whose uses all lie in this stage is
// the stage's own affair: it counts as its own, and its gradients are folded into one, in layer
// order, before anybody sees them.
//
// Experts that only some copies of the stage have (Shard::expert_copies) are parameters by
// themselves: they are summed, gathered and sharded apart, and in all else belong to the others.
//
// Sharded (ir/sharding.h): what the stage alone has is padded to equal parts, of which this copy
// keeps one, or where they travel one copy all; ties stay whole. Values that are put together, and
// the gradients of a run, are separate tensors that come and go, so parameters are handed to layers
// anew after each change.
//
// Where layers have bfloat16 parameters (Backend::activation_type), the values are copies of
// float32 masters, which the optimizer steps, and which count as its state: of what the stage alone
// has, a copy has the masters of its part, sharded in any way. Gathers move the narrow values.
// Checkpoints have the masters.
//
// Bits: a tie used once in each of several stages is summed stage by stage (Lower's Tie), which is
// layer order; so for a parameter of two uses the sum is the same for any partition.
#ifndef PIPELAB_PIPELINES_RUNTIME_STAGE_PARAMETERS_H_
#define PIPELAB_PIPELINES_RUNTIME_STAGE_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"
#include "models/layers/optimizer.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

// What a step changes of a parameter; all of it makes a checkpoint.
// The optimizer's tensors are in the order of StateNames (models/layers/optimizer.h).
enum class StateKind : uint8_t { kValue, kFirstState, kSecondState };

// Elements [begin, begin + values.size()) of a parameter, or of what the device has of one that a
// tensor-parallel group divides.
struct ParameterPart {
  int64_t begin = 0;
  std::vector<float> values;
  ParameterCut cut = {};

  // The place in the whole parameter of values[i].
  int64_t WholeIndex(int64_t i) const { return cut.WholeIndex(begin + i); }
};

class StageParameters {
 public:
  // Parameters of the layers (ascending), started by name from the seed. `backend` must outlive
  // this. `values_only`: for inference, without gradients and what an optimizer keeps.
  StageParameters(const ModelGraph& graph, absl::Span<const int> layers,
                  const OptimizerOptions& optimizer, Backend* backend, uint64_t seed,
                  const Shard& shard = {}, bool values_only = false);

  // In the order of LayerSpec::parameters; `layer` counts in the graph. Tensors that are not there
  // now (sharded, between gathers or runs) are empty.
  std::vector<Parameter> OfLayer(int layer) const {
    return OfLayer(layer, values_, experts_ ? experts_->OfLayer(layer) : std::vector<Parameter>());
  }
  // With the values of a version that is kept.
  std::vector<Parameter> OfLayer(int layer, int version) const {
    return OfLayer(layer, kept_.at(version),
                   experts_ ? experts_->OfLayer(layer, version) : std::vector<Parameter>());
  }
  // Null: none.
  StageParameters* experts() const { return experts_.get(); }

  // Copies today's values, so that passes can compute with them after the next step; drops the copy
  // (its memory goes once no layer has it).
  void KeepVersion(int version);
  void DropVersion(int version) {
    kept_.erase(version);
    if (experts_) experts_->DropVersion(version);
  }

  // As in StageModule, of sharded parameters. Gathers and scatters leave out the experts, as
  // Gradients does. Layers must have no views of values that are released, or of gradients that are
  // scattered.
  bool resident() const {
    return (!sharded_values() || !values_.own.empty()) && (!experts_ || experts_->resident());
  }
  PartedTensor BeginGather();
  void Release();
  PartedTensor BeginScatter();
  void EndScatter();
  // As in StageModule, of weights that travel.
  TensorSpec HopSpec(bool gradient) const;
  absl::StatusOr<Tensor> SendHop(bool gradient);
  void ReceiveHop(bool gradient, Tensor tensor);
  // Makes room for weight gradients; true when there was none.
  bool PrepareGradients();

  // The flat gradients of what the stage alone has ("", a part where they are sharded), or of a tie
  // that other stages share. NotFound.
  absl::StatusOr<Tensor> Gradients(absl::string_view tie);
  // Say so after each weight gradient.
  void GradientsAdded() { folded_ = false; }
  // The terms of the copy's share of the global norm, one for each value of the model in the order
  // of first uses, with 0 for the others. Without `whole`, of parameters that a tensor-parallel
  // group divides alone: another of its devices answers for the others.
  Tensor SumsOfSquares(const NormShare& share, bool whole = true);
  // The gradients, or this copy's parts of them, of parameters that no group divides.
  std::vector<Tensor> GradientsOfUndivided();
  void ScaleGradients(float factor);
  // The optimizer's step of this number, from 1.
  void Step(int64_t step);

  // What this copy keeps of a parameter. NotFound, also for state that the optimizer has not.
  absl::StatusOr<ParameterPart> CopyPart(absl::string_view name, StateKind kind) const;
  // By parameter name, of the whole parameter; NotFound, InvalidArgument for another number of
  // elements, and FailedPrecondition where this copy has a part only.
  absl::StatusOr<std::vector<float>> Copy(absl::string_view name, StateKind kind) const;
  absl::Status Set(absl::string_view name, StateKind kind, absl::Span<const float> state);

 private:
  // What the stage alone has, and what ties share with other stages.
  struct State {
    Tensor own, ties;
  };
  // One value and the gradients of its uses; the first use has the value's own place. Places are in
  // own, or, if shared, in ties; those of later uses are in own.
  struct Region {
    const ParameterSpec* spec;  // of the first use, while laying out
    int64_t number = 0;         // among the model's values
    ParameterCut cut;
    bool shared;  // by a tie with other stages
    int64_t begin = 0, size = 0;
    std::vector<int64_t> later_uses;  // places of gradients
  };
  // A layer's use of a value.
  struct Use {
    int region = 0;  // -1: of the next of the layer's experts
    int number = 0;  // 0: the first
    Shape shape;
  };

  StageParameters(const ModelGraph& graph, absl::Span<const int> layers,
                  const OptimizerOptions& optimizer, Backend* backend, uint64_t seed,
                  const Shard& shard, bool values_only, bool of_experts);
  // Whether a parameter is here, and not among the others.
  bool Takes(const ParameterSpec& p) const;
  // The StageParameters, this or the experts', that have the parameter.
  const StageParameters& Having(absl::string_view name) const;
  void AddSquares(const NormShare& share, bool whole, std::vector<float>* terms);
  // Masters apart from the values.
  bool has_masters() const { return !values_only_ && is_narrow(); }
  bool is_narrow() const { return backend_->activation_type() != DataType::kFloat32; }
  // The values' numbers from the masters'.
  void TakeMasters();
  bool sharded() const { return shard_.divides(); }
  bool sharded_values() const { return sharded() && shard_.sharding == Sharding::kFully; }
  bool sharded_gradients() const {
    return sharded_values() || (sharded() && shard_.sharding == Sharding::kGradients);
  }
  void LayOut(const ModelGraph& graph, absl::Span<const int> layers);
  void Allocate(uint64_t seed);
  void Start(uint64_t seed);
  void FindUses(const ModelGraph& graph, absl::Span<const int> layers);
  std::vector<Parameter> OfLayer(int layer, const State& values,
                                 std::vector<Parameter> experts) const;
  // Elements [begin, end) of a region that lie in this copy's part.
  std::pair<int64_t, int64_t> OverlapOf(const Region& region) const;
  // This copy's part of a whole.
  Tensor PartOf(const Tensor& whole) const;
  // The gradients that the step takes: of this copy's part.
  Tensor SteppedGradients() const;
  Tensor GradientOf(const Region& region, int use) const;
  void Fold();
  absl::StatusOr<const Region*> Find(absl::string_view name, StateKind kind) const;
  // What is kept of a region, and where in the region that begins.
  std::pair<Tensor, int64_t> Kept(const Region& region, StateKind kind) const;
  std::pair<Tensor, int64_t> KeptIn(const Region& region, const Tensor& own, const Tensor& ties,
                                    bool whole) const;
  // The same of the values themselves, where masters are kept as StateKind::kValue.
  std::pair<Tensor, int64_t> KeptValues(const Region& region) const;

  const OptimizerOptions optimizer_;
  Backend* backend_;
  const Shard shard_;
  const bool values_only_, of_experts_;
  std::vector<Region> regions_;                 // in the order of first uses
  std::map<std::string, int> region_of_value_;  // by ValueName
  std::map<std::string, int, std::less<>> region_of_name_;
  std::map<int, std::vector<Use>> uses_;  // by layer
  std::unique_ptr<StageParameters> experts_;
  // Elements; `own` is padded where it is whole, and gradients of later uses follow it.
  int64_t own_size_ = 0, ties_size_ = 0, later_size_ = 0;
  int64_t num_values_ = 0;  // of the whole model
  State values_, gradients_;
  State masters_;  // own: of this copy's part. Those of float32 values are in the values
  std::vector<State> states_;                  // the optimizer's; sharded: own is the part
  Tensor part_of_values_, part_of_gradients_;  // in `own` above, or of their own
  Tensor scattering_;                          // gradients of a run while they are summed
  Tensor travelling_;                          // a sum that came, without gradients from here
  std::map<int, State> kept_;                  // older values, by version
  bool folded_ = true;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_STAGE_PARAMETERS_H_
