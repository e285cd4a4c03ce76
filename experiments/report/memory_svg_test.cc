#include "experiments/report/memory_svg.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::Not;

struct MadeMemory {
  Program program;
  CostTable costs;
  Trace trace;
};

// Weights of 10 bytes, gradients too, 20 of the optimizer's; 20 kept by a forward.
MadeMemory MakeMemory(int devices, int micro_batches) {
  SchemeParams params;
  params.devices = devices;
  params.micro_batches = micro_batches;
  LoweringOptions options;
  options.step = false;
  MadeMemory made;
  made.program = Lower(MakeSchedule("gpipe", params).value(), options).value();
  made.costs = CostTable::Unit(made.program.schedule);
  for (StageCost& stage : made.costs.stages) {
    StageMemory& m = stage.memory;
    m.kept = m.forward_peak = m.forward_peak_kept = Bytes(20);
    m.weights = m.gradients = Bytes(10);
    m.optimizer = Bytes(20);
    m.state = Bytes(40);
  }
  made.trace = Simulate(made.program, made.costs).value();
  return made;
}

// One device, F0 F1 B0 B1 of 1, 1, 2, 2 ms on 1000 pixels; 80 bytes are 64 pixels above 112.
TEST(MemorySvg, AreasAreTheParts) {
  const MadeMemory made = MakeMemory(1, 2);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string svg,
                               MemorySvg("m", "gpipe", made.program, made.costs, made.trace));
  // Weights: 10 of 80 bytes all the time.
  EXPECT_THAT(svg, HasSubstr("fill=\"#0072b2\" class=\"pl-b\" stroke-width=\"0.4\" "
                             "d=\"M78 104H1078V112H78z\"/>"));
  // Kept, from 40 on: 20 while F0 runs, 40 from F1 to B0's end, 20.
  EXPECT_THAT(svg, HasSubstr("d=\"M78 64H244.67V48H744.67V64H1078V80H78z\"/>"));
  EXPECT_THAT(svg, HasSubstr("at most 80 B"));
  EXPECT_THAT(svg, HasSubstr(">80 B at 0F1<"));
  EXPECT_THAT(svg, HasSubstr(">optimizer<"));
  EXPECT_THAT(svg, Not(HasSubstr(">older weights<")));
}

TEST(MemorySvg, RefusesWhatItCannotDraw) {
  const MadeMemory made = MakeMemory(2, 2), other = MakeMemory(2, 3);
  EXPECT_THAT(MemorySvg("m", "gpipe", made.program, made.costs, other.trace),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  const MadeMemory large = MakeMemory(8, 4000);
  EXPECT_THAT(MemorySvg("m", "gpipe", large.program, large.costs, large.trace),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the limit is 50000")));
}

}  // namespace
}  // namespace pipelab
