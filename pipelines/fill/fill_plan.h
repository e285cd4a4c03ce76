// Which pieces of other jobs run in which gaps of a device's step (PipeFill, MLSys 2025).
//
//   FillProblem problem{gaps[d].gaps, gaps[d].always_free, {bert, resnet}};
//   PIPELAB_RETURN_IF_ERROR(CheckFillable(problem));           // every piece fits into some gap
//   FillPlan plan = GreedyFill(problem);
//   PlannedWork(problem, plan);                                // of the pieces, without switches
//   CheckFillPlan(problem, plan);                              // ok
//
// A fill job is a chain of pieces, which run in order, one at a time, and are never cut; a round
// that is not over goes on in the next gap or the next step of the training. What a gap holds:
// switches, pieces and the slack are no longer than the gap, and what the job needs beside the
// training, and beside the states of other jobs that stay on the device, is free in it.
//
// GreedyFill packs as many consecutive pieces as fit into each gap in turn. With one job nothing is
// better: who is further on in the chain can do in each later gap what the other can. With several,
// it goes on with the best of the plans so far, by work, that differ in which jobs had the gap.
// ExactFill looks at all ways, and is for small cases and for judging. Nanoseconds, bytes.
#ifndef PIPELAB_PIPELINES_FILL_FILL_PLAN_H_
#define PIPELAB_PIPELINES_FILL_FILL_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/fill/gaps.h"
#include "tools/base/units.h"

namespace pipelab {

struct FillPiece {
  Nanoseconds time;
  Bytes bytes;  // while it runs, beside the state
};

struct FillJob {
  std::string name;
  std::vector<FillPiece> pieces;  // of a round: a batch's way through a network, say
  int64_t rounds = 1;
  // Weights, and what a round that is not over keeps between two pieces.
  Bytes state;
  Nanoseconds switch_time;  // to begin in a gap
  Nanoseconds load_time;    // the same, more where the state does not stay on the device

  int64_t num_pieces() const { return rounds * static_cast<int64_t>(pieces.size()); }
  const FillPiece& piece(int64_t n) const { return pieces[n % pieces.size()]; }
};

struct FillProblem {
  std::vector<Gap> gaps;  // of one device and one step
  Bytes always_free;      // where states that stay are
  std::vector<FillJob> jobs = {};
  int iterations = 1;      // steps of the training, which are all alike
  Nanoseconds slack = {};  // of each gap, left free
};

// Pieces [first_piece, first_piece + pieces) of a job, counted through all rounds.
struct FillRun {
  int iteration = 0, gap = 0, job = 0;
  int64_t first_piece = 0, pieces = 0;
};

struct FillPlan {
  std::vector<FillRun> runs;  // in the order in which they run
};

// What a run takes and needs.
class FillRules {
 public:
  explicit FillRules(const FillProblem& problem);  // keeps a reference

  // The states of the first jobs, as long as they fit where the device is at its fullest.
  bool stays(int job) const { return stays_[job]; }
  // Without the pieces: the switch, and the load of a state that does not stay.
  Nanoseconds BeginTime(int job) const;
  // With the pieces.
  Nanoseconds TimeOf(const FillRun& run) const;
  // What is to be free in the gap for a piece.
  Bytes Needed(int job, int64_t piece) const;
  // How long pieces may take together in the gap, switches included.
  Nanoseconds Room(int gap) const;

 private:
  const FillProblem& problem_;
  std::vector<bool> stays_;
  Bytes staying_;
};

// InvalidArgument naming a job with a piece that is too large for every gap, or without pieces.
absl::Status CheckFillable(const FillProblem& problem);

FillPlan GreedyFill(const FillProblem& problem);
// The most work of all plans. ResourceExhausted where there is too much to look at.
absl::StatusOr<FillPlan> ExactFill(const FillProblem& problem);

// InvalidArgument naming the gap where time or memory does not suffice, or the run that is out of
// order.
absl::Status CheckFillPlan(const FillProblem& problem, const FillPlan& plan);

// Time of all pieces.
Nanoseconds PlannedWork(const FillProblem& problem, const FillPlan& plan);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_FILL_FILL_PLAN_H_
