// A request of the page, answered by the command itself in this process.
//
//   const CommandAnswer answer = AnswerCommand(request, limits);
//   answer.status, answer.body             // 200, {"json": ..., "text": "...", ...}
//
// json: what the command writes with --json_out, byte for byte; text: what it prints;
// does_not_fit: its line where a step needs more memory than a device has; schedule: synthesize's,
// in pipelab's text form; timeline, memory, svg, trace: the drawings that were asked for, of
// simulate with timeline_note or memory_note instead where that is too much to draw.
//
// Status 400 is the command line's exit code 2, 422 what a file says wrong or what cannot be done
// (exit code 1), 500 a fault of ours. Flags are process-wide: one call at a time.
#ifndef PIPELAB_EXPERIMENTS_SERVE_COMMAND_ANSWER_H_
#define PIPELAB_EXPERIMENTS_SERVE_COMMAND_ANSWER_H_

#include <string>

#include "absl/status/status.h"
#include "experiments/serve/command_request.h"
#include "experiments/serve/limits.h"

namespace pipelab {

struct CommandAnswer {
  int status = 200;
  std::string body;  // JSON
};

CommandAnswer AnswerCommand(const CommandRequest& request, const ServeLimits& limits);

// {"error": "..."} with the status for it.
CommandAnswer AnswerOf(const absl::Status& status);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_COMMAND_ANSWER_H_
