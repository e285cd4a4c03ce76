// Traces of several processes, here threads, as one.
#include "pipelines/runtime/gather_trace.h"

#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

// Of `devices` devices; each number another.
Trace MakeTrace(int first, int devices) {
  Trace trace;
  trace.origin = TraceOrigin::kMeasured;
  trace.makespan = Nanoseconds(1000 + first);
  for (int d = first; d < first + devices; ++d) {
    DeviceTrace t;
    for (int i = 0; i < d + 1; ++i) {
      Span span;
      span.instruction = i;
      span.op = OpCode::kCompute;
      span.action = {ActionKind::kBackward, static_cast<int16_t>(d), static_cast<int16_t>(i)};
      span.begin_ns = 100 * i + d;
      span.end_ns = span.begin_ns + 50;
      span.cpu_ns = 40 + i;
      t.spans.push_back(span);
    }
    t.peak_activation = Bytes(10 + d);
    t.peak_state = Bytes(20 + d);
    t.bytes_sent = Bytes(30 + d);
    t.messages_sent = 40 + d;
    t.collective_bytes = Bytes(50 + d);
    t.tensor_bytes = Bytes(60 + d);
    trace.devices.push_back(t);
  }
  return trace;
}

void ExpectDevice(const DeviceTrace& got, const DeviceTrace& want, int64_t later) {
  EXPECT_EQ(got.peak_activation, want.peak_activation);
  EXPECT_EQ(got.peak_state, want.peak_state);
  EXPECT_EQ(got.bytes_sent, want.bytes_sent);
  EXPECT_EQ(got.messages_sent, want.messages_sent);
  EXPECT_EQ(got.collective_bytes, want.collective_bytes);
  EXPECT_EQ(got.tensor_bytes, want.tensor_bytes);
  ASSERT_EQ(got.spans.size(), want.spans.size());
  for (size_t i = 0; i < got.spans.size(); ++i) {
    EXPECT_EQ(ToString(got.spans[i].action), ToString(want.spans[i].action));
    EXPECT_EQ(got.spans[i].begin_ns, want.spans[i].begin_ns + later);
    EXPECT_EQ(got.spans[i].end_ns, want.spans[i].end_ns + later);
    EXPECT_EQ(got.spans[i].cpu_ns, want.spans[i].cpu_ns);
  }
}

TEST(GatherTrace, BytesAndBack) {
  const Trace trace = MakeTrace(3, 4);
  const std::string bytes = TraceToBytes(trace);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace back, TraceFromBytes(bytes));
  EXPECT_EQ(back.origin, trace.origin);
  EXPECT_EQ(back.makespan, trace.makespan);
  ASSERT_EQ(back.devices.size(), 4u);
  for (int d = 0; d < 4; ++d) ExpectDevice(back.devices[d], trace.devices[d], 0);
  for (size_t n = 0; n < bytes.size(); n += 7) {
    EXPECT_THAT(TraceFromBytes(bytes.substr(0, n)).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(GatherTrace, DevicesInOrderOfProcessesOnOneClock) {
  const std::string path = absl::StrCat(testing::TempDir(), "/meet", getpid());
  constexpr int kProcesses = 3;
  const int64_t begins[] = {5000, 4000, 4700};
  std::vector<std::thread> threads;
  for (int p = 0; p < kProcesses; ++p) {
    threads.emplace_back([&, p] {
      auto group = ProcessGroup::Create(p, kProcesses, FileRendezvous(path, kLong), {});
      ASSERT_THAT(group, IsOk());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace,
                                   GatherTrace(**group, MakeTrace(2 * p, 2), begins[p], kLong));
      if (p != 0) {
        ASSERT_EQ(trace.devices.size(), 2u);
        return ExpectDevice(trace.devices[1], MakeTrace(2 * p, 2).devices[1], 0);
      }
      EXPECT_EQ(trace.makespan, Nanoseconds(1000 + 1000)) << "process 0 begins and ends last";
      ASSERT_EQ(trace.devices.size(), 6u);
      for (int d = 0; d < 6; ++d) {
        ExpectDevice(trace.devices[d], MakeTrace(d, 1).devices[0], begins[d / 2] - 4000);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace pipelab
