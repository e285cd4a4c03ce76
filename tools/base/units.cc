#include "tools/base/units.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace pipelab {
namespace {

// Scales |v| down by `base` until it fits its prefix; three significant digits.
std::string WithPrefix(double v, double base, absl::Span<const char* const> units) {
  size_t i = 0;
  while (std::abs(v) >= base && i + 1 < units.size()) {
    v /= base;
    ++i;
  }
  const double a = std::abs(v);
  const int digits = a >= 100 || v == std::floor(v) ? 0 : a >= 10 ? 1 : 2;
  return absl::StrFormat("%.*f %s", digits, v, units[i]);
}

}  // namespace

std::string ToString(Bytes b) {
  return WithPrefix(static_cast<double>(b.value()), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}
std::string ToString(Nanoseconds t) {
  return WithPrefix(static_cast<double>(t.value()), 1000, {"ns", "us", "ms", "s"});
}
std::string ToString(Flops f) {
  return WithPrefix(f.value(), 1000,
                    {"flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop", "Eflop"});
}
std::string ToString(BytesPerSecond r) {
  return WithPrefix(r.value(), 1000, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"});
}
std::string ToString(FlopsPerSecond r) {
  return WithPrefix(r.value(), 1000,
                    {"flop/s", "kflop/s", "Mflop/s", "Gflop/s", "Tflop/s", "Pflop/s"});
}

}  // namespace pipelab
