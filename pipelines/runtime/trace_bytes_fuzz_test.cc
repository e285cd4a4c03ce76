// Damaged inputs from one seed.
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/gather_trace.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

std::string TraceBytes() {
  Trace trace;
  trace.origin = TraceOrigin::kMeasured;
  for (int d = 0; d < 3; ++d) {
    DeviceTrace device;
    for (int i = 0; i < 2 * d; ++i) {
      Span span;
      span.instruction = i;
      span.op = OpCode::kStep;
      span.action.kind = ActionKind::kStep;
      device.spans.push_back(span);
    }
    trace.devices.push_back(std::move(device));
  }
  return TraceToBytes(trace);
}

TEST(TraceBytesFuzz, Mutations) {
  EXPECT_THAT(TraceFromBytes(TraceBytes()), IsOk());
  RunMutations({TraceBytes(), TraceToBytes(Trace())}, 50000);
}

}  // namespace
}  // namespace pipelab
