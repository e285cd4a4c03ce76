#include "tools/base/did_you_mean.h"

#include <algorithm>
#include <iterator>
#include <string>
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

// 1 of the same words, a little less where one of them is mistyped.
double Likeness(const std::string& a, const std::string& b) {
  constexpr double kMistyped = 0.9;
  if (a == b) return 1;
  const bool letters = absl::ascii_isalpha(a[0]) && absl::ascii_isalpha(b[0]);
  return letters && EditDistance(a, b) <= a.size() / 4 ? kMistyped : 0;
}

// Words in the same order that two names share.
double SharedWords(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<double> row(b.size() + 1), next(b.size() + 1);
  for (const std::string& word : a) {
    for (size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::max({row[j + 1], next[j], row[j] + Likeness(word, b[j])});
    }
    std::swap(row, next);
  }
  return row[b.size()];
}

// Those with the most words in common, as a share of both: most words of both, or all that are
// wanted.
std::vector<absl::string_view> NearestByWords(absl::string_view wanted,
                                              const std::vector<absl::string_view>& known) {
  constexpr double kLeast = 0.6;
  const std::vector<std::string> words = NameWords(wanted);
  std::vector<absl::string_view> nearest;
  double most = 0;
  if (words.empty()) return nearest;
  for (const absl::string_view name : known) {
    const std::vector<std::string> other = NameWords(name);
    const double shared = SharedWords(words, other);
    const double share = 2 * shared / static_cast<double>(words.size() + other.size());
    const bool contained = shared == static_cast<double>(words.size());
    if (share < most || (share < kLeast && !contained)) continue;
    if (share > most) nearest.clear();
    most = share;
    nearest.push_back(name);
  }
  return nearest;
}

// Case, '-' and '_' aside the same, or one slip from it that is not in a number.
bool IsSlip(absl::string_view folded, const std::string& other, size_t distance) {
  const auto digits = [](absl::string_view of) {
    std::string found;
    std::copy_if(of.begin(), of.end(), std::back_inserter(found), absl::ascii_isdigit);
    return found;
  };
  return distance == 0 || (distance == 1 && digits(folded) == digits(other));
}

}  // namespace

std::vector<std::string> NameWords(absl::string_view name) {
  std::vector<std::string> words;
  char before = '-';
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = absl::ascii_tolower(name[i]);
    const bool digit = absl::ascii_isdigit(c);
    const bool point = c == '.' && absl::ascii_isdigit(before) && i + 1 < name.size() &&
                       absl::ascii_isdigit(name[i + 1]);
    if (digit || point || absl::ascii_isalpha(c)) {
      // A number takes the letters behind it along: "70b".
      const bool goes_on =
          digit ? absl::ascii_isdigit(before) || before == '.' : absl::ascii_isalnum(before);
      if (!goes_on) words.emplace_back();
      words.back() += c;
    }
    before = digit || point || absl::ascii_isalpha(c) ? c : '-';
  }
  return words;
}

std::vector<absl::string_view> MeantByWords(absl::string_view wanted,
                                            const std::vector<absl::string_view>& known) {
  const std::vector<std::string> words = NameWords(wanted);
  std::vector<absl::string_view> same, longer;
  for (const absl::string_view name : known) {
    const std::vector<std::string> other = NameWords(name);
    if (words.empty() || words.size() > other.size()) continue;
    if (!std::equal(words.begin(), words.end(), other.begin())) continue;
    (words.size() == other.size() ? same : longer).push_back(name);
  }
  return same.empty() ? longer : same;
}

std::string DidYouMean(absl::string_view wanted, const std::vector<absl::string_view>& known,
                       absl::string_view prefix) {
  constexpr size_t kShortestBeginning = 3, kMostNamed = 5;
  if (wanted.size() > kLongestName) return "";
  const std::string folded = Folded(wanted);
  const size_t most = folded.size() / 3;
  size_t least = most + 2;
  bool slip = false;
  std::vector<absl::string_view> nearest;
  for (const absl::string_view name : known) {
    const std::string other = Folded(name);
    size_t distance = EditDistance(folded, other);
    const bool begins = folded.size() >= kShortestBeginning && absl::StartsWith(other, folded);
    if (distance > most) distance = begins ? most + 1 : least;
    if (distance >= least) continue;
    least = distance;
    slip = IsSlip(folded, other, distance);
    nearest = {name};
  }
  if (!slip) {
    const std::vector<absl::string_view> by_words = NearestByWords(wanted, known);
    if (!by_words.empty()) nearest = by_words;
  }
  if (nearest.empty()) return "";
  nearest.resize(std::min(nearest.size(), kMostNamed));
  std::string names = absl::StrCat(prefix, nearest[0]);
  for (size_t i = 1; i < nearest.size(); ++i) {
    absl::StrAppend(&names, i + 1 < nearest.size() ? ", " : " or ", prefix, nearest[i]);
  }
  return absl::StrCat("; did you mean ", names, "?");
}

std::string NearestOrAll(absl::string_view wanted, const std::vector<absl::string_view>& known) {
  const std::string nearest = DidYouMean(wanted, known);
  return nearest.empty() ? absl::StrCat("; there are ", absl::StrJoin(known, ", ")) : nearest;
}

}  // namespace pipelab
