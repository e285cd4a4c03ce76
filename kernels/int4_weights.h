// A matrix of weights in 4 bits each, in the layout that products read.
//
//   Int4Weights w = PackInt4({k, n, /*group=*/128}, SignedInt4(), codes_KN, scales_GN, &arena);
//   backend->quantized().Product(Int4Math::kInt8, x_MK, w, y_MN);
//
// The weight in row i and column j is book[code] * scale: one of sixteen numbers by its code, times
// the scale of rows [g group, (g + 1) group) of the column. Codes are 0 to 15, scales bfloat16.
//
// Layout: panels of 32 columns, one after the other. A panel has, for every 8 rows (a unit), an
// int32 for each of its columns. Row r of the 8 is at bits 4 (r / 2 + 4 (r % 2)): 16-bit halves
// have rows of one parity, so that one shift and one lookup give the pairs of rows that dot
// products of bfloat16 take, and two masks the quads that those of int8 take. Rows and columns
// beyond the matrix have code 0, and columns scale 0. With groups of 128 it is 4.125 bits a weight.
//
// Papers: Frantar et al. (MARLIN), PPoPP 2025, arXiv 2408.11743, for the product; Dettmers et al.
// (QLoRA), NeurIPS 2023, for NF4.
#ifndef PIPELAB_KERNELS_INT4_WEIGHTS_H_
#define PIPELAB_KERNELS_INT4_WEIGHTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/int4_layout.h"  // IWYU pragma: export
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

using Int4Book = std::array<float, 16>;
Int4Book SignedInt4();  // code - 8
// NormalFloat4: quantiles of a normal distribution, in [-1, 1].
Int4Book NormalFloat4();

// What a math takes a code book for: numbers, times a step.
struct Int4Factors {
  Int4Book numbers;
  float step = 1;
};
Int4Factors FactorsOfBook(Int4Math math, const Int4Book& book);

struct Int4Weights {
  Int4Shape shape;
  Int4Book book;
  Tensor codes;   // int32 [panels, units, 32]
  Tensor scales;  // bfloat16 [panels, groups, 32]
  int64_t bytes() const { return codes.bytes() + scales.bytes(); }
};

void CheckInt4Shape(const Int4Shape& shape);  // or CHECK

// CHECKs sizes and codes below 16. Scales are rounded to bfloat16.
Int4Weights PackInt4(const Int4Shape& shape, const Int4Book& book,
                     absl::Span<const uint8_t> codes_KN, absl::Span<const float> scales_GN,
                     Arena* arena);

struct Int4Codes {
  std::vector<uint8_t> codes_KN;
  std::vector<float> scales_GN;
};
Int4Codes UnpackInt4(const Int4Weights& weights);
// book[code] * scale, in float32.
std::vector<float> Int4Values(const Int4Weights& weights);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_INT4_WEIGHTS_H_
