// Activations and gradients in 8 bits a value for slow links: whole multiples of a step for each
// block.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::string message, ToInt8Message(x));
//   PIPELAB_RETURN_IF_ERROR(FromInt8Message(message, absl::MakeSpan(y)));   // of as many values
//
// The step of a block is the least bfloat16 of which 127 reach its largest finite absolute value:
// at most (largest / 127) (1 + 2^-7) + 2^-133. A code is value / step rounded to the nearest whole
// number, ties to even, within [-127, 127]; it reads as code * step, which is exact in float32. So
// no value is off by more than half a step (largest / 252, if not subnormal). Zeros read as +0.
// Code -128 is NaN: NaNs and infinities read as NaN, and their neighbours as without them.
// Bits are the same on every processor, whatever the alignment.
//
// A message: values and block as int64 (kernels/comm/byte_codec.h), a bfloat16 step for each block,
// an int8 code for each value: Int8MessageBytes(n, b) = 16 + 2 ceil(n / b) + n bytes, a 3.97th of
// float32 for blocks of 256.
//
// Errors: InvalidArgument for a block of less than 1 value, DataLoss for bytes that are no message
// of so many values.
//
// Papers: Dettmers et al., "8-bit optimizers via block-wise quantization", ICLR 2022, for blocks
// (with a code book in the place of even steps); Ryabinin et al. (SWARM), ICML 2023, for its use.
#ifndef PIPELAB_KERNELS_MESSAGES_INT8_BLOCKS_H_
#define PIPELAB_KERNELS_MESSAGES_INT8_BLOCKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/messages/int8_bytes.h"  // IWYU pragma: export

namespace pipelab {

absl::StatusOr<std::string> ToInt8Message(absl::Span<const float> x, int64_t block = kInt8Block);
// `y` has the values that the reader expects.
absl::Status FromInt8Message(absl::string_view message, absl::Span<float> y);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_MESSAGES_INT8_BLOCKS_H_
