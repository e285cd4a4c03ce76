// What must hold of any input of the readers of schedules, good or bad: for fuzzing.
//
//   CheckReaders(text);   // CHECK-fails when a reader breaks a promise
//
// Promises: errors are InvalidArgument and one line. What is read comes back the same from its own
// text, CSV or JSON. Validate and Lower agree on it. JSON that is no schedule comes back too.
#ifndef PIPELAB_TESTS_SUPPORT_READER_CHECKS_H_
#define PIPELAB_TESTS_SUPPORT_READER_CHECKS_H_

#include "absl/strings/string_view.h"

namespace pipelab {

struct Readings {
  int read = 0;   // readers that took it as a schedule, of text, CSV and JSON
  int valid = 0;  // of those: valid schedules
};
Readings CheckReaders(absl::string_view input);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_READER_CHECKS_H_
