#include "models/layers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kPi = 3.14159265358979323846;

template <typename... Parts>
absl::Status Bad(absl::string_view option, double value, const Parts&... must) {
  return absl::InvalidArgumentError(absl::StrCat(option, "=", value, ": must be ", must...));
}

// The comparisons of these checks are false for NaN.
absl::Status CheckPositive(absl::string_view option, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return Bad(option, value, "a finite number above 0");
}

absl::Status CheckShare(absl::string_view option, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return Bad(option, value, "at least 0 and below 1");
}

absl::Status CheckRateAndDecay(double learning_rate, double weight_decay) {
  PIPELAB_RETURN_IF_ERROR(CheckPositive("learning_rate", learning_rate));
  if (weight_decay >= 0 && std::isfinite(weight_decay)) return absl::OkStatus();
  return Bad("weight_decay", weight_decay, "a finite number, at least 0");
}

absl::Status CheckKind(const OptimizerOptions& o) {
  switch (o.kind) {
    case OptimizerKind::kAdam:
      PIPELAB_RETURN_IF_ERROR(CheckRateAndDecay(o.adam.learning_rate, o.adam.weight_decay));
      PIPELAB_RETURN_IF_ERROR(CheckShare("beta1", o.adam.beta1));
      PIPELAB_RETURN_IF_ERROR(CheckShare("beta2", o.adam.beta2));
      return CheckPositive("epsilon", o.adam.epsilon);
    case OptimizerKind::kSgd:
      PIPELAB_RETURN_IF_ERROR(CheckRateAndDecay(o.sgd.learning_rate, o.sgd.weight_decay));
      PIPELAB_RETURN_IF_ERROR(CheckShare("momentum", o.sgd.momentum));
      if (!o.sgd.nesterov || o.sgd.momentum > 0) return absl::OkStatus();
      return Bad("momentum", o.sgd.momentum, "above 0 for Nesterov's step");
    case OptimizerKind::kRmsProp:
      PIPELAB_RETURN_IF_ERROR(CheckRateAndDecay(o.rmsprop.learning_rate, o.rmsprop.weight_decay));
      PIPELAB_RETURN_IF_ERROR(CheckShare("momentum", o.rmsprop.momentum));
      PIPELAB_RETURN_IF_ERROR(CheckShare("rms_decay", o.rmsprop.decay));
      return CheckPositive("epsilon", o.rmsprop.epsilon);
  }
  return absl::InvalidArgumentError(absl::StrCat("no optimizer ", static_cast<int>(o.kind)));
}

double RateFactor(const LearningRateSchedule& s, int64_t step) {
  if (step < s.warmup_steps) return static_cast<double>(step) / static_cast<double>(s.warmup_steps);
  switch (s.decay) {
    case RateDecay::kConstant:
      return 1;
    case RateDecay::kInverseSqrt:
      return std::sqrt(static_cast<double>(std::max<int64_t>(s.warmup_steps, 1)) /
                       static_cast<double>(step));
    case RateDecay::kCosine: {
      if (step > s.total_steps) return 0;
      const double done = static_cast<double>(std::max<int64_t>(step - 1 - s.warmup_steps, 0));
      return (1 + std::cos(kPi * done / static_cast<double>(s.total_steps - s.warmup_steps))) / 2;
    }
  }
  LOG(FATAL) << "no decay " << static_cast<int>(s.decay);
}

}  // namespace

OptimizerOptions OptimizerOptions::Adam(const AdamOptions& adam) {
  OptimizerOptions options;
  options.adam = adam;
  return options;
}

OptimizerOptions OptimizerOptions::Sgd(const SgdOptions& sgd) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kSgd;
  options.sgd = sgd;
  return options;
}

OptimizerOptions OptimizerOptions::RmsProp(const RmsPropOptions& rmsprop) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kRmsProp;
  options.rmsprop = rmsprop;
  return options;
}

const char* OptimizerKindName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kRmsProp:
      return "rmsprop";
  }
  LOG(FATAL) << "no optimizer " << static_cast<int>(kind);
}

const char* RateDecayName(RateDecay decay) {
  switch (decay) {
    case RateDecay::kConstant:
      return "constant";
    case RateDecay::kInverseSqrt:
      return "inverse_sqrt";
    case RateDecay::kCosine:
      return "cosine";
  }
  LOG(FATAL) << "no decay " << static_cast<int>(decay);
}

absl::StatusOr<OptimizerKind> ParseOptimizerKind(absl::string_view name, absl::string_view option) {
  for (OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kSgd, OptimizerKind::kRmsProp}) {
    if (name == OptimizerKindName(kind)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, "=", name, ": no such optimizer; known are adam, sgd, rmsprop"));
}

absl::StatusOr<RateDecay> ParseRateDecay(absl::string_view name, absl::string_view option) {
  for (RateDecay decay : {RateDecay::kConstant, RateDecay::kInverseSqrt, RateDecay::kCosine}) {
    if (name == RateDecayName(decay)) return decay;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, "=", name, ": no such decay; known are constant, inverse_sqrt, cosine"));
}

absl::Status CheckOptimizer(const OptimizerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckKind(options));
  const LearningRateSchedule& s = options.schedule;
  if (s.warmup_steps < 0) {
    return Bad("warmup_steps", static_cast<double>(s.warmup_steps), "at least 0");
  }
  if (s.decay == RateDecay::kCosine && s.total_steps < 1) {
    return Bad("total_steps", static_cast<double>(s.total_steps), "at least 1 for a cosine");
  }
  if (s.decay == RateDecay::kCosine && s.warmup_steps >= s.total_steps) {
    return Bad("warmup_steps", static_cast<double>(s.warmup_steps), "below the ", s.total_steps,
               " steps of the training, for a cosine");
  }
  if (options.clip_norm >= 0) return absl::OkStatus();
  return Bad("clip_norm", options.clip_norm, "at least 0, 0 being no clipping");
}

std::string OptimizerToString(const OptimizerOptions& options) {
  std::string text =
      absl::StrCat(OptimizerKindName(options.kind), ", rate ", BaseLearningRate(options));
  const auto add = [&](absl::string_view what, float value, float usual = 0) {
    if (value != usual) absl::StrAppend(&text, ", ", what, " ", value);
  };
  if (options.kind == OptimizerKind::kSgd) {
    add(options.sgd.nesterov ? "Nesterov momentum" : "momentum", options.sgd.momentum);
    add("weight decay", options.sgd.weight_decay);
  } else if (options.kind == OptimizerKind::kRmsProp) {
    const RmsPropOptions& o = options.rmsprop;
    const RmsPropOptions usual;
    add("decay", o.decay, usual.decay);
    add("momentum", o.momentum);
    add(o.epsilon_inside_root ? "epsilon inside the root" : "epsilon", o.epsilon,
        o.epsilon_inside_root ? -1 : usual.epsilon);
    add("weight decay", o.weight_decay);
  } else {
    const AdamOptions& o = options.adam;
    const AdamOptions usual;
    add("beta1", o.beta1, usual.beta1);
    add("beta2", o.beta2, usual.beta2);
    add("epsilon", o.epsilon, usual.epsilon);
    add("weight decay", o.weight_decay);
  }
  const LearningRateSchedule& s = options.schedule;
  if (s.warmup_steps > 0) absl::StrAppend(&text, ", warm-up of ", s.warmup_steps, " steps");
  if (s.decay == RateDecay::kInverseSqrt) absl::StrAppend(&text, ", inverse square root");
  if (s.decay == RateDecay::kCosine) {
    absl::StrAppend(&text, ", cosine over ", s.total_steps, " steps");
  }
  if (std::isfinite(options.clip_norm) && options.clip_norm > 0) {
    absl::StrAppend(&text, ", clipped to norm ", options.clip_norm);
  }
  return text;
}

float BaseLearningRate(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::kAdam:
      return options.adam.learning_rate;
    case OptimizerKind::kSgd:
      return options.sgd.learning_rate;
    case OptimizerKind::kRmsProp:
      return options.rmsprop.learning_rate;
  }
  LOG(FATAL) << "no optimizer " << static_cast<int>(options.kind);
}

float LearningRateAt(const OptimizerOptions& options, int64_t step) {
  const double factor = RateFactor(options.schedule, step);
  return static_cast<float>(static_cast<double>(BaseLearningRate(options)) * factor);
}

absl::InlinedVector<absl::string_view, kMostStateTensors> StateNames(
    const OptimizerOptions& options) {
  absl::InlinedVector<absl::string_view, kMostStateTensors> names;
  switch (options.kind) {
    case OptimizerKind::kAdam:
      names = {"m", "v"};
      break;
    case OptimizerKind::kSgd:
      if (options.sgd.momentum != 0) names = {"velocity"};
      break;
    case OptimizerKind::kRmsProp:
      names = {"squares"};
      if (options.rmsprop.momentum != 0) names.push_back("velocity");
      break;
  }
  return names;
}

double StepFlopsPerParameter(const OptimizerOptions& options) {
  // Clipping: the square, its sum, the product with the factor.
  const double clipping = options.needs_norm() ? 3 : 0;
  const auto decayed = [](float weight_decay) { return weight_decay != 0 ? 2.0 : 0.0; };
  switch (options.kind) {
    case OptimizerKind::kAdam:
      // Both corrections folded into the rate: two moments of 3 and 4, a root, two sums, a
      // quotient, a product, a difference.
      return 13 + decayed(options.adam.weight_decay) + clipping;
    case OptimizerKind::kSgd:
      return 2 + (options.sgd.momentum != 0 ? 2 : 0) + (options.sgd.nesterov ? 2 : 0) +
             decayed(options.sgd.weight_decay) + clipping;
    case OptimizerKind::kRmsProp:
      // A mean of 4, a root, a sum, a quotient, a product, a difference.
      return 9 + (options.rmsprop.momentum != 0 ? 2 : 0) + decayed(options.rmsprop.weight_decay) +
             clipping;
  }
  LOG(FATAL) << "no optimizer " << static_cast<int>(options.kind);
}

float ClipFactorOf(const OptimizerOptions& options, double sum_of_squares) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return ClipFactor(sum_of_squares, static_cast<float>(std::min(options.clip_norm, kMost)));
}

void OptimizerStep(const OptimizerOptions& options, int64_t step, const Tensor& w, const Tensor& dw,
                   absl::Span<const Tensor> state, Backend* backend) {
  CHECK_EQ(state.size(), StateNames(options).size());
  const float rate = LearningRateAt(options, step);
  const auto state_or_none = [&](size_t i) { return i < state.size() ? state[i] : Tensor(); };
  switch (options.kind) {
    case OptimizerKind::kAdam: {
      AdamOptions adam = options.adam;
      adam.learning_rate = rate;
      adam.step = step;
      return backend->optimizer().Adam(adam, w, dw, state[0], state[1]);
    }
    case OptimizerKind::kSgd: {
      SgdOptions sgd = options.sgd;
      sgd.learning_rate = rate;
      return backend->optimizer().Sgd(sgd, w, dw, state_or_none(0));
    }
    case OptimizerKind::kRmsProp: {
      RmsPropOptions rmsprop = options.rmsprop;
      rmsprop.learning_rate = rate;
      return backend->optimizer().RmsProp(rmsprop, w, dw, state[0], state_or_none(1));
    }
  }
}

}  // namespace pipelab
