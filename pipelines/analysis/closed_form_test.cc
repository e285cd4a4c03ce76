// Simulated traces against the papers' closed forms: the analysis and the simulator check each
// other.
#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

struct Outcome {
  Program program;
  Trace trace;
  TraceAnalysis analysis;
};

absl::StatusOr<Outcome> Simulated(const std::string& scheme, int devices, int micro_batches,
                                  int virtual_stages = 0) {
  SchemeParams params;
  params.devices = devices;
  params.micro_batches = micro_batches;
  params.virtual_stages = virtual_stages;
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(scheme, params));
  Outcome run;
  PIPELAB_ASSIGN_OR_RETURN(run.program, Lower(std::move(schedule), {}));
  PIPELAB_ASSIGN_OR_RETURN(run.trace, Simulate(run.program, CostTable::Unit(run.program.schedule)));
  PIPELAB_ASSIGN_OR_RETURN(run.analysis, Analyze(run.program, run.trace));
  return run;
}

// A backward twice as long as a forward, free messages: (P - 1) / (M + P - 1) of the interval is
// bubble.
TEST(ClosedFormTest, BubbleOfGpipeAnd1f1b) {
  for (const char* scheme : {"gpipe", "1f1b"}) {
    for (int p : {1, 2, 4, 8}) {
      for (int m : {1, 4, 16}) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(Outcome run, Simulated(scheme, p, m));
        EXPECT_NEAR(run.analysis.overall.bubble, (p - 1.0) / (m + p - 1.0), 1e-12)
            << scheme << p << " " << m;
        for (const DeviceAnalysis& d : run.analysis.devices) {
          EXPECT_NEAR(d.bubble, run.analysis.overall.bubble, 1e-12);
          EXPECT_EQ(d.wall.Total(), run.analysis.step_time);
          EXPECT_EQ(d.wall.dispatch.value(), 0);
          EXPECT_EQ(d.actions, 2 * m);
        }
      }
    }
  }
}

// Looped pipelines divide the bubble by the number of virtual stages: ((P - 1) / V) / (M + (P - 1)
// / V).
TEST(ClosedFormTest, BubbleOfInterleaved1f1b) {
  const double p = 4, v = 2, m = 8;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Outcome run, Simulated("interleaved", 4, 8, 2));
  EXPECT_NEAR(run.analysis.overall.bubble, ((p - 1) / v) / (m + (p - 1) / v), 1e-12);
}

// GPipe holds all micro-batches; 1F1B's device i holds at most P - i.
TEST(ClosedFormTest, MicroBatchesInFlight) {
  const int p = 4, m = 8;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Outcome gpipe, Simulated("gpipe", p, m));
  PIPELAB_ASSERT_OK_AND_ASSIGN(Outcome one, Simulated("1f1b", p, m));
  for (int d = 0; d < p; ++d) {
    EXPECT_EQ(gpipe.analysis.devices[d].peak_in_flight, m);
    EXPECT_EQ(one.analysis.devices[d].peak_in_flight, p - d);
  }
}

// A chain of P stages sends 2 (P - 1) M messages, and each is sent before its wait is over.
TEST(ClosedFormTest, Messages) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Outcome run, Simulated("1f1b", 4, 8));
  EXPECT_EQ(run.analysis.overall.messages_sent, 2 * 3 * 8);
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> all,
                               MatchMessages(run.program, run.trace));
  EXPECT_EQ(all.size(), 48u);
  for (const MessageTiming& m : all) {
    const Span& send = run.trace.devices[m.from_device].spans[m.send];
    const Span& wait = run.trace.devices[m.to_device].spans[m.wait];
    EXPECT_LE(send.end_ns, wait.end_ns);
    ASSERT_GE(m.producer, 0);
    ASSERT_GE(m.consumer, 0);
    const Action& made = run.program.instructions[m.from_device][m.producer].action;
    const Action& used = run.program.instructions[m.to_device][m.consumer].action;
    EXPECT_EQ(made.micro_batch, used.micro_batch);
    EXPECT_EQ(std::abs(made.stage - used.stage), 1);
  }
}

}  // namespace
}  // namespace pipelab
