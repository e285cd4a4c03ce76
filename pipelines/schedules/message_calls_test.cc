// Calls as Megatron-LM of 2022 makes them: how many each device has, and that they always end where
// both ends of a message must be in their calls.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/schemes.h"
#include "tests/support/program_checker.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

LoweringOptions InCalls(MessageCalls calls) {
  LoweringOptions options;
  options.calls = calls;
  options.eager_reductions = false;
  return options;
}

SchemeParams CallSizes(int devices, int micro_batches, int virtual_stages, bool forwards_first) {
  SchemeParams sizes;
  sizes.devices = devices;
  sizes.micro_batches = micro_batches;
  sizes.virtual_stages = virtual_stages;
  sizes.forwards_first = forwards_first;
  return sizes;
}

Program Interleaved(const SchemeParams& sizes) {
  return Lower(MakeSchedule("interleaved", sizes).value(), InCalls(MessageCalls::kBothNeighbours))
      .value();
}

int CallsOf(const Program& program, int device) {
  const std::vector<Instruction>& list = program.instructions[device];
  return static_cast<int>(std::count_if(
      list.begin(), list.end(), [](const Instruction& i) { return i.op == OpCode::kSynchronise; }));
}

// "0F0 | >0F0 <0F1 . 0F1 ...": computes, and in a call what is sent and received.
std::string TextOf(const Program& program, int device) {
  std::string text;
  for (const Instruction& i : program.instructions[device]) {
    const std::string action = ToString(i.action);
    if (i.op == OpCode::kCompute) absl::StrAppend(&text, action, " ");
    if (i.op == OpCode::kSend) absl::StrAppend(&text, ">", action, " ");
    if (i.op == OpCode::kWait) absl::StrAppend(&text, "<", action, " ");
    if (i.op == OpCode::kSynchronise) absl::StrAppend(&text, "| ");
  }
  return text;
}

TEST(MessageCalls, OneForwardOneBackward) {
  const Program p =
      Lower(MakeSchedule("1f1b", {3, 3}).value(), InCalls(MessageCalls::kOneNeighbour)).value();
  EXPECT_EQ(TextOf(p, 0), "0F0 >0F0 | 0F1 >0F1 | 0F2 >0F2 <1B0 | 0B0 <1B1 | 0B1 <1B2 | 0B2 ");
  EXPECT_EQ(TextOf(p, 1),
            "<0F0 | 1F0 >1F0 | <0F1 | 1F1 >1F1 <2B0 | 1B0 >1B0 <0F2 | 1F2 >1F2 <2B1 | 1B1 >1B1 | "
            "<2B2 | 1B2 >1B2 | ");
  EXPECT_EQ(TextOf(p, 2), "<1F0 | 2F0 2B0 >2B0 <1F1 | 2F1 2B1 >2B1 <1F2 | 2F2 2B2 >2B2 | ");
}

// Megatron-LM calls for a middle device: 2 a micro-batch, 2 more for each forward of the warm-up,
// and the receive before the first turn.
TEST(MessageCalls, OneForwardOneBackwardHasItsClosedForm) {
  for (int p = 2; p <= 8; ++p) {
    for (const int m : {1, 2, 3, p - 1, p, p + 1, 2 * p, 3 * p + 1}) {
      SCOPED_TRACE(absl::StrCat("P=", p, " M=", m));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule s, MakeSchedule("1f1b", {p, m}));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program,
                                   Lower(s, InCalls(MessageCalls::kOneNeighbour)));
      EXPECT_EQ(CheckProgram(program), "");
      for (int d = 1; d + 1 < p; ++d) {
        const int w = std::min(p - 1 - d, m);
        EXPECT_EQ(CallsOf(program, d), 2 * m + 2 * w + (w < m ? 1 : 0)) << d;
      }
      EXPECT_EQ(CallsOf(program, 0), m + std::min(p - 1, m));
      EXPECT_EQ(CallsOf(program, p - 1), m + 1);
    }
  }
}

// A call after each of M V forwards and backwards that run alone and after each pair, whatever is
// sent, and one before all. Where all forwards run first, one more for the first gradient.
TEST(MessageCalls, InterleavedHasItsClosedForm) {
  for (int p = 3; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (const int groups : {1, 2, 3, 4}) {
        for (const bool first : {false, true}) {
          const int m = groups * p;
          SCOPED_TRACE(absl::StrCat("P=", p, " V=", v, " M=", m, first ? " forwards first" : ""));
          const Program program = Interleaved(CallSizes(p, m, v, first));
          EXPECT_EQ(CheckProgram(program), "");
          for (int d = 0; d < p; ++d) {
            const int w = first ? m * v : std::min(2 * (p - 1 - d) + (v - 1) * p, m * v);
            const int before = d > 0 ? 1 : 0, gradient = first && d < p - 1 ? 1 : 0;
            EXPECT_EQ(CallsOf(program, d), m * v + w + before + gradient) << d;
          }
        }
      }
    }
  }
}

TEST(MessageCalls, DataParallelCopiesMakeTheirOwn) {
  Schedule s = MakeSchedule("interleaved", CallSizes(4, 8, 2, false)).value();
  ReplaceDevicesByGroups(2, &s);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program,
                               Lower(s, InCalls(MessageCalls::kBothNeighbours)));
  EXPECT_EQ(CheckProgram(program), "");
  const Program one = Interleaved(CallSizes(4, 8, 2, false));
  for (int d = 0; d < 8; ++d) EXPECT_EQ(CallsOf(program, d), CallsOf(one, d / 2));
}

// Two forwards further on than device 2, so a warm-up longer by two calls; four messages in a call
// at each turn.
TEST(MessageCalls, InterleavedTakesUpToFourMessagesInACall) {
  const Program p = Interleaved(CallSizes(4, 4, 2, false));
  EXPECT_EQ(TextOf(p, 2),
            "<1F0 | 2F0 >2F0 <1F1 | 2F1 >2F1 <1F2 | 2F2 >2F2 <1F3 | 2F3 >2F3 <5F0 | "
            "6F0 >6F0 <5F1 | 6F1 >6F1 <5F2 <7B0 | 6F2 6B0 >6F2 >6B0 <5F3 <7B1 | "
            "6F3 6B1 >6F3 >6B1 <7B2 | 6B2 >6B2 <7B3 | 6B3 >6B3 <3B0 | 2B0 >2B0 <3B1 | "
            "2B1 >2B1 <3B2 | 2B2 >2B2 <3B3 | 2B3 >2B3 | ");
  const Program first = Interleaved(CallSizes(4, 4, 2, true));
  EXPECT_THAT(TextOf(first, 2), HasSubstr(" 6F3 >6F3 | <7B0 | 6B0 >6B0 <7B1 | "));
}

// All forwards first is breadth-first's order: M V stages are held, as Megatron-LM's are.
TEST(MessageCalls, ForwardsFirstIsBreadthFirstsOrder) {
  for (int p = 2; p <= 6; ++p) {
    for (int v = 2; v <= 4; ++v) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule depth,
                                   MakeSchedule("interleaved", CallSizes(p, p, v, true)));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule breadth,
                                   MakeSchedule("breadth_first", CallSizes(p, p, v, false)));
      EXPECT_EQ(depth.order, breadth.order);
    }
  }
}

// A slice is to Seq1F1B what a micro-batch is to 1F1B: S - 1 forwards more of warm-up, M S items.
TEST(MessageCalls, SlicesAreItemsOfTheirOwn) {
  for (const int slices : {1, 2, 4}) {
    SchemeParams sizes = CallSizes(4, 8, 1, false);
    sizes.slices = slices;
    const Program plain =
        Lower(MakeSchedule("seq1f1b", sizes).value(), InCalls(MessageCalls::kOneNeighbour)).value();
    EXPECT_EQ(CheckProgram(plain), "");
    const int items = 8 * slices, first = 3 + slices - 1;
    EXPECT_EQ(CallsOf(plain, 0), items + first);
    // The last device warms up too: its forwards come, and its gradients go, one call each.
    EXPECT_EQ(CallsOf(plain, 3), items + 1 + slices - 1);
    for (int d = 1; d < 3; ++d) {
      EXPECT_EQ(CallsOf(plain, d), 2 * items + 2 * (3 - d + slices - 1) + 1);
    }
    const Program each =
        Lower(MakeSchedule("seq1f1b", sizes).value(), InCalls(MessageCalls::kOneMessage)).value();
    EXPECT_EQ(CheckProgram(each), "");
    for (int d = 0; d < 4; ++d) {
      EXPECT_EQ(CallsOf(each, d), (d == 0 || d == 3 ? 2 : 4) * items);
    }
    sizes.virtual_stages = 2;
    const Program both = Lower(MakeSchedule("interleaved_seq1f1b", sizes).value(),
                               InCalls(MessageCalls::kBothNeighbours))
                             .value();
    EXPECT_EQ(CheckProgram(both), "");
    for (int d = 0; d < 4; ++d) {
      const int warm_up = 4 + 2 * (3 - d) + slices - 1;
      EXPECT_EQ(CallsOf(both, d), 2 * items + warm_up + (d > 0 ? 1 : 0));
    }
  }
}

TEST(MessageCalls, SayWhatTheyDoNotSuit) {
  const auto message = [](const char* scheme, const SchemeParams& sizes, MessageCalls calls) {
    return std::string(
        Lower(MakeSchedule(scheme, sizes).value(), InCalls(calls)).status().message());
  };
  const MessageCalls both = MessageCalls::kBothNeighbours, one = MessageCalls::kOneNeighbour;
  EXPECT_THAT(message("interleaved", CallSizes(2, 4, 2, false), both),
              HasSubstr("needs P of at least 3, not 2"));
  EXPECT_THAT(message("interleaved", CallSizes(4, 6, 2, false), both),
              HasSubstr("M=6 must be a multiple of P=4"));
  EXPECT_THAT(message("interleaved", CallSizes(4, 8, 2, false), one),
              HasSubstr("1F1B has one stage per device, not 2"));
  EXPECT_THAT(message("gpipe", {4, 8}, one),
              HasSubstr("device 0 does not run 3 forwards and then"));
  EXPECT_THAT(message("zb_h1", {4, 8}, one), HasSubstr("passes are F and B, not 0I0"));
  EXPECT_THAT(message("chimera", {4, 4}, one), HasSubstr("not several replicas"));
  // Each list is one of interleaved 1F1B's, and together they wait in a circle.
  EXPECT_THAT(message("breadth_first", {3, 6, 2}, both),
              HasSubstr("would wait for ever in its call after"));
  LoweringOptions options = InCalls(both);
  options.eager_reductions = true;
  Schedule s = MakeSchedule("interleaved", CallSizes(4, 8, 2, false)).value();
  ReplaceDevicesByGroups(2, &s);
  EXPECT_THAT(std::string(Lower(s, options).status().message()),
              HasSubstr("has a collective before"));
}

}  // namespace
}  // namespace pipelab
