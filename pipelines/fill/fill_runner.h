// Other jobs in a device's waits, on the device's own thread (PipeFill, MLSys 2025).
//
//   FillRunner runner(&arena, std::move(works), {});
//   runner.BeginStep(program.instructions[d], program.fills);
//   // the device's runner, at a fill in front of a wait for a message:
//   runner.Run(program.fills[i.arg], [&] { return communicator->Arrived(ticket); });
//
// In a fill of the program, pieces run one at a time until the message is there or the next piece
// does not fit into what is left of the fill's time, or into its bytes. What a piece takes is
// foreseen as the 99th percentile of the last ones of its class; the first four of a class run in
// the device's longest fill, and where that is too short for them the job is ended. So a piece that
// takes much longer than those before costs the training that piece and nothing more. Pieces that a
// plan has for the fill are for paper: here jobs run in their order.
//
// The jobs' memory is an arena of their own on the device's memory. A job is ended that needs more
// than every fill has, that held more than its fill, or that keeps more between two pieces than the
// limit. So is a job that fails; the training and the other jobs go on.
//
// A runner is used by one thread, but for what is asked between steps. Units: nanoseconds, bytes.
#ifndef PIPELAB_PIPELINES_FILL_FILL_RUNNER_H_
#define PIPELAB_PIPELINES_FILL_FILL_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "kernels/tensor/arena.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

// A job in pieces. Its tensors are those of the arena that it was made for.
class FillWork {
 public:
  virtual ~FillWork() = default;
  virtual const std::string& name() const = 0;
  virtual bool over() const = 0;
  // The class of the next piece: pieces of one class take the same time.
  virtual int next_class() const { return 0; }
  // What the next piece needs beside what the job holds.
  virtual Bytes next_bytes() const = 0;
  virtual absl::Status RunNext() = 0;
};

struct FillRunnerOptions {
  Nanoseconds slack = Microseconds(50);    // of each fill, left free
  absl::optional<Bytes> limit;             // of what jobs hold between two pieces
  std::function<int64_t()> now = nullptr;  // for tests; null: the steady clock [ns]
};

// The jobs of one device, in the order in which they run.
using FillWorks = std::vector<std::unique_ptr<FillWork>>;

struct FillJobReport {
  std::string name;
  int64_t pieces = 0;
  Nanoseconds time;     // of its pieces
  bool over = false;    // all done
  absl::Status status;  // why it was ended
};

struct FillReport {
  Nanoseconds foreseen;  // time of all fills for which there was a job
  Nanoseconds filled;    // with pieces
  std::vector<FillJobReport> jobs;
};

class FillRunner {
 public:
  // `arena` outlives it.
  FillRunner(Arena* arena, FillWorks works, FillRunnerOptions options);
  ~FillRunner();

  // The device's list, and all fills.
  void BeginStep(const std::vector<Instruction>& list, const std::vector<Fill>& fills);
  void Run(const Fill& fill, absl::FunctionRef<bool()> arrived);

  FillReport Report() const;  // between steps

 private:
  struct Job;

  int64_t RoomOf(Nanoseconds time) const { return (time - options_.slack).value(); }
  // What the arena has once the job's next piece runs.
  Bytes Needed(const Job& job) const;
  Job* NextJob();
  // Whether the next piece is to run with so much left of a fill's time.
  bool Fits(Job* job, const Fill& fill, int64_t left) const;
  void RunPiece(Job* job, const Fill& fill);
  // Why the job cannot go on after a piece.
  absl::Status Judge(const Job& job, const Fill& fill) const;

  Arena* const arena_;
  const FillRunnerOptions options_;
  std::vector<std::unique_ptr<Job>> jobs_;
  Nanoseconds longest_;  // of the step's fills
  Bytes roomiest_;       // of all so far that were longer than the slack
  int64_t foreseen_ = 0, filled_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_FILL_FILL_RUNNER_H_
