// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. The first byte says how many values are expected, the rest is a message. A sum that is
// read writes the same bytes again, and can be merged and rounded; an 8-bit message has the bytes
// of its closed form.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/messages/int8_blocks.h"
#include "kernels/messages/order_free_sum.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::vector<float> values(data[0]);
  const absl::string_view message(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto sum = pipelab::OrderFreeSum::FromBytes(message, data[0]);
  if (sum.ok()) {
    if (sum->ToBytes() != message) __builtin_trap();
    sum->Round(absl::MakeSpan(values));
    if (sum->vectors() <= pipelab::OrderFreeSum::kMostVectors / 2 && !sum->Merge(*sum).ok()) {
      __builtin_trap();
    }
    sum->Round(absl::MakeSpan(values));
  }
  if (pipelab::FromInt8Message(message, absl::MakeSpan(values)).ok()) {
    int64_t block;
    std::memcpy(&block, message.data() + 8, sizeof(block));
    const int64_t bytes = pipelab::Int8MessageBytes(static_cast<int64_t>(values.size()), block);
    if (bytes != static_cast<int64_t>(message.size())) __builtin_trap();
    if (!pipelab::ToInt8Message(values, block).ok()) __builtin_trap();
  }
  return 0;
}
