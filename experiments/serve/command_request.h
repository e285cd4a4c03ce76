// What the page asks for, as a call of a command with the command line's words and options.
//
//   POST /api/simulate  {"words": ["mine.csv"], "options": {"forward": [1, 2]},
//                        "files": {"mine.csv": "0F0,0B0\n1F0,1B0\n"}, "drawings": ["timeline"]}
//
//   PIPELAB_ASSIGN_OR_RETURN(const CommandRequest request, ParseCommandRequest("simulate", body));
//   request.words, request.options         // {"simulate", "mine.csv"}, {"--forward=1,2"}
//
// A request names no file but those that come with it: paths, and options that write files, are
// refused. Errors: NotFound for a command that there is not; else InvalidArgument, one line that
// names the field or the option.
#ifndef PIPELAB_EXPERIMENTS_SERVE_COMMAND_REQUEST_H_
#define PIPELAB_EXPERIMENTS_SERVE_COMMAND_REQUEST_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/commands/command.h"
#include "experiments/serve/limits.h"

namespace pipelab {

struct CommandRequest {
  Words words;                               // words[0]: the command
  std::vector<std::string> options;          // "--name=value"
  std::map<std::string, std::string> files;  // their texts, by names without folders
  std::vector<std::string> drawings;  // simulate and show: timeline, memory; show: svg, trace
  std::string id;                     // what /api/stop calls it by; empty: nothing
};

// Commands that a page may ask for.
const std::vector<absl::string_view>& ServedCommands();

absl::StatusOr<CommandRequest> ParseCommandRequest(absl::string_view command,
                                                   absl::string_view body);

// The id in the body of /api/stop.
absl::StatusOr<std::string> ParseStopRequest(absl::string_view body);

// Sizes that would take too long, of the words and of the flags that are set: InvalidArgument.
absl::Status CheckSizes(const Words& words, const ServeLimits& limits);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_COMMAND_REQUEST_H_
