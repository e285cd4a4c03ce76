#include "experiments/all/deterministic_columns.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pipelab {

std::string WhyNothingToCompare(const ResultFolder& result) {
  const auto lines = std::count(result.deterministic.begin(), result.deterministic.end(), '\n');
  const bool none_made =
      !result.claims.empty() &&
      std::all_of(result.claims.begin(), result.claims.end(),
                  [](const Claim& c) { return c.state == ClaimState::kNotMade; });
  return lines <= 1 && none_made ? result.claims[0].reason : "";
}

std::string CompareLines(absl::string_view reference, absl::string_view ours,
                         absl::string_view other) {
  if (reference == ours) return "equal";
  const std::vector<std::string> a = absl::StrSplit(reference, '\n'),
                                 b = absl::StrSplit(ours, '\n');
  size_t differ = 0, first = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
    if (differ++ == 0) first = i;
  }
  return absl::StrCat(differ, " lines differ, the first is ", first + 1, ": ",
                      first < b.size() ? b[first] : "(none)", ", ", other, ": ",
                      first < a.size() ? a[first] : "(none)");
}

}  // namespace pipelab
