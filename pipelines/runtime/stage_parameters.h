// The parameters of one stage: values, gradients and Adam's moments, each in one flat tensor, so
// that a stage is reduced and stepped in one call.
//
//   StageParameters p(graph, /*layers=*/{3, 4, 5}, backend, /*seed=*/1);
//   layer->SetParameters(p.OfLayer(4));
//   p.Step(adam);                                // with the gradients added up so far, which it
//   clears
//
// Layout: first what this stage alone has, then each tie that other stages have too, then
// (gradients only) the second and later uses of a tie. A tie whose uses all lie in this stage is
// the stage's own affair: it counts as its own, and its gradients are folded into one, in layer
// order, before anybody sees them.
//
// Bits: a tie used once in each of several stages is summed stage by stage (Lower's Tie), which is
// layer order; so for a parameter of two uses the sum is the same for any partition.
#ifndef PIPELAB_PIPELINES_RUNTIME_STAGE_PARAMETERS_H_
#define PIPELAB_PIPELINES_RUNTIME_STAGE_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

// What a step changes of a parameter; all of it makes a checkpoint.
enum class StateKind : uint8_t { kValue, kAdamM, kAdamV };

class StageParameters {
 public:
  // Parameters of the layers (ascending), started by name from the seed. `backend` must outlive
  // this.
  StageParameters(const ModelGraph& graph, absl::Span<const int> layers, Backend* backend,
                  uint64_t seed);

  // In the order of LayerSpec::parameters; `layer` counts in the graph.
  std::vector<Parameter> OfLayer(int layer) const { return of_layer_.at(layer); }
  // With the values of a version that is kept.
  std::vector<Parameter> OfLayer(int layer, int version) const;

  // Copies today's values, so that passes can compute with them after the next step; drops the copy
  // (its memory goes once no layer has it).
  void KeepVersion(int version);
  void DropVersion(int version) { kept_.erase(version); }

  // The flat gradients of what the stage alone has (""), or of a tie that other stages share.
  // NotFound.
  absl::StatusOr<Tensor> Gradients(absl::string_view tie);
  // Say so after each weight gradient.
  void GradientsAdded() { folded_ = false; }
  void Step(const AdamOptions& options);

  // By parameter name; NotFound, and InvalidArgument for another number of elements.
  absl::StatusOr<std::vector<float>> Copy(absl::string_view name, StateKind kind) const;
  absl::Status Set(absl::string_view name, StateKind kind, absl::Span<const float> state);

 private:
  // One value and the gradients of its uses; the first use has the value's own place.
  struct Region {
    const ParameterSpec* spec;  // of the first use, while laying out
    bool shared;                // by a tie with other stages
    int64_t begin = 0, size = 0;
    std::vector<int64_t> gradient_begins;
  };

  void LayOut(const ModelGraph& graph, absl::Span<const int> layers);
  void Allocate(uint64_t seed);
  void BindLayers(const ModelGraph& graph, absl::Span<const int> layers);
  void Fold();
  absl::StatusOr<Tensor> StateOf(absl::string_view name, StateKind kind) const;

  Backend* backend_;
  std::vector<Region> regions_;                 // in the order of first uses
  std::map<std::string, int> region_of_value_;  // by ValueName
  std::map<std::string, int, std::less<>> region_of_name_;
  int64_t own_size_ = 0, value_size_ = 0, gradient_size_ = 0;
  Tensor values_, gradients_, m_, v_;
  std::map<int, Tensor> kept_;  // older values, by version
  std::map<int, std::vector<Parameter>> of_layer_;
  bool folded_ = true;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_STAGE_PARAMETERS_H_
