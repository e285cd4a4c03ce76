#include "pipelines/ir/trace.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// A device with two instructions, and one with three.
Program FivePasses() {
  Program program;
  for (const int count : {2, 3}) {
    std::vector<Instruction>& list = program.instructions.emplace_back();
    for (int i = 0; i < count; ++i) list.emplace_back().arg = 10 * count + i;
  }
  return program;
}

DeviceTrace SpansFrom(int64_t begin, int count) {
  DeviceTrace device;
  for (int i = 0; i < count; ++i) {
    device.spans.push_back({begin + 10 * i, begin + 10 * i + 7, 5});
  }
  return device;
}

TEST(Trace, ASpanIsSmall) { EXPECT_EQ(sizeof(Span), 24u); }

TEST(Trace, SpansAreOfTheListsInstructions) {
  const Program program = FivePasses();
  Trace trace;
  trace.devices = {SpansFrom(0, 2), SpansFrom(100, 3)};
  EXPECT_THAT(CheckBelongs(program, trace), IsOk());
  int count = 0;
  for (const ExecutedInstruction& i : SpansOf(program, trace, 1)) {
    EXPECT_EQ(i.arg, 30 + count);
    EXPECT_EQ(i.instruction, count);
    EXPECT_EQ(i.begin_ns, 100 + 10 * count);
    EXPECT_EQ(i.end_ns, 107 + 10 * count);
    EXPECT_EQ(i.cpu_ns, 5);
    EXPECT_EQ(i.library_ns, 0);
    ++count;
  }
  EXPECT_EQ(count, 3);
  trace.devices[1].order = {2, 0, 1};
  trace.devices[1].library_ns = {4, 3, 2};
  const ExecutedInstruction first = SpansOf(program, trace, 1)[0];
  EXPECT_EQ(first.arg, 32);
  EXPECT_EQ(first.instruction, 2);
  EXPECT_EQ(first.begin_ns, 100);
  EXPECT_EQ(first.library_ns, 4);
}

TEST(Trace, RanksRunTheirDevicesList) {
  const Program program = FivePasses();
  Trace ranks;
  ranks.devices = {SpansFrom(0, 2), SpansFrom(1, 2), SpansFrom(2, 3), SpansFrom(3, 3)};
  for (size_t rank = 0; rank < 4; ++rank) {
    const ExecutedInstruction last = SpansOf(program, ranks, rank)[1];
    EXPECT_EQ(last.arg, rank < 2 ? 21 : 31);
    EXPECT_EQ(last.begin_ns, 10 + static_cast<int64_t>(rank));
  }
  EXPECT_THAT(CheckBelongs(program, ranks),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a trace of 4 devices")));
}

TEST(Trace, HostCopiesHaveTheirInstruction) {
  const Program program = FivePasses();
  Trace trace;
  trace.devices = {SpansFrom(0, 2), SpansFrom(100, 3)};
  trace.devices[1].host_copies = {{{105, 120, 15}, 1}, {{120, 130, 10}, 2}};
  trace.devices[1].AddToTimes(-100);
  const std::vector<ExecutedInstruction> copies = HostCopiesOf(program, trace, 1);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[1].arg, 32);
  EXPECT_EQ(copies[1].instruction, 2);
  EXPECT_EQ(copies[1].begin_ns, 20);
  EXPECT_EQ(copies[1].end_ns, 30);
  EXPECT_EQ(trace.devices[1].spans[2].end_ns, 27);
}

TEST(Trace, OfAnotherProgramIsRefused) {
  const Program program = FivePasses();
  Trace trace;
  trace.devices = {SpansFrom(0, 2), SpansFrom(100, 2)};
  EXPECT_THAT(CheckBelongs(program, trace),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "device 1: the trace's 2 spans are not the program's 3 instructions"));
  trace.devices[1].DropTimes();
  EXPECT_THAT(CheckBelongs(program, trace), IsOk()) << "totals alone";
  trace.devices.pop_back();
  EXPECT_THAT(CheckBelongs(program, trace),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a trace of 1 devices does not belong to a program of 2"));
}

}  // namespace
}  // namespace pipelab
