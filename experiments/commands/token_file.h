// --token_file: a word that nobody guesses, in a file for this user's eyes alone.
//
//   PIPELAB_RETURN_IF_ERROR(MakeTokenFile());                  // where there is none yet
//   PIPELAB_ASSIGN_OR_RETURN(std::string token, TokenFromFlag());
//
// Errors name the option. What the system says of the file keeps its code; a file of another user, or
// that others can use, is PermissionDenied; a word that is too short or no text is InvalidArgument.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_TOKEN_FILE_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_TOKEN_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pipelab {

std::string NewToken();  // 64 hexadecimal digits
absl::Status MakeTokenFile();
absl::StatusOr<std::string> TokenFromFlag();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_TOKEN_FILE_H_
