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

// A trace of `devices` devices; each number another.
Trace MakeTrace(int first, int devices) {
  Trace trace;
  trace.origin = TraceOrigin::kMeasured;
  trace.makespan = Nanoseconds(1000 + first);
  for (int d = first; d < first + devices; ++d) {
    DeviceTrace t;
    for (int i = 0; i < d + 1; ++i) {
      const int64_t begin = 100 * i + d;
      t.spans.push_back({begin, begin + 50, 40 + i});
      t.order.push_back(d - i);
      t.library_ns.push_back(30 + i);
      t.host_copies.push_back({{begin + 10, begin + 20, 5}, i});
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
  EXPECT_EQ(got.order, want.order);
  EXPECT_EQ(got.library_ns, want.library_ns);
  ASSERT_EQ(got.spans.size(), want.spans.size());
  ASSERT_EQ(got.host_copies.size(), want.host_copies.size());
  const auto expect_times = [&](const Span& span, const Span& as) {
    EXPECT_EQ(span.begin_ns, as.begin_ns + later);
    EXPECT_EQ(span.end_ns, as.end_ns + later);
    EXPECT_EQ(span.cpu_ns, as.cpu_ns);
  };
  for (size_t i = 0; i < got.spans.size(); ++i) {
    expect_times(got.spans[i], want.spans[i]);
    expect_times(got.host_copies[i], want.host_copies[i]);
    EXPECT_EQ(got.host_copies[i].instruction, want.host_copies[i].instruction);
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

TEST(GatherTrace, RefusesListsThatAreNotOfOneDevice) {
  Trace short_order = MakeTrace(3, 1), other = short_order, library = short_order,
        copy = short_order;
  short_order.devices[0].order.pop_back();
  other.devices[0].order[1] = 4;
  library.devices[0].library_ns.pop_back();
  copy.devices[0].host_copies[2].instruction = -1;
  for (const Trace& trace : {short_order, other, library, copy}) {
    EXPECT_THAT(TraceFromBytes(TraceToBytes(trace)).status().code(), absl::StatusCode::kDataLoss);
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
