// --token_file: a word that nobody guesses, in a file for this user's eyes alone.
//
//   PIPELAB_RETURN_IF_ERROR(MakeTokenFile());                  // where there is none yet
//   PIPELAB_ASSIGN_OR_RETURN(std::string token, TokenFromFlag());
//
// Errors name the option. An error of the file system keeps its code. PermissionDenied: the file
// belongs to another user, or other users can read or write it. FailedPrecondition: the word is
// too short, or it is not text.
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
