// A schedule that deadlocks: refused with its cycle before anything runs, and when it is forced
// through the runtime all the same, ended by the limit and not a hang.
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "tests/support/fake_pipeline.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What Lower would not do: each device's list as it stands, with a receive and a wait before each
// action that needs a message and a send behind each that makes one. One stage a device.
Program LowerUnchecked(const Schedule& s) {
  Program p;
  p.schedule = s;
  const int stages = s.num_stages(), micro_batches = s.num_micro_batches;
  const auto id = [&](bool gradient, int edge, int m) {
    return (gradient ? (stages - 1) * micro_batches : 0) + edge * micro_batches + m;
  };
  p.messages.resize(2 * (stages - 1) * micro_batches);
  for (int edge = 0; edge + 1 < stages; ++edge) {
    for (int m = 0; m < micro_batches; ++m) {
      for (bool gradient : {false, true}) {
        Message& message = p.messages[id(gradient, edge, m)];
        const int16_t low = static_cast<int16_t>(s.placement.groups[0][edge][0]);
        const int16_t high = static_cast<int16_t>(s.placement.groups[0][edge + 1][0]);
        message.from_device = gradient ? high : low;
        message.to_device = gradient ? low : high;
        message.edge = edge;
        message.micro_batch = m;
        message.gradient = gradient;
      }
    }
  }
  for (const std::vector<Action>& order : s.order) {
    std::vector<Instruction>& list = p.instructions.emplace_back();
    for (const Action& a : order) {
      const bool backward = a.kind == ActionKind::kBackward;
      const int in = backward ? a.stage : a.stage - 1;  // the edge that it needs
      const int out = backward ? a.stage - 1 : a.stage;
      const auto message = [&](OpCode op, int edge, Action producer) {
        if (edge < 0 || edge + 1 >= stages) return;
        list.push_back({op, 0, producer, id(backward, edge, a.micro_batch)});
      };
      Action producer = a;
      producer.stage = static_cast<int16_t>(backward ? a.stage + 1 : a.stage - 1);
      message(OpCode::kReceive, in, producer);
      message(OpCode::kWait, in, producer);
      list.push_back({OpCode::kCompute, 0, a, -1});
      message(OpCode::kSend, out, a);
    }
  }
  return p;
}

absl::StatusOr<Trace> RunUnchecked(const std::string& csv, absl::Duration limit) {
  const absl::StatusOr<Schedule> schedule = ParseCsv(csv);
  if (!schedule.ok()) return schedule.status();
  const Program program = LowerUnchecked(*schedule);
  FakePipeline pipeline(&program, {.wait_limit = limit});
  if (!pipeline.created().ok()) return pipeline.created();
  return pipeline.RunStep();
}

TEST(DeadlockRun, IsRefusedWithItsCycle) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string csv, ReadFile("tests/testdata/deadlock.csv"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, ParseCsv(csv));
  const std::string cycle =
      "deadlock: device 0 position 1 (0B0) waits for device 1 position 2 (1B0), which comes after "
      "device 1 position 1 (1F1), which waits for device 0 position 2 (0F1), which comes after "
      "device 0 position 1 (0B0)";
  EXPECT_THAT(Validate(schedule), StatusIs(absl::StatusCode::kInvalidArgument, cycle));
  EXPECT_THAT(Lower(schedule, {}), StatusIs(absl::StatusCode::kInvalidArgument, cycle));
}

// The hook itself is sound: what does not deadlock runs through it.
TEST(DeadlockRun, TheUncheckedLoweringRunsWhatIsValid) {
  const absl::StatusOr<Trace> trace =
      RunUnchecked("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", absl::Seconds(60));
  ASSERT_THAT(trace, IsOk());
  EXPECT_EQ(trace->devices[0].messages_sent, 2);
}

TEST(DeadlockRun, EndsWithTheLimitWhenForced) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string csv, ReadFile("tests/testdata/deadlock.csv"));
  const absl::Time begin = absl::Now();
  EXPECT_THAT(RunUnchecked(csv, absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("waited 0.3 s for"), HasSubstr("device"))));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

}  // namespace
}  // namespace pipelab
