// Whether two runs have the same deterministic columns, byte for byte, whatever else differs: what
// two machines must agree on.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ByteEqual same, CompareBytes("results", "elsewhere/results"));
//   std::cout << same.text;
#ifndef PIPELAB_EXPERIMENTS_COMPARE_BYTE_EQUAL_H_
#define PIPELAB_EXPERIMENTS_COMPARE_BYTE_EQUAL_H_

#include <string>

#include "absl/status/statusor.h"

namespace pipelab {

struct ByteEqual {
  int equal = 0;
  int differ = 0;        // a study of one of the two alone is a difference
  int not_compared = 0;  // studies whose inputs one of the two did not have
  std::string text;      // a line a study, and one of all
};

// Folders of one study, or of many; errors are those of CompareResults.
absl::StatusOr<ByteEqual> CompareBytes(const std::string& a, const std::string& b);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMPARE_BYTE_EQUAL_H_
