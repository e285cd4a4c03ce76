#include "tools/base/did_you_mean.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace pipelab {
namespace {

constexpr size_t kLongestName = 64;  // more is no name, and the distance takes its square

std::string Folded(absl::string_view name) {
  return absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"-", ""}, {"_", ""}}));
}

// Optimal string alignment: characters replaced, left out, put in, or swapped with the next.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

}  // namespace

std::string DidYouMean(absl::string_view wanted, const std::vector<absl::string_view>& known,
                       absl::string_view prefix) {
  constexpr size_t kShortestBeginning = 3;
  const std::string folded = Folded(wanted.substr(0, kLongestName));
  const size_t most = folded.size() / 3;
  size_t least = most + 2;
  absl::string_view nearest;
  for (const absl::string_view name : known) {
    const std::string other = Folded(name);
    size_t distance = EditDistance(folded, other);
    const bool begins = folded.size() >= kShortestBeginning && absl::StartsWith(other, folded);
    if (distance > most) distance = begins ? most + 1 : least;
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  if (nearest.empty() || wanted.size() > kLongestName) return "";
  return absl::StrCat("; did you mean ", prefix, nearest, "?");
}

std::string NearestOrAll(absl::string_view wanted, const std::vector<absl::string_view>& known) {
  const std::string nearest = DidYouMean(wanted, known);
  return nearest.empty() ? absl::StrCat("; there are ", absl::StrJoin(known, ", ")) : nearest;
}

}  // namespace pipelab
