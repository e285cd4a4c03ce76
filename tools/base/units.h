// Strong types for quantities, so that a byte count is never taken for a time.
//
//   Bytes b = Bytes(3) * 4;            // 12 bytes
//   Nanoseconds t = Microseconds(5);   // 5000 ns
//   std::string s = ToString(b);       // "12 B"
//
// Times are whole nanoseconds: simulated timelines are exact and equal on every machine.
#ifndef PIPELAB_TOOLS_BASE_UNITS_H_
#define PIPELAB_TOOLS_BASE_UNITS_H_

#include <cstdint>
#include <string>

namespace pipelab {

// A count of `Unit`s. Sums and multiples keep the unit; a ratio of two is a plain double.
template <class Unit, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }

  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, Rep n) { return Quantity(a.value_ * n); }
  friend constexpr Quantity operator*(Rep n, Quantity a) { return Quantity(a.value_ * n); }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }
  friend constexpr bool operator==(Quantity a, Quantity b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Quantity a, Quantity b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value_ > b.value_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value_ >= b.value_; }

 private:
  Rep value_ = 0;
};

using Bytes = Quantity<struct ByteUnit, int64_t>;
using Nanoseconds = Quantity<struct NanosecondUnit, int64_t>;
using Flops = Quantity<struct FlopUnit, double>;  // a count of floating-point operations
using BytesPerSecond = Quantity<struct BytesPerSecondUnit, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondUnit, double>;

constexpr Nanoseconds Microseconds(int64_t n) { return Nanoseconds(n * 1000); }
constexpr Nanoseconds Milliseconds(int64_t n) { return Nanoseconds(n * 1000 * 1000); }
constexpr double ToSeconds(Nanoseconds t) { return static_cast<double>(t.value()) * 1e-9; }
constexpr double ToMilliseconds(Nanoseconds t) { return static_cast<double>(t.value()) * 1e-6; }

// "1.50 MiB", "37.2 ms", "52.0 Gflop": three significant digits and a unit.
std::string ToString(Bytes b);
std::string ToString(Nanoseconds t);
std::string ToString(Flops f);
std::string ToString(BytesPerSecond r);
std::string ToString(FlopsPerSecond r);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_UNITS_H_
