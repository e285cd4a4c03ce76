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
      device.spans.push_back({10 * i, 10 * i + 5, 3});
      device.library_ns.push_back(2);
      if (d == 2) device.order.push_back(i ^ 1);
      device.host_copies.push_back({{10 * i, 10 * i + 7, 0}, i});
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
