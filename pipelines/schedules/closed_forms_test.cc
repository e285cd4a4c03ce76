// Makespan, bubble, activations in flight and weights of every scheme against its closed forms,
// over P in 2..16, M in 1..8P and V in 1..4.
#include "pipelines/schedules/closed_forms.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/versions.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

double FormulaValue(absl::string_view formula, const FormulaValues& values) {
  const absl::StatusOr<double> value = EvaluateFormula(formula, values);
  EXPECT_THAT(value, IsOk());
  return value.ok() ? *value : -1;
}

// Its own stage's, and those that came by a hop and are not released.
std::vector<double> TravellingWeights(const Schedule& s) {
  const absl::StatusOr<Program> program = Lower(s, {});
  EXPECT_THAT(program, IsOk());
  std::vector<double> most;
  for (const auto& list : program->instructions) {
    double now = 1;
    most.push_back(now);
    for (const Instruction& i : list) {
      now += i.op == OpCode::kReceive && !program->messages[i.arg].gradient;
      now -= i.op == OpCode::kRelease;
      most.back() = std::max(most.back(), now);
    }
  }
  return most;
}

// [device] Stage weights that it holds at the most, if all its stages' versions live at one time.
std::vector<double> Weights(const Schedule& s) {
  if (s.weights_travel) return TravellingWeights(s);
  const std::vector<int> versions = LiveVersions(s);
  std::vector<double> weights(s.num_devices());
  for (const auto& replica : s.placement.groups) {
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      for (int device : replica[stage]) weights[device] += versions[stage];
    }
  }
  return weights;
}

// The sizes with the scheme's options: each way of concatenation, all replicas, groups and updates.
std::vector<SchemeParams> VariantSizes(const Scheme& scheme, const SchemeParams& sizes) {
  std::vector<SchemeParams> all = {sizes};
  const auto add = [&](auto SchemeParams::*option, auto value) {
    all.push_back(sizes);
    all.back().*option = value;
  };
  if ((scheme.options & kGroupSize) != 0 && sizes.virtual_stages == 2) {
    add(&SchemeParams::group_size, sizes.devices + 1);
    add(&SchemeParams::group_size, 2 * sizes.devices);
    if (scheme.name == "gis") add(&SchemeParams::group_size, (sizes.devices + 1) / 2);
  }
  if ((scheme.options & kReplicas) != 0) {
    for (int replicas = 4; replicas <= sizes.devices; replicas += 2) {
      add(&SchemeParams::replicas, replicas);
    }
  }
  if ((scheme.options & kConcatenation) != 0) {
    add(&SchemeParams::concatenation, Concatenation::kForwardDoubling);
    add(&SchemeParams::concatenation, Concatenation::kBackwardHalving);
  }
  if ((scheme.options & kUpdateEvery) != 0) {
    add(&SchemeParams::update_interval, 2 * sizes.devices);
    add(&SchemeParams::update_interval, sizes.micro_batches);
  }
  if ((scheme.options & kTokenSlices) != 0 && sizes.micro_batches <= sizes.devices) {
    add(&SchemeParams::slices, 1);
    add(&SchemeParams::slices, 3);
  }
  return all;
}

// Stage activations on the device, each from F to B or W but while it is at the host.
int MostInFlight(const Schedule& schedule, int device) {
  int now = 0, most = 0;
  bool leaving = false;
  for (const Action& a : schedule.order[device]) {
    if (IsHostTransfer(a.kind)) {
      now -= std::exchange(leaving, a.kind == ActionKind::kOffload);
    }
    now += a.kind == ActionKind::kForward || a.kind == ActionKind::kReload;
    most = std::max(most, now);
    now -= a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight;
  }
  return most;
}

void Check(const Schedule& schedule, const ClosedForm& form, FormulaValues values) {
  const UnitFigures figures = Figures(schedule);
  const int devices = schedule.num_devices();
  // Figures are in units of a token slice.
  const double makespan = static_cast<double>(figures.makespan) / schedule.num_slices;
  ASSERT_EQ(makespan, FormulaValue(form.makespan, values));
  values['T'] = makespan;
  ASSERT_NEAR(static_cast<double>(figures.idle) / static_cast<double>(figures.makespan),
              FormulaValue(form.bubble, values), 1e-12);
  const std::vector<double> weights = Weights(schedule);
  for (int d = 0; d < devices; ++d) {
    values['r'] = d;
    ASSERT_EQ(figures.peak[d], FormulaValue(form.in_flight, values)) << "device " << d;
    ASSERT_EQ(weights[d], FormulaValue(form.weights, values)) << "device " << d;
  }
}

class ClosedFormsOfScheme : public testing::TestWithParam<const Scheme*> {};

TEST_P(ClosedFormsOfScheme, HoldOverTheGrid) {
  const Scheme& scheme = *GetParam();
  bool any = false;
  for (const ClosedForm& form : ClosedForms()) any |= form.scheme == scheme.name;
  if (!any) GTEST_SKIP() << "no closed form is known of " << scheme.name;
  int checked = 0, without = 0;
  // Slices are passes, too.
  const int batches = (scheme.options & (kTokenSlices | kForwardOnly)) == kTokenSlices ? 2 : 8;
  for (int p = 2; p <= 16; ++p) {
    for (int m = 1; m <= batches * p; ++m) {
      for (int v = 1; v <= 4; ++v) {
        for (const SchemeParams& params : VariantSizes(scheme, {p, m, v})) {
          const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, params);
          if (!schedule.ok()) continue;
          const ClosedForm* form = FindClosedForm(scheme.name, params);
          if (form == nullptr) {
            ++without;
            continue;
          }
          ++checked;
          PIPELAB_ASSERT_OK_AND_ASSIGN(const FormulaValues values, ValuesOf(scheme.name, params));
          Check(*schedule, *form, values);
          ASSERT_FALSE(HasFatalFailure())
              << scheme.name << " P=" << p << " M=" << m << " V=" << v << " "
              << ConcatenationName(params.concatenation) << " replicas=" << params.replicas
              << " group_size=" << params.group_size << " update_every=" << params.update_interval;
        }
      }
    }
  }
  std::printf("%d sizes and options checked; %d have no closed form\n", checked, without);
  EXPECT_GT(checked, 60);
}

std::vector<const Scheme*> All() {
  std::vector<const Scheme*> all;
  for (const Scheme& scheme : Catalog()) all.push_back(&scheme);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Catalog, ClosedFormsOfScheme, testing::ValuesIn(All()),
                         [](const testing::TestParamInfo<const Scheme*>& info) {
                           return std::string(info.param->name);
                         });

// Sizes beyond the grid, and with recompute, which changes no order: a search counts on the
// activations in flight.
TEST_P(ClosedFormsOfScheme, InFlightHoldsOfLargePipelines) {
  const Scheme& scheme = *GetParam();
  int checked = 0;
  for (const SchemeParams& sizes : std::vector<SchemeParams>{
           {24, 51, 6}, {32, 256, 2}, {48, 480, 3}, {64, 64, 16}, {128, 20, 2}, {128, 512, 2}}) {
    for (SchemeParams params : VariantSizes(scheme, sizes)) {
      for (const int v : {scheme.default_virtual_stages, sizes.virtual_stages}) {
        params.virtual_stages = v;
        params.recompute = !params.recompute;
        const ClosedForm* form = FindClosedForm(scheme.name, params);
        const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, params);
        if (form == nullptr || !schedule.ok()) continue;
        PIPELAB_ASSERT_OK_AND_ASSIGN(FormulaValues values, ValuesOf(scheme.name, params));
        for (int d = 0; d < schedule->num_devices(); ++d) {
          values['r'] = d;
          ASSERT_EQ(MostInFlight(*schedule, d), FormulaValue(form->in_flight, values))
              << scheme.name << " P=" << params.devices << " M=" << params.micro_batches
              << " V=" << v << " device " << d;
        }
        ++checked;
      }
    }
  }
  std::printf("%d sizes and options checked\n", checked);
}

// Every formula reads, whether or not the grid comes by it.
TEST(ClosedForms, Read) {
  FormulaValues values = {{'P', 4}, {'M', 8}, {'V', 2}, {'r', 1}, {'g', 4},
                          {'f', 1}, {'s', 3}, {'u', 4}, {'T', 40}};
  for (const ClosedForm& form : ClosedForms()) {
    EXPECT_THAT(FindScheme(form.scheme), IsOk());
    for (absl::string_view text :
         {form.holds, form.makespan, form.bubble, form.in_flight, form.weights}) {
      EXPECT_THAT(EvaluateFormula(text, values), IsOk());
    }
  }
}

}  // namespace
}  // namespace pipelab
