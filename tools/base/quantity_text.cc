#include "tools/base/quantity_text.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace pipelab {
namespace {

struct Prefix {
  absl::string_view name;
  double factor;
};
constexpr Prefix kDecimal[] = {{"", 1},     {"k", 1e3},  {"M", 1e6}, {"G", 1e9},
                               {"T", 1e12}, {"P", 1e15}, {"E", 1e18}};
constexpr double kKi = 1024;
constexpr Prefix kBinary[] = {{"Ki", kKi},
                              {"Mi", kKi* kKi},
                              {"Gi", kKi* kKi* kKi},
                              {"Ti", kKi* kKi* kKi* kKi},
                              {"Pi", kKi* kKi* kKi* kKi* kKi}};
constexpr Prefix kTime[] = {{"", 1e9}, {"m", 1e6}, {"u", 1e3}, {"n", 1}};

absl::optional<double> FactorOf(absl::string_view unit, absl::string_view base,
                                absl::Span<const Prefix> prefixes) {
  if (!absl::ConsumeSuffix(&unit, base)) return absl::nullopt;
  for (const Prefix& prefix : prefixes) {
    if (unit == prefix.name) return prefix.factor;
  }
  return absl::nullopt;
}

absl::optional<double> ByteFactor(absl::string_view unit, absl::string_view base) {
  const auto decimal = FactorOf(unit, base, kDecimal);
  return decimal.has_value() ? decimal : FactorOf(unit, base, kBinary);
}

// What one of the unit is in the quantity's own; none where it is not a unit of the quantity.
template <typename Q>
absl::optional<double> UnitFactor(absl::string_view unit);
template <>
absl::optional<double> UnitFactor<Bytes>(absl::string_view unit) {
  return ByteFactor(unit, "B");
}
template <>
absl::optional<double> UnitFactor<BytesPerSecond>(absl::string_view unit) {
  for (const char* base : {"bit/s", "b/s", "bps"}) {
    const auto bits = FactorOf(unit, base, kDecimal);
    if (bits.has_value()) return *bits / 8;
  }
  return ByteFactor(unit, "B/s");
}
template <>
absl::optional<double> UnitFactor<Flops>(absl::string_view unit) {
  const auto flops = FactorOf(unit, "flop", kDecimal);
  return flops.has_value() ? flops : FactorOf(unit, "FLOP", kDecimal);
}
template <>
absl::optional<double> UnitFactor<FlopsPerSecond>(absl::string_view unit) {
  for (const char* base : {"flop/s", "FLOP/s", "FLOPs/s", "flops", "FLOPS"}) {
    const auto rate = FactorOf(unit, base, kDecimal);
    if (rate.has_value()) return rate;
  }
  return absl::nullopt;
}
template <>
absl::optional<double> UnitFactor<Nanoseconds>(absl::string_view unit) {
  return FactorOf(unit, "s", kTime);
}

template <typename Q>
const char* Example();
template <>
const char* Example<Bytes>() {
  return "16 GiB";
}
template <>
const char* Example<BytesPerSecond>() {
  return "25 GB/s";
}
template <>
const char* Example<Flops>() {
  return "2.5 Gflop";
}
template <>
const char* Example<FlopsPerSecond>() {
  return "125 Tflop/s";
}
template <>
const char* Example<Nanoseconds>() {
  return "5 us";
}

// The first character that no number has: units begin with a letter, and "e" belongs to the number
// only before its exponent.
size_t EndOfNumber(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    const bool exponent =
        (c == 'e' || c == 'E') && i + 1 < text.size() &&
        (absl::ascii_isdigit(text[i + 1]) || text[i + 1] == '-' || text[i + 1] == '+');
    const bool sign = c == '-' || c == '+';
    if (!absl::ascii_isdigit(c) && c != '.' && !sign && !exponent) break;
    ++i;
  }
  return i;
}

}  // namespace

template <typename Q>
absl::StatusOr<Q> ParseQuantity(absl::string_view text) {
  const auto error = [&](absl::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": ", reason, ", such as \"", Example<Q>(), "\""));
  };
  const size_t end = EndOfNumber(text);
  double number = 0;
  if (end == 0 || !absl::SimpleAtod(text.substr(0, end), &number)) {
    return error("must be a number and a unit");
  }
  absl::string_view unit = text.substr(end);
  absl::ConsumePrefix(&unit, " ");
  if (unit.empty()) return error("the unit is missing; must be a number and a unit");
  const absl::optional<double> factor = UnitFactor<Q>(unit);
  if (!factor.has_value()) {
    return error(absl::StrCat("\"", unit, "\" is not a unit here; must be a number and a unit"));
  }
  const double value = number * *factor;
  if (!std::isfinite(value) || value < 0) return error("must be finite and not negative");
  using Rep = decltype(Q().value());
  if constexpr (std::is_integral<Rep>::value) {
    // 2^63 itself is a double, the largest integer is not.
    if (value >= static_cast<double>(std::numeric_limits<Rep>::max())) return error("is too large");
    return Q(static_cast<Rep>(std::llround(value)));
  } else {
    return Q(value);
  }
}

template absl::StatusOr<Bytes> ParseQuantity(absl::string_view text);
template absl::StatusOr<Nanoseconds> ParseQuantity(absl::string_view text);
template absl::StatusOr<Flops> ParseQuantity(absl::string_view text);
template absl::StatusOr<BytesPerSecond> ParseQuantity(absl::string_view text);
template absl::StatusOr<FlopsPerSecond> ParseQuantity(absl::string_view text);

}  // namespace pipelab
