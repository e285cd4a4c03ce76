// Optimizers by hand: closed forms of a few steps of the reference, and clipping.
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/functions.h"

namespace pipelab {
namespace {

using Doubles = std::vector<double>;

// Adam's own recurrence by hand: with a constant gradient g the corrected moments are g and g^2 at
// every step, so each step moves by the rate against the sign of g.
TEST(Optimizer, AdamWithAConstantGradientMovesByTheRate) {
  const Doubles g = {0.5, -3};
  Doubles w = {1, 1}, m(2), v(2);
  AdamOptions options;
  options.learning_rate = 0.125f;
  for (int64_t step = 1; step <= 3; ++step) {
    options.step = step;
    reference::Adam(options, g, absl::MakeSpan(w), absl::MakeSpan(m), absl::MakeSpan(v));
    EXPECT_NEAR(w[0], 1 - 0.125 * step, 1e-6);
    EXPECT_NEAR(w[1], 1 + 0.125 * step, 1e-6);
  }
  options.weight_decay = 0.5f;
  options.step = 4;
  const double before = w[0];
  reference::Adam(options, g, absl::MakeSpan(w), absl::MakeSpan(m), absl::MakeSpan(v));
  EXPECT_NEAR(w[0], before - 0.125 - 0.125 * 0.5 * before, 1e-6) << "decay is outside the moments";
}

// u_t = g (1 - mu^t) / (1 - mu) with a constant gradient.
TEST(Optimizer, SgdWithAConstantGradientSumsAGeometricSeries) {
  for (bool nesterov : {false, true}) {
    SgdOptions options;
    options.learning_rate = 0.25f;
    options.momentum = 0.5f;
    options.nesterov = nesterov;
    Doubles w = {1}, u = {0};
    double want = 1;
    for (int step = 1; step <= 4; ++step) {
      reference::Sgd(options, Doubles{3}, absl::MakeSpan(w), absl::MakeSpan(u));
      const double velocity = 3 * (1 - std::pow(0.5, step)) / 0.5;
      want -= 0.25 * (nesterov ? 3 + 0.5 * velocity : velocity);
      EXPECT_NEAR(u[0], velocity, 1e-12);
      EXPECT_NEAR(w[0], want, 1e-12) << "step " << step << (nesterov ? ", nesterov" : "");
    }
  }
  SgdOptions plain;
  plain.learning_rate = 0.5f;
  plain.weight_decay = 0.25f;
  Doubles w = {2};
  reference::Sgd(plain, Doubles{3}, absl::MakeSpan(w), {});
  EXPECT_NEAR(w[0], 2 - 0.5 * (3 + 0.25 * 2), 1e-12);
}

// s_t = g^2 (1 - decay^t) with a constant gradient.
TEST(Optimizer, RmsPropsEpsilonIsWhereTheOptionsSay) {
  for (bool inside : {false, true}) {
    RmsPropOptions options;
    options.learning_rate = 0.5f;
    options.decay = 0.75f;
    options.momentum = 0.5f;
    options.epsilon = 1;
    options.epsilon_inside_root = inside;
    Doubles w = {1}, s = {0}, u = {0};
    double want = 1, velocity = 0;
    for (int step = 1; step <= 3; ++step) {
      reference::RmsProp(options, Doubles{4}, absl::MakeSpan(w), absl::MakeSpan(s),
                         absl::MakeSpan(u));
      const double squares = 16 * (1 - std::pow(0.75, step));
      velocity = 0.5 * velocity + 4 / (inside ? std::sqrt(squares + 1) : std::sqrt(squares) + 1);
      want -= 0.5 * velocity;
      EXPECT_NEAR(s[0], squares, 1e-12);
      EXPECT_NEAR(w[0], want, 1e-12) << "step " << step << (inside ? ", inside" : "");
    }
  }
}

TEST(Optimizer, ClippingScalesToTheNormAndLeavesSmallerOnesAlone) {
  EXPECT_EQ(ClipFactor(9, 3), 1);
  EXPECT_EQ(ClipFactor(0, 3), 1);
  EXPECT_EQ(ClipFactor(16, 3), 0.75f);
  EXPECT_TRUE(std::isnan(ClipFactor(std::numeric_limits<double>::infinity(), 3)));
  EXPECT_TRUE(std::isnan(ClipFactor(std::numeric_limits<double>::quiet_NaN(), 3)));
}

}  // namespace
}  // namespace pipelab
