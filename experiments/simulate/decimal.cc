#include "experiments/simulate/decimal.h"

#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pipelab {
namespace {

constexpr int kMostDecimals = 9;
constexpr int64_t kMostDigits = int64_t{1000000000000000};  // 10^15
constexpr int64_t kMostBytes = int64_t{1} << 53;

// False when `text` is no such number.
bool ReadDecimal(absl::string_view text, Decimal* result) {
  Decimal d;
  bool point = false, any = false;
  for (char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') return false;
    any = true;
    d.digits = d.digits * 10 + (c - '0');
    d.decimals += point ? 1 : 0;
    if (d.digits >= kMostDigits || d.decimals > 3 * kMostDecimals) return false;
  }
  // Zeros at the end cost nothing.
  while (d.decimals > 0 && d.digits % 10 == 0) {
    d.digits /= 10;
    --d.decimals;
  }
  *result = d;
  return any && d.decimals <= kMostDecimals;
}

struct ByteSuffix {
  absl::string_view name;
  int64_t bytes;
};
constexpr ByteSuffix kByteUnits[] = {
    {"", 1},
    {"B", 1},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
};

bool ReadBytes(absl::string_view text, Bytes* result) {
  const size_t end = text.find_first_not_of("0123456789.");
  Decimal d;
  if (!ReadDecimal(text.substr(0, end), &d)) return false;
  const absl::string_view unit = end == absl::string_view::npos ? "" : text.substr(end);
  for (const ByteSuffix& u : kByteUnits) {
    if (u.name != unit) continue;
    const absl::uint128 scaled = absl::uint128(d.digits) * absl::uint128(u.bytes);
    const absl::uint128 scale = PowerOfTen(d.decimals);
    if (scaled % scale != 0 || scaled / scale > kMostBytes) return false;
    *result = Bytes(static_cast<int64_t>(scaled / scale));
    return true;
  }
  return false;
}

// Splits `value`, reads each part and repeats a single one.
template <typename T, typename Read>
absl::StatusOr<std::vector<T>> ParseList(absl::string_view option, const std::string& value,
                                         int count, absl::string_view per,
                                         absl::string_view must_be, absl::string_view noun,
                                         Read read) {
  std::vector<T> all;
  for (absl::string_view part : absl::StrSplit(value, ',')) {
    T one;
    if (!read(part, &one)) {
      return absl::InvalidArgumentError(absl::StrCat(
          option, "=", value, ": must be ", must_be,
          per.empty() ? "" : absl::StrCat(", or one for each ", per, ", separated by commas")));
    }
    all.push_back(std::move(one));
  }
  if (per.empty() && all.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", value, ": ", all.size(), " ", noun, "s; give one"));
  }
  if (all.size() == 1 && !per.empty()) all.resize(count, all[0]);
  if (!per.empty() && static_cast<int>(all.size()) != count) {
    return absl::InvalidArgumentError(absl::StrCat(option, "=", value, ": ", all.size(), " ", noun,
                                                   "s, but the schedule has ", count, " ", per,
                                                   "s; give one ", noun, " or one for each"));
  }
  return all;
}

}  // namespace

int64_t PowerOfTen(int n) {
  int64_t power = 1;
  for (; n > 0; --n) power *= 10;
  return power;
}

double Decimal::value() const {
  return static_cast<double>(digits) / static_cast<double>(PowerOfTen(decimals));
}

absl::StatusOr<std::vector<Decimal>> ParseDecimals(absl::string_view option,
                                                   const std::string& value, int count,
                                                   absl::string_view per) {
  return ParseList<Decimal>(
      option, value, count, per,
      absl::StrCat("a decimal number such as 1.5, not negative, with at most ", kMostDecimals,
                   " digits after the point and 15 in all"),
      "number", ReadDecimal);
}

absl::StatusOr<std::vector<Bytes>> ParseByteCounts(absl::string_view option,
                                                   const std::string& value, int count,
                                                   absl::string_view per) {
  return ParseList<Bytes>(option, value, count, per,
                          "whole bytes such as 1000, 64kB, 1.5GB or 64MiB", "size", ReadBytes);
}

}  // namespace pipelab
