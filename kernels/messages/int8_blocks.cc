#include "kernels/messages/int8_blocks.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/messages/int8_codes.h"
#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace {

constexpr int64_t kHead = 16;

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
    const float step = Int8BlockStep(LargestFinite(&x[at], size));
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
    if (!(step >= 0 && step <= Int8BlockStep(0x1.fffffep127f))) {
      return bad("step ", step, " of the block from value ", at);
    }
    DecodeInt8(codes + at, std::min(block, n - at), step, &y[at]);
  }
  return absl::OkStatus();
}

}  // namespace pipelab
