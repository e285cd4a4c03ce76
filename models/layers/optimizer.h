// Which optimizer a training uses, with its learning-rate schedule and clipping, and one step of
// it.
//
//   OptimizerOptions options = OptimizerOptions::Adam(adam);
//   options.schedule = {/*warmup_steps=*/100, RateDecay::kCosine, /*total_steps=*/2000};
//   options.clip_norm = 1.0;
//   PIPELAB_RETURN_IF_ERROR(CheckOptimizer(options));
//   std::vector<Tensor> state(StateNames(options).size(), ...);       // zeros of the size of w
//   OptimizerStep(options, /*step=*/1, w, dw, state, backend);
//
// Steps count from 1. A step takes the elements one by one, so a parameter may be stepped in parts.
// Clipping is not part of a step: its factor comes from all gradients of the model (ClipFactorOf).
//
// Errors: InvalidArgument "learning_rate=-1: must be ...", the name being the option's.
#ifndef PIPELAB_MODELS_LAYERS_OPTIMIZER_H_
#define PIPELAB_MODELS_LAYERS_OPTIMIZER_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/backend.h"

namespace pipelab {

enum class OptimizerKind : uint8_t { kAdam, kSgd, kRmsProp };
enum class RateDecay : uint8_t { kConstant, kInverseSqrt, kCosine };

// What the optimizer's rate is multiplied by. First a linear rise, step / warmup_steps, to 1 at
// step `warmup_steps`; after it
//   constant       1
//   inverse_sqrt   sqrt(max(warmup_steps, 1) / step)                    (Vaswani et al. 2017)
//   cosine         (1 + cos(pi (step - 1 - warmup_steps) / (total_steps - warmup_steps))) / 2,
//                  and 0 beyond total_steps                             (Loshchilov, Hutter 2017)
struct LearningRateSchedule {
  int64_t warmup_steps = 0;
  RateDecay decay = RateDecay::kConstant;
  int64_t total_steps = 0;  // of the whole training; cosine needs it
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  // The options of `kind` count. Their learning rate is what the schedule multiplies; Adam's step
  // is set by whoever trains.
  AdamOptions adam;
  SgdOptions sgd;
  RmsPropOptions rmsprop;
  LearningRateSchedule schedule;
  // The most that the norm of all gradients together may be: above it they are scaled down to it.
  // 0: neither clipped nor computed; infinite: computed only.
  double clip_norm = 0;

  static OptimizerOptions Adam(const AdamOptions& adam = {});
  static OptimizerOptions Sgd(const SgdOptions& sgd = {});
  static OptimizerOptions RmsProp(const RmsPropOptions& rmsprop = {});

  bool needs_norm() const { return clip_norm > 0; }
};

const char* OptimizerKindName(OptimizerKind kind);  // "adam", "sgd", "rmsprop"
const char* RateDecayName(RateDecay decay);         // "constant", "inverse_sqrt", "cosine"
absl::StatusOr<OptimizerKind> ParseOptimizerKind(absl::string_view name, absl::string_view option);
absl::StatusOr<RateDecay> ParseRateDecay(absl::string_view name, absl::string_view option);

absl::Status CheckOptimizer(const OptimizerOptions& options);

// "adam, rate 0.001, warm-up of 100 steps, cosine over 2000 steps, clipped to norm 1": the kind,
// the rate, and all else that is not the default.
std::string OptimizerToString(const OptimizerOptions& options);

// Before the schedule, and of a step.
float BaseLearningRate(const OptimizerOptions& options);
float LearningRateAt(const OptimizerOptions& options, int64_t step);

// The most state tensors that any optimizer keeps of a parameter.
inline constexpr int kMostStateTensors = 2;
// What the optimizer keeps of each parameter, one tensor of its size a name: Adam "m" and "v"; SGD
// "velocity" where it has momentum; RMSProp "squares", and "velocity" where it has momentum.
absl::InlinedVector<absl::string_view, kMostStateTensors> StateNames(
    const OptimizerOptions& options);

// Operations a parameter, counted off the formulas in kernels/optimizer_kernels.h, for cost models.
double StepFlopsPerParameter(const OptimizerOptions& options);

// What all gradients are scaled by, given the sum of their squares, so that their norm is at most
// clip_norm.
float ClipFactorOf(const OptimizerOptions& options, double sum_of_squares);

// Step number `step` of w with its gradient; `state` is as StateNames says.
void OptimizerStep(const OptimizerOptions& options, int64_t step, const Tensor& w, const Tensor& dw,
                   absl::Span<const Tensor> state, Backend* backend);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_OPTIMIZER_H_
