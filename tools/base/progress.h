// A progress line on standard error: label, done of total, rate, time left.
//
//   Progress progress("1f1b", /*total=*/300, "step");
//   for (...) progress.Update(step + 1, absl::StrFormat("loss %.3f", loss));
//   progress.Finish();          // "1f1b: 300 steps in 41.2 s (7.28 step/s), loss 2.113"
//
// On a terminal one line is rewritten; elsewhere (a log file) a full line appears every few
// seconds. Any thread may call it. Destroyed without Finish(), it only ends the line it had begun.
#ifndef PIPELAB_TOOLS_BASE_PROGRESS_H_
#define PIPELAB_TOOLS_BASE_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pipelab {

struct ProgressOptions {
  // Where the text goes and what time it is: for tests. Unset: standard error and the clock.
  std::function<void(absl::string_view)> write;
  std::function<absl::Time()> now;
  bool terminal = false;  // asked of standard error when `write` is unset
  absl::Duration terminal_interval = absl::Milliseconds(100);
  absl::Duration log_interval = absl::Seconds(5);
};

class Progress {
 public:
  // `total` 0: not known; neither a share nor the time left is shown. `unit` is singular.
  Progress(absl::string_view label, int64_t total, absl::string_view unit,
           ProgressOptions options = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(int64_t done, absl::string_view note = "");  // `done` so far, since the start
  void Add(int64_t n, absl::string_view note = "");  // n more; an empty note keeps the last one
  void Finish();                                     // once; later calls do nothing

  // Whether any of this process has shown a line on standard error.
  static bool Shown();

  // From now on nothing of this process's progress is shown (another process shows its own).
  static void SilenceAll();

 private:
  void Advance(int64_t done, absl::string_view note);
  void Show(absl::string_view line);
  std::string Line(absl::Time now) const;

  const std::string label_, unit_;
  const int64_t total_;
  ProgressOptions options_;
  absl::Time start_;

  std::mutex mutex_;  // not absl::Mutex, which ThreadSanitizer cannot see through here
  int64_t done_ = 0;
  std::string note_;
  absl::Time last_shown_;
  size_t shown_width_ = 0;  // of the line on the terminal now
  bool finished_ = false;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_PROGRESS_H_
