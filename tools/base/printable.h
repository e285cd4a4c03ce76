// Text of strangers for terminals, logs and one-line errors.
//
//   Printable("a\nstep step=7\x1b[2J")                     // "a\\nstep step=7\\x1b[2J"
//
// What others have written, in files, messages or names, must neither begin a line of its own nor
// steer a terminal. So line breaks become "\n", and other control characters, what is not UTF-8 and
// characters that change the direction of writing become "\x1b", a byte each. All else stays, so
// what is printable already stays as it is.
#ifndef PIPELAB_TOOLS_BASE_PRINTABLE_H_
#define PIPELAB_TOOLS_BASE_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace pipelab {

std::string Printable(absl::string_view text);

// "begin ... end" of a text of more than 4,096 bytes, which may be a value as long as a file; the
// end of an error says what is wrong.
std::string WithoutMiddle(absl::string_view text);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_PRINTABLE_H_
