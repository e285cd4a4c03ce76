// The processes behind CommandPool (command_pool.h): one without threads that forks, one that
// starts it again when it fails, and one a call. A call's two ends talk over a socket in frames.
#ifndef PIPELAB_EXPERIMENTS_SERVE_COMMAND_PROCESS_H_
#define PIPELAB_EXPERIMENTS_SERVE_COMMAND_PROCESS_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "experiments/serve/limits.h"

namespace pipelab {

enum class AnswerFrameKind : char {
  kRequest = 'q',  // command, folder and body, with '\0' between them
  kStop = 's',     // the best so far, please
  kNews = 'n',     // JSON
  kAnswer = 'a',   // the status in three digits, then the body
  kNoMemory = 'm',
  kStarted = 'p',  // first: the number of the call's process
};
struct AnswerFrame {
  AnswerFrameKind kind = AnswerFrameKind::kAnswer;
  std::string text;
};

bool SendFrame(int fd, AnswerFrameKind kind, absl::string_view text);

// What has come of a frame.
class FrameReader {
 public:
  enum class Result { kFrame, kNothing, kEnd };
  // Waits for up to `wait`. kEnd: the other side is gone, or sends more than `most` bytes.
  Result Next(int fd, absl::Duration wait, size_t most, AnswerFrame* frame);

 private:
  std::string buffer_;
};

// Sends a socket to the process that forks; false: it is gone.
bool SendSocket(int control, int fd);

// Closes what the server has open but this and the standard streams.
void CloseAllBut(int fd);

// Starts that process, which forks for each socket that comes, and starts it again when it is
// killed or stopped: then with a line on stderr, and a byte to the other side of `control`. Once
// that is closed, removes `folder`.
[[noreturn]] void KeepForking(int control, const std::string& folder, const ServeLimits& limits);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_COMMAND_PROCESS_H_
