#include "models/layers/optimizer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr float kRate = 0.25f;

OptimizerOptions WithSchedule(int64_t warmup, RateDecay decay, int64_t total) {
  SgdOptions sgd;
  sgd.learning_rate = kRate;
  OptimizerOptions options = OptimizerOptions::Sgd(sgd);
  options.schedule = {warmup, decay, total};
  return options;
}

TEST(LearningRate, IsTheOptimizersOwnWithoutASchedule) {
  AdamOptions adam;
  adam.learning_rate = 0.3f;
  RmsPropOptions rmsprop;
  rmsprop.learning_rate = 0.7f;
  for (int64_t step : {1, 2, 1000000}) {
    EXPECT_EQ(LearningRateAt(OptimizerOptions::Adam(adam), step), 0.3f);
    EXPECT_EQ(LearningRateAt(OptimizerOptions::RmsProp(rmsprop), step), 0.7f);
    EXPECT_EQ(LearningRateAt(WithSchedule(0, RateDecay::kConstant, 5), step), kRate);
  }
}

TEST(LearningRate, RisesInEqualStepsAndStays) {
  const OptimizerOptions o = WithSchedule(8, RateDecay::kConstant, 0);
  for (int64_t step = 1; step <= 8; ++step) {
    EXPECT_EQ(LearningRateAt(o, step), kRate * static_cast<float>(step) / 8) << step;
  }
  EXPECT_EQ(LearningRateAt(o, 9), kRate);
  EXPECT_EQ(LearningRateAt(o, 1000), kRate);
}

// rate * min(step / warmup, sqrt(warmup / step)): the two meet at the end of the warm-up.
TEST(LearningRate, FallsWithTheInverseSquareRoot) {
  const OptimizerOptions o = WithSchedule(4, RateDecay::kInverseSqrt, 0);
  EXPECT_EQ(LearningRateAt(o, 2), kRate / 2);
  EXPECT_EQ(LearningRateAt(o, 4), kRate);
  EXPECT_EQ(LearningRateAt(o, 16), kRate / 2);
  EXPECT_EQ(LearningRateAt(o, 400), kRate / 10);
  for (int64_t step = 1; step < 50; ++step) {
    const double s = static_cast<double>(step);
    EXPECT_FLOAT_EQ(LearningRateAt(o, step), kRate * std::min(s / 4, std::sqrt(4 / s)));
  }
  EXPECT_EQ(LearningRateAt(WithSchedule(0, RateDecay::kInverseSqrt, 0), 1), kRate);
  EXPECT_EQ(LearningRateAt(WithSchedule(0, RateDecay::kInverseSqrt, 0), 25), kRate / 5);
}

TEST(LearningRate, FallsAsACosineToZero) {
  const OptimizerOptions o = WithSchedule(10, RateDecay::kCosine, 70);
  EXPECT_EQ(LearningRateAt(o, 5), kRate / 2);
  EXPECT_EQ(LearningRateAt(o, 10), kRate);
  EXPECT_EQ(LearningRateAt(o, 11), kRate);                // cos 0
  EXPECT_FLOAT_EQ(LearningRateAt(o, 31), kRate * 0.75f);  // a third of the way: cos(pi / 3) = 1/2
  EXPECT_FLOAT_EQ(LearningRateAt(o, 41), kRate / 2);
  EXPECT_FLOAT_EQ(LearningRateAt(o, 51), kRate / 4);
  EXPECT_GT(LearningRateAt(o, 70), 0);
  EXPECT_EQ(LearningRateAt(o, 71), 0);
  EXPECT_EQ(LearningRateAt(o, 500), 0);
  for (int64_t step = 11; step < 71; ++step) {
    EXPECT_LT(LearningRateAt(o, step + 1), LearningRateAt(o, step)) << step;
  }
}

TEST(Optimizer, KeepsWhatItsFormulasNeed) {
  SgdOptions sgd;
  RmsPropOptions rmsprop;
  EXPECT_THAT(StateNames(OptimizerOptions::Adam()), ElementsAre("m", "v"));
  EXPECT_THAT(StateNames(OptimizerOptions::Sgd(sgd)), ElementsAre());
  EXPECT_THAT(StateNames(OptimizerOptions::RmsProp(rmsprop)), ElementsAre("squares"));
  sgd.momentum = rmsprop.momentum = 0.9f;
  EXPECT_THAT(StateNames(OptimizerOptions::Sgd(sgd)), ElementsAre("velocity"));
  EXPECT_THAT(StateNames(OptimizerOptions::RmsProp(rmsprop)), ElementsAre("squares", "velocity"));
}

// Two steps of each kind with the rates of a warm-up, against the formulas.
class StepTest : public testing::TestWithParam<bool> {
 protected:
  StepTest()
      : backend_(GetParam() ? MakeCpuBackend(&arena_) : MakeReferenceBackend(&arena_)),
        w_(Vector(1.0f)),
        dw_(Vector(0)) {}

  Tensor Vector(float value) {
    Tensor t = arena_.Zeros(DataType::kFloat32, {1}, MemoryKind::kParameter);
    t.f32()[0] = value;
    return t;
  }
  double Step(OptimizerOptions options, int64_t step, float gradient) {
    options.schedule.warmup_steps = 2;  // half of the rate, then the rate
    if (state_.empty()) {
      for (size_t i = 0; i < StateNames(options).size(); ++i) state_.push_back(Vector(0));
    }
    dw_.f32()[0] = gradient;
    OptimizerStep(options, step, w_, dw_, state_, backend_.get());
    EXPECT_THAT(backend_->Finish(), IsOk());
    return double{w_.f32()[0]};
  }

  Arena arena_;
  const std::unique_ptr<Backend> backend_;
  Tensor w_, dw_;
  std::vector<Tensor> state_;
};

TEST_P(StepTest, Adam) {
  AdamOptions adam;
  adam.learning_rate = 0.1f;
  const OptimizerOptions o = OptimizerOptions::Adam(adam);
  // The first step is the rate in the gradient's direction, whatever its size.
  EXPECT_NEAR(Step(o, 1, 3.0f), 1 - 0.05, 1e-6);
  const double m = (0.9 * 0.1 * 3 + 0.1 * -1) / (1 - 0.81);
  const double v = (0.999 * 0.001 * 9 + 0.001 * 1) / (1 - 0.998001);
  EXPECT_NEAR(Step(o, 2, -1.0f), 0.95 - 0.1 * m / std::sqrt(v), 1e-5);
}

TEST_P(StepTest, SgdWithAndWithoutMomentum) {
  SgdOptions sgd;
  sgd.learning_rate = 0.5f;
  EXPECT_NEAR(Step(OptimizerOptions::Sgd(sgd), 1, 2.0f), 0.5, 1e-6);
  EXPECT_NEAR(Step(OptimizerOptions::Sgd(sgd), 2, -1.0f), 1.0, 1e-6);
  sgd.momentum = 0.5f;
  EXPECT_NEAR(Step(OptimizerOptions::Sgd(sgd), 1, 2.0f), 0.5, 1e-6);   // u = 2
  EXPECT_NEAR(Step(OptimizerOptions::Sgd(sgd), 2, -1.0f), 0.5, 1e-6);  // u = 1 - 1
}

TEST_P(StepTest, RmsPropWithMomentum) {
  RmsPropOptions rmsprop;
  rmsprop.learning_rate = 0.2f;
  rmsprop.decay = 0.75f;
  rmsprop.momentum = 0.5f;
  const OptimizerOptions o = OptimizerOptions::RmsProp(rmsprop);
  EXPECT_NEAR(Step(o, 1, 4.0f), 1 - 0.1 * 2, 1e-6);  // squares = 4, u = 4 / 2
  const double u = 0.5 * 2 + 1 / std::sqrt(0.75 * 4 + 0.25 * 1);
  EXPECT_NEAR(Step(o, 2, 1.0f), 0.8 - 0.2 * u, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Backends, StepTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Cpu" : "Reference";
                         });

TEST(CheckOptimizer, NamesWhatIsWrong) {
  const auto refused = [](const char* start) {
    return StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(start));
  };
  const float nan = std::nanf(""), infinite = std::numeric_limits<float>::infinity();
  for (const OptimizerOptions& valid :
       {OptimizerOptions::Adam(), OptimizerOptions::Sgd(), OptimizerOptions::RmsProp()}) {
    OptimizerOptions o = valid;
    EXPECT_THAT(CheckOptimizer(o), IsOk());
    for (const float rate : {0.0f, -1.0f, nan, infinite}) {
      o.adam.learning_rate = o.sgd.learning_rate = o.rmsprop.learning_rate = rate;
      EXPECT_THAT(CheckOptimizer(o), refused("learning_rate=")) << rate;
    }
    o = valid;
    o.adam.weight_decay = o.sgd.weight_decay = o.rmsprop.weight_decay = -1;
    EXPECT_THAT(CheckOptimizer(o), refused("weight_decay=-1: must be a finite number, at least 0"));
    o = valid;
    o.schedule.warmup_steps = -2;
    EXPECT_THAT(CheckOptimizer(o), refused("warmup_steps=-2: must be at least 0"));
    o.schedule = {7, RateDecay::kCosine, 7};
    EXPECT_THAT(CheckOptimizer(o), refused("warmup_steps=7: must be below the 7 steps"));
    o.schedule = {0, RateDecay::kCosine, 0};
    EXPECT_THAT(CheckOptimizer(o), refused("total_steps=0: must be at least 1"));
    o = valid;
    o.clip_norm = -0.5;
    EXPECT_THAT(CheckOptimizer(o), refused("clip_norm=-0.5: must be at least 0"));
    o.clip_norm = nan;
    EXPECT_THAT(CheckOptimizer(o), refused("clip_norm=nan"));
    o.clip_norm = infinite;  // computes the norm alone
    EXPECT_THAT(CheckOptimizer(o), IsOk());
  }
  OptimizerOptions o = OptimizerOptions::Adam();
  o.adam.beta2 = 1;
  EXPECT_THAT(CheckOptimizer(o), refused("beta2=1: must be at least 0 and below 1"));
  o = OptimizerOptions::Sgd();
  o.sgd.nesterov = true;
  EXPECT_THAT(CheckOptimizer(o), refused("momentum=0: must be above 0 for Nesterov's step"));
  o = OptimizerOptions::RmsProp();
  o.rmsprop.epsilon = 0;
  EXPECT_THAT(CheckOptimizer(o), refused("epsilon=0: must be a finite number above 0"));
}

TEST(Optimizer, SaysWhatItIs) {
  SgdOptions sgd;
  sgd.learning_rate = 0.5f;
  sgd.momentum = 0.75f;
  OptimizerOptions o = OptimizerOptions::Sgd(sgd);
  EXPECT_EQ(OptimizerToString(o), "sgd, rate 0.5, momentum 0.75");
  o.schedule = {100, RateDecay::kCosine, 2000};
  o.clip_norm = 2;
  EXPECT_EQ(OptimizerToString(o),
            "sgd, rate 0.5, momentum 0.75, warm-up of 100 steps, cosine over 2000 steps, clipped "
            "to norm 2");
  // All that a step depends on: it is how a checkpoint knows its optimizer.
  AdamOptions adam;
  EXPECT_EQ(OptimizerToString(OptimizerOptions::Adam(adam)), "adam, rate 0.001");
  adam.beta2 = 0.5f;
  adam.epsilon = 0.25f;
  EXPECT_EQ(OptimizerToString(OptimizerOptions::Adam(adam)),
            "adam, rate 0.001, beta2 0.5, epsilon 0.25");
  RmsPropOptions rmsprop;
  rmsprop.decay = 0.5f;
  rmsprop.epsilon = 1;
  rmsprop.epsilon_inside_root = true;
  EXPECT_EQ(OptimizerToString(OptimizerOptions::RmsProp(rmsprop)),
            "rmsprop, rate 0.01, decay 0.5, epsilon inside the root 1");
  for (OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kSgd, OptimizerKind::kRmsProp}) {
    EXPECT_EQ(*ParseOptimizerKind(OptimizerKindName(kind), "--optimizer"), kind);
  }
  for (RateDecay decay : {RateDecay::kConstant, RateDecay::kInverseSqrt, RateDecay::kCosine}) {
    EXPECT_EQ(*ParseRateDecay(RateDecayName(decay), "--rate_decay"), decay);
  }
  EXPECT_THAT(ParseOptimizerKind("adagrad", "--optimizer"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--optimizer=adagrad: no such optimizer; known are adam, sgd, rmsprop"));
}

}  // namespace
}  // namespace pipelab
