// What a program shows while it computes, and how Ctrl-C ends it. RunMain (flags.h) makes one.
//
//   Waiting waiting("search");               // "search: 12 s; Ctrl-C ends it", after two seconds
//   ...
//   Waiting::Say("1 of 3 done");             // a line of its own on standard error
//   {
//     Waiting::Output output;                // clears that line; Ctrl-C waits until it is gone
//     ... write a file ...
//     output.Keep("plan.json");              // "search: interrupted after 13 s; kept plan.json"
//   }
//
// Shown on standard error: on a terminal one line that is rewritten, elsewhere a line after each
// half minute in which nothing was said, and nothing once a Progress shows more. The first SIGINT
// ends the process within a second with one line and exit code 130, and what it started with
// SIGTERM. A second one ends it at once. Where SIGINT is ignored (nohup, a shell's background
// jobs), it stays ignored; where a program takes it itself (train/interrupt.h), that counts.
#ifndef PIPELAB_EXPERIMENTS_FLAGS_WAITING_H_
#define PIPELAB_EXPERIMENTS_FLAGS_WAITING_H_

#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pipelab {

constexpr int kInterrupted = 130;  // exit code: 128 + SIGINT

struct WaitingOptions {
  // Where the text goes, for tests. Unset: standard error, and `terminal` and times as it needs.
  std::function<void(absl::string_view)> write;
  bool terminal = true;
  absl::Duration silent = absl::Seconds(2), interval = absl::Seconds(1);
  bool takes_interrupts = true;
};

// One at a time.
class Waiting {
 public:
  explicit Waiting(absl::string_view label, WaitingOptions options = {});
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Writes the line and its end to standard error, with the waiting line out of its way.
  static void Say(absl::string_view line);

  // From now on no line says how long it takes: for a program that runs until it is ended.
  static void Hush();

  // While one lives, results are written: no line is shown, and an interrupt waits (0.8 s at most).
  class Output {
   public:
    Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    // What an interrupt from now on says was kept, instead of what was said before.
    void Keep(absl::string_view what);

   private:
    std::unique_lock<std::timed_mutex> lock_;
  };

 private:
  void Loop();  // the thread's
  void Show(absl::Duration time);
  void Clear();
  void Interrupt();

  const std::string label_;
  WaitingOptions options_;
  const absl::Time start_;
  int ends_[2] = {-1, -1};  // a pipe: a byte for an interrupt, closed at the end
  size_t width_ = 0;        // of the line that is shown
  absl::Time said_;         // when Say last wrote
  std::thread thread_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FLAGS_WAITING_H_
