// Sums of float32 vectors that have the same bits for every order, grouping and history: they are
// exact, and rounded once.
//
//   OrderFreeSum mine(gradient.size());
//   PIPELAB_RETURN_IF_ERROR(mine.Add(gradient));             // one vector of this many values
//   PIPELAB_ASSIGN_OR_RETURN(const OrderFreeSum theirs,      // what a peer has summed
//                            OrderFreeSum::FromBytes(bytes, mine.values()));
//   PIPELAB_RETURN_IF_ERROR(mine.Merge(theirs));
//   mine.Round(absl::MakeSpan(sum));                         // of both
//
// Round gives the float32 nearest to the exact sum of each element, ties to even, so its error is
// at most half a unit in the last place, also after cancellation. Infinity stands for sums from
// 2^128 - 2^103 on, by their final value alone: what is between may be larger. A sum of zero is +0,
// whatever the signs of its zeros. An element is NaN (0x7fc00000) where a NaN came or infinities of
// both signs, infinite where infinities of one sign came.
//
// How: a float32 is a whole number, below 2^277, of 2^-149. Digits of 40 bits, of which digit d
// counts 2^(40 d - 149), take its parts and lie in int64, so that 2^22 vectors need no carry.
// Blocks of 64 elements keep only the digits that some addend touched: usually two for gradients
// (16 bytes a value), seven at most (56).
//
// Errors: InvalidArgument for another number of values, ResourceExhausted beyond kMostVectors, each
// with nothing added; DataLoss for bytes that ToBytes does not write.
//
// Papers: Kulisch and Miranker, Computer Arithmetic in Theory and Practice, 1981, for long
// accumulators; Demmel and Nguyen, "Fast reproducible floating-point summation", ARITH 2013, for
// the problem and a cheaper sum that is not exact.
#ifndef PIPELAB_KERNELS_MESSAGES_ORDER_FREE_SUM_H_
#define PIPELAB_KERNELS_MESSAGES_ORDER_FREE_SUM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pipelab {

class OrderFreeSum {
 public:
  static constexpr int64_t kMostVectors = int64_t{1} << 22;

  explicit OrderFreeSum(int64_t values);

  absl::Status Add(absl::Span<const float> x);
  absl::Status Merge(const OrderFreeSum& other);  // may be this one
  void Round(absl::Span<float> sum) const;        // CHECKs the size

  // The same bytes whenever the same vectors were added. Numbers lie as in memory
  // (kernels/comm/byte_codec.h): 16 bytes, and for each block 3, 8 for a value's digit, and 1 a
  // value if a NaN or an infinity came.
  std::string ToBytes() const;
  // `values` is what the reader expects, which bounds the memory: the sender's word does not.
  static absl::StatusOr<OrderFreeSum> FromBytes(absl::string_view bytes, int64_t values);

  int64_t values() const { return values_; }
  int64_t vectors() const { return vectors_; }  // that were added, also by way of Merge
  int64_t memory_bytes() const;

 private:
  struct Block {
    int first = 0, count = 0;      // digits [first, first + count)
    std::vector<int64_t> digits;   // [count][64]
    std::vector<uint8_t> special;  // [64], what came that is not finite; empty if nothing did
  };
  static void Widen(int first, int end, Block* block);
  static void AddBlock(const float* x, int64_t n, Block* block);
  absl::Status CheckRoom(int64_t vectors) const;

  int64_t values_;
  int64_t vectors_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_MESSAGES_ORDER_FREE_SUM_H_
