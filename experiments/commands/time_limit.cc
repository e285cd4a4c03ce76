#include "experiments/commands/time_limit.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

ABSL_FLAG(std::string, time_limit, "",
          "how long the search may take, such as 10s or 10 (seconds); empty: no limit");
ABSL_FLAG(uint64_t, seed, 1, "seed of weights, data order and dropout");

namespace pipelab {

absl::StatusOr<absl::Duration> TimeLimitFromFlag(absl::Duration unset) {
  const std::string text = absl::GetFlag(FLAGS_time_limit);
  absl::Duration limit = unset;
  double seconds = 0;
  if (text.empty()) return limit;
  if (absl::SimpleAtod(text, &seconds)) {
    limit = std::isnan(seconds) ? absl::ZeroDuration() : absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &limit)) {
    limit = absl::ZeroDuration();
  }
  if (limit > absl::ZeroDuration()) return limit;
  return absl::InvalidArgumentError(
      absl::StrCat("--time_limit=", text, ": must be a time above 0, such as 10s"));
}

}  // namespace pipelab
