// A product with 4-bit weights, as its kernels take it, and the kernels of this processor.
//
//   const Int4Activations x(Int4Math::kInt8, matrix, x_MK, m);
//   for (const Int4Path& path : Int4Paths(Int4Math::kInt8)) {   // best first
//     path.run(matrix, x, /*first panel=*/0, matrix.shape.panels(), y_MN);
//   }
//
// A kernel computes columns of whole panels, so threads may divide them; the bits stay the same.
// Kernels of one math differ in the order of float32 sums alone.
#ifndef PIPELAB_KERNELS_CPU_INT4_INT4_CALL_H_
#define PIPELAB_KERNELS_CPU_INT4_INT4_CALL_H_

#include <cstdint>
#include <vector>

#include "kernels/int4_layout.h"
#include "kernels/int4_weights.h"
#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace cpu {

struct Int4Matrix {
  Int4Shape shape;
  const int32_t* codes;    // [panels, units, 32]
  const BFloat16* scales;  // [panels, groups, 32]
  Int4Book book;
};
Int4Matrix MatrixOf(const Int4Weights& weights);  // which must outlive it

// The numbers of a code book as int8; with u[i] = values[i] + zero they begin at 0.
struct Int8Book {
  explicit Int8Book(const Int4Book& numbers);
  int zero = 0;
  bool is_code = true;  // u[i] = i
  int8_t values[16] = {};
  uint8_t u[16] = {};
};

// M rows, padded with zeros to whole units, in the form that the math takes.
struct Int4Activations {
  Int4Activations(Int4Math math, const Int4Matrix& matrix, const float* x_MK, int64_t m);

  Int4Math math;
  int64_t m, k;  // k: padded
  int64_t spans;
  Int4Factors book;
  std::vector<float> floats;    // [M, k]; rounded for bfloat16
  std::vector<uint32_t> pairs;  // bfloat16: [M, k / 2], of rows 2 i and 2 i + 1
  // int8: the units' rows in the order 0 4 1 5 2 6 3 7; a step for each span; and what dot products
  // with u have too much, negative.
  std::vector<int8_t> bytes;    // [M, k]
  std::vector<float> steps;     // [M, spans], with the book's step
  std::vector<int32_t> excess;  // [M, spans]
  Int8Book int8_book;

 private:
  void MakeBytes(const Int4Shape& shape, const float* x_MK);
};

using Int4Run = void (*)(const Int4Matrix& matrix, const Int4Activations& x, int64_t first_panel,
                         int64_t last_panel, float* y_MN);

struct Int4Path {
  const char* name;  // "avx512_vnni"
  Int4Run run;
};

// What this processor can do, the fastest first; the last is "plain".
std::vector<Int4Path> Int4Paths(Int4Math math);

// The kernels, one file for each set of instructions. Null where the compiler has none.
Int4Run PlainInt4(Int4Math math);
Int4Run Avx2Int4(Int4Math math);
Int4Run Avx512Int4(Int4Math math);  // null for int8
Int4Run Avx512Bf16Int4();
Int4Run Avx512VnniInt4();

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_INT4_INT4_CALL_H_
