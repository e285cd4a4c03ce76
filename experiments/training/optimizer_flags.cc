#include "experiments/training/optimizer_flags.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "experiments/study/study_flags.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Text, so that "not given" is a value of its own.
STUDY_FLAG(std::string, optimizer, "", "adam, sgd or rmsprop; empty: the experiment's own");
STUDY_FLAG(std::string, learning_rate, "",
           "learning rate after the warm-up; empty: the experiment's own");
STUDY_FLAG(std::string, momentum, "", "momentum of sgd and rmsprop; empty: the experiment's own");
STUDY_FLAG(std::string, weight_decay, "",
           "weight decay of the optimizer; empty: the experiment's own");
STUDY_FLAG(std::string, warmup_steps, "",
           "warm-up steps, in which the learning rate rises; empty: the experiment's own");
STUDY_FLAG(std::string, rate_decay, "",
           "after the warm-up: constant, inverse_sqrt, or cosine to 0 at the last step; empty: the "
           "experiment's own");
STUDY_FLAG(std::string, clip_norm, "",
           "largest norm of all gradients, which are scaled down to it; 0: no clipping; empty: the "
           "experiment's own");

// Sets *value where the flag is given.
absl::Status ReadNumber(absl::string_view option, const std::string& text, double* value) {
  if (text.empty()) return absl::OkStatus();
  if (absl::SimpleAtod(text, value) && !std::isnan(*value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, "=", text, ": must be a number"));
}

// Refuses what the float that the kernel takes would turn into 0 or infinity.
absl::Status ReadFloat(absl::string_view option, const std::string& text, float* value) {
  double number = *value;
  PIPELAB_RETURN_IF_ERROR(ReadNumber(option, text, &number));
  const double size = std::abs(number);
  if (size > std::numeric_limits<float>::max() ||
      (size > 0 && size < std::numeric_limits<float>::min())) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", text, ": must be a finite number that a float can hold"));
  }
  if (!text.empty()) *value = static_cast<float>(number);
  return absl::OkStatus();
}

absl::Status ReadKindsFlags(OptimizerOptions* o) {
  float *rate = &o->adam.learning_rate, *decay = &o->adam.weight_decay, *momentum = nullptr;
  if (o->kind == OptimizerKind::kSgd) {
    rate = &o->sgd.learning_rate;
    decay = &o->sgd.weight_decay;
    momentum = &o->sgd.momentum;
  } else if (o->kind == OptimizerKind::kRmsProp) {
    rate = &o->rmsprop.learning_rate;
    decay = &o->rmsprop.weight_decay;
    momentum = &o->rmsprop.momentum;
  }
  PIPELAB_RETURN_IF_ERROR(ReadFloat("--learning_rate", absl::GetFlag(FLAGS_learning_rate), rate));
  PIPELAB_RETURN_IF_ERROR(ReadFloat("--weight_decay", absl::GetFlag(FLAGS_weight_decay), decay));
  const std::string given = absl::GetFlag(FLAGS_momentum);
  if (momentum != nullptr) return ReadFloat("--momentum", given, momentum);
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--momentum=", given, ": ", OptimizerKindName(o->kind), " has none; sgd and rmsprop have"));
}

absl::Status ReadSchedule(int64_t steps, LearningRateSchedule* schedule) {
  const std::string warmup = absl::GetFlag(FLAGS_warmup_steps);
  if (!warmup.empty() && !absl::SimpleAtoi(warmup, &schedule->warmup_steps)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--warmup_steps=", warmup, ": must be a whole number"));
  }
  const std::string decay = absl::GetFlag(FLAGS_rate_decay);
  if (!decay.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(schedule->decay, ParseRateDecay(decay, "--rate_decay"));
  }
  schedule->total_steps = steps;
  return absl::OkStatus();
}

}  // namespace

void RegisterOptimizerFlags() { RegisterStudyFlags(__FILE__); }

absl::StatusOr<OptimizerOptions> OptimizerFromFlags(OptimizerOptions defaults, int64_t steps) {
  const std::string kind = absl::GetFlag(FLAGS_optimizer);
  if (!kind.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(defaults.kind, ParseOptimizerKind(kind, "--optimizer"));
  }
  PIPELAB_RETURN_IF_ERROR(ReadKindsFlags(&defaults));
  PIPELAB_RETURN_IF_ERROR(ReadSchedule(steps, &defaults.schedule));
  PIPELAB_RETURN_IF_ERROR(
      ReadNumber("--clip_norm", absl::GetFlag(FLAGS_clip_norm), &defaults.clip_norm));
  const absl::Status valid = CheckOptimizer(defaults);
  if (valid.ok()) return defaults;
  return absl::InvalidArgumentError(absl::StrCat("--", valid.message()));
}

}  // namespace pipelab
