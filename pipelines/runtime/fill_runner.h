// Other jobs in a device's waits, on the device's own thread (PipeFill, MLSys 2025).
//
//   FillRunner fill(&arena, std::move(works), {.learn_steps = 3});
//   // the device's runner, at a wait for a message:
//   fill.Run(place, [&] { return communicator->Arrived(ticket); });
//   ... Wait(ticket) ...
//   fill.Waited(place, ns);                       // from before Run to the message
//
// A wait is foreseen from the first steps, in which nothing runs. Then pieces run, one at a time,
// until the message is there or the next piece does not fit into what is left of the foreseen time.
// What a piece takes is foreseen as the 99th percentile of the last ones of its class; the first
// four of a class run in the device's longest wait, and where that is too short for them the job is
// ended. So a piece that takes much longer than those before costs the training that piece and
// nothing more. Pieces never run in reductions, gathers and the
// norm: there the other devices wait for this one.
//
// The jobs' memory is an arena of their own on the device's memory, with a limit: a piece that says
// that it needs more does not run, and a job that holds more than the limit is ended. So is a job
// that fails; the training and the other jobs go on.
//
// Of one thread, but for what is asked between steps. Nanoseconds, bytes.
#ifndef PIPELAB_PIPELINES_RUNTIME_FILL_RUNNER_H_
#define PIPELAB_PIPELINES_RUNTIME_FILL_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/tensor/arena.h"
#include "tools/base/units.h"

namespace pipelab {

// A job in pieces. Its tensors are those of the arena that it was made for.
class FillWork {
 public:
  virtual ~FillWork() = default;
  virtual const std::string& name() const = 0;
  virtual bool over() const = 0;
  // Of the next piece: pieces of one class take the same time.
  virtual int next_class() const { return 0; }
  // What the next piece needs beside what the job holds.
  virtual Bytes next_bytes() const = 0;
  virtual absl::Status RunNext() = 0;
};

struct FillRunnerOptions {
  int learn_steps = 3;                     // in which nothing runs
  Nanoseconds slack = Microseconds(50);    // of each wait, left free
  Bytes limit;                             // of the jobs' memory; 0: none
  std::function<int64_t()> now = nullptr;  // for tests; null: the steady clock [ns]
};

// Of one device, in the order in which they run.
using FillWorks = std::vector<std::unique_ptr<FillWork>>;

struct FillJobReport {
  std::string name;
  int64_t pieces = 0;
  Nanoseconds time;     // of its pieces
  bool over = false;    // all done
  absl::Status status;  // why it was ended
};

struct FillReport {
  Nanoseconds foreseen;  // of all waits since the learning
  Nanoseconds filled;    // with pieces
  std::vector<FillJobReport> jobs;
};

class FillRunner {
 public:
  static constexpr int kTail = -1;  // the place behind the last instruction

  // `arena` outlives it.
  FillRunner(Arena* arena, FillWorks works, FillRunnerOptions options);
  ~FillRunner();

  void BeginStep() { ++steps_; }
  // `place` tells the device's waits apart.
  void Run(int place, absl::FunctionRef<bool()> arrived);
  // How long the wait was, with what ran in it.
  void Waited(int place, int64_t ns);

  FillReport Report() const;  // between steps

 private:
  struct Job;
  struct Place {
    std::vector<int64_t> learned;
    int64_t foreseen = 0;
  };

  bool learning() const { return steps_ <= options_.learn_steps; }
  int64_t Foreseen(int place) const;
  Job* NextJob();
  // Whether the next piece is to run with so much left of a wait that had so much room.
  bool Fits(Job* job, int64_t left, int64_t room) const;
  void RunPiece(Job* job);

  Arena* const arena_;
  const FillRunnerOptions options_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::map<int, Place> places_;
  int64_t steps_ = 0, longest_ = 0, foreseen_ = 0, filled_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_FILL_RUNNER_H_
