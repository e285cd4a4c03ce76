// Programs with one instruction, or message, that is not as it was, and a slow judge of whether one
// that is moved matters: the judge of CheckProgram in tests.
//
//   const CounterRng rng(11, "mutants");
//   uint64_t n = 0;
//   ProgramMutant m{ProgramMutant::kMove, device, position};
//   if (m.Apply(program, rng, &n)) EXPECT_EQ(CheckProgram(m.program) == "", m.IsHarmless(program));
#ifndef PIPELAB_TESTS_PROGRAM_MUTANTS_H_
#define PIPELAB_TESTS_PROGRAM_MUTANTS_H_

#include <cstdint>

#include "pipelines/ir/program.h"
#include "tools/base/rng.h"

namespace pipelab {

struct ProgramMutant {
  // kMessage: the message is of another edge, micro-batch or direction. kExchange: the pass has
  // no exchange of attention, or another's, or its own is in another slot. Others are the
  // instruction's.
  enum Change {
    kDrop,
    kDouble,
    kMove,
    kToOtherDevice,
    kMicroBatch,
    kStage,
    kMessage,
    kExchange,
    kNumChanges
  };

  Change change = kDrop;
  int device = 0;
  int from = 0, to = 0;  // `to` where it is moved in its list
  Program program;

  // Makes `program`. False where the change cannot be made. Advances *n.
  bool Apply(const Program& whole, const CounterRng& rng, uint64_t* n);
  // It does what the program does, and ends, where sends wait for their receiver and collectives
  // for all members: its instruction is moved past others that touch nothing of what it touches.
  bool IsHarmless(const Program& whole) const;
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PROGRAM_MUTANTS_H_
