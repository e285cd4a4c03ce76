// Numbers of the command line, exactly: decimals in the user's unit and counts of bytes.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto times, ParseDecimals("--forward", "1,2.5,1", 3, "stage"));
//   PIPELAB_ASSIGN_OR_RETURN(auto sizes, ParseByteCounts("--bytes", "64MiB", 3, "edge"));
//
// One value stands for all. Errors: InvalidArgument naming the option and the value.
#ifndef PIPELAB_EXPERIMENTS_SIMULATE_DECIMAL_H_
#define PIPELAB_EXPERIMENTS_SIMULATE_DECIMAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/units.h"

namespace pipelab {

// digits / 10^decimals, not negative; at most 15 digits and 9 decimals.
struct Decimal {
  int64_t digits = 0;
  int decimals = 0;

  double value() const;
};

int64_t PowerOfTen(int n);

// One number or `count` of them, separated by commas, one a `per` ("stage"); with an empty `per`
// just one. The result has `count` members (one without `per`).
absl::StatusOr<std::vector<Decimal>> ParseDecimals(absl::string_view option,
                                                   const std::string& value, int count,
                                                   absl::string_view per);

// Likewise "1000", "64kB", "1.5GB" (powers of 1000), "64MiB" (powers of 1024): whole bytes.
absl::StatusOr<std::vector<Bytes>> ParseByteCounts(absl::string_view option,
                                                   const std::string& value, int count,
                                                   absl::string_view per);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SIMULATE_DECIMAL_H_
