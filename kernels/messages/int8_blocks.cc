#include "kernels/messages/int8_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/simd.h"
#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace {

constexpr int64_t kHead = 16;
constexpr int8_t kNanCode = -128;
constexpr uint32_t kInfinityBits = 0x7f800000;

PIPELAB_INLINE uint32_t SizeBits(float x) { return __builtin_bit_cast(uint32_t, x) & 0x7fffffff; }

// The largest absolute value; 0 if none is finite.
PIPELAB_SIMD float LargestFinite(const float* x, int64_t n) {
  uint32_t largest = 0;  // encodings of floats that are not negative are in the order of floats
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = SizeBits(x[i]);
    largest = std::max(largest, bits & -static_cast<uint32_t>(bits < kInfinityBits));
  }
  return __builtin_bit_cast(float, largest);
}

// The least bfloat16 of which 127 reach `largest`, which is finite.
float StepOf(float largest) {
  // Cut to bfloat16, a quotient is the step or the one below it.
  const uint32_t bits = __builtin_bit_cast(uint32_t, largest / 127) & 0xffff0000;
  const float step = __builtin_bit_cast(float, bits);
  if (127 * static_cast<double>(step) >= largest) return step;
  return __builtin_bit_cast(float, bits + 0x10000);
}

// The quotient by way of double is off by less than 2^-44. Value and step are of 24 and 8 bits, so
// a quotient that is no tie (a whole number and a half) is 2^-25 away from one at least. Rounding
// it to multiples of 2^-30 makes ties of ties again and of nothing else: the code is that of the
// exact quotient. A multiplication and an addition that the compiler joins change nothing in this.
PIPELAB_SIMD void EncodeInt8(const float* x, int64_t n, float step, int8_t* codes) {
  const double inverse = step > 0 ? 1 / static_cast<double>(step) : 0;
  constexpr double kToFine = 0x1.8p22, kToWhole = 0x1.8p52;
  for (int64_t i = 0; i < n; ++i) {
    const bool finite = SizeBits(x[i]) < kInfinityBits;
    const double value = finite ? x[i] : 0.0f;
    const double quotient = (value * inverse + kToFine) - kToFine;
    // Its low bits are the whole number in two's complement.
    const uint64_t whole = __builtin_bit_cast(uint64_t, quotient + kToWhole);
    codes[i] = finite ? static_cast<int8_t>(whole) : kNanCode;
  }
}

// Products are of 15 bits and whole multiples of 2^-133, so exact. The only step of which 127 are
// more than float32 holds is (1 + 2^-6) 2^121, and 126.1 of it are: no value has code 127 then.
PIPELAB_SIMD void DecodeInt8(const int8_t* codes, int64_t n, float step, float* y) {
  const float nan = __builtin_bit_cast(float, uint32_t{0x7fc00000});
  for (int64_t i = 0; i < n; ++i) {
    const float value = static_cast<float>(codes[i]) * step;
    y[i] = codes[i] == kNanCode ? nan : value;
  }
}

}  // namespace

absl::StatusOr<std::string> ToInt8Message(absl::Span<const float> x, int64_t block) {
  if (block < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("8-bit messages with blocks of ", block, " values"));
  }
  const auto n = static_cast<int64_t>(x.size());
  std::string message;
  message.reserve(Int8MessageBytes(n, block));
  ByteWriter(&message).Int(n).Int(block);
  message.resize(Int8MessageBytes(n, block));
  char* steps = &message[kHead];
  auto* codes = reinterpret_cast<int8_t*>(&message[message.size() - n]);
  for (int64_t at = 0; at < n; at += std::min(block, n - at)) {
    const int64_t size = std::min(block, n - at);
    const float step = StepOf(LargestFinite(&x[at], size));
    const BFloat16 stored(step);
    std::memcpy(steps, &stored, sizeof(stored));
    steps += sizeof(stored);
    EncodeInt8(&x[at], size, step, codes + at);
  }
  return message;
}

absl::Status FromInt8Message(absl::string_view message, absl::Span<float> y) {
  const auto bad = [](const auto&... what) {
    return absl::DataLossError(absl::StrCat("8-bit message: ", what...));
  };
  ByteReader in(message);
  const auto n = static_cast<int64_t>(y.size());
  const int64_t said = in.Int();
  const int64_t block = in.Int();
  if (!in.ok()) return bad(message.size(), " bytes are less than its head");
  if (said != n) return bad(said, " values where ", n, " were expected");
  if (block < 1) return bad("blocks of ", block, " values");
  const int64_t bytes = Int8MessageBytes(n, block);
  if (static_cast<int64_t>(message.size()) != bytes) {
    return bad(message.size(), " bytes where ", bytes, " are ", n, " values in blocks of ", block);
  }
  const auto* codes = reinterpret_cast<const int8_t*>(message.data() + message.size() - n);
  for (int64_t at = 0; at < n; at += std::min(block, n - at)) {
    BFloat16 stored(0);
    in.Raw(&stored, sizeof(stored));
    const float step = stored;
    if (std::signbit(step) || !(step <= StepOf(0x1.fffffep127f))) {
      return bad("step ", step, " of the block from value ", at);
    }
    DecodeInt8(codes + at, std::min(block, n - at), step, &y[at]);
  }
  return absl::OkStatus();
}

}  // namespace pipelab
