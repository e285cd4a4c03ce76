// The one list of shapes that every check of the kernels uses: parity with the reference, gradient
// checks, determinism, speed. Add a shape here and all of them see it.
//
//   for (const MatmulSize& size : MatmulShapes(CaseSize::kSmall)) ...
//
// kSmall: odd sizes, single rows, block borders; cheap enough for finite differences.
// kMedium: sizes past every internal block (panels, 64 query rows, vectors); parity too.
// kLarge: a micro-batch of a real small GPT; speed only.
#ifndef PIPELAB_KERNELS_CASES_SHAPES_H_
#define PIPELAB_KERNELS_CASES_SHAPES_H_

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/shape_checks.h"

namespace pipelab {

enum class CaseSize { kSmall, kMedium, kLarge };

struct DropoutShape {
  int64_t elements;
  float rate;
  uint64_t offset;
};
struct EmbeddingShape {
  int64_t samples, tokens, vocabulary, width;
};
struct QuantizedShape {
  Int4Shape shape;
  int64_t m;
  bool normal_float = false;
};
struct ExpertShape {
  RouterShape router;
  int64_t width, inner;  // of a token, of an expert
};
struct AdamShape {
  int64_t elements, step;
  float weight_decay;
};

inline std::vector<MatmulSize> MatmulShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 1, 1}, {1, 7, 5}, {5, 3, 1}, {17, 16, 33}};
    case CaseSize::kMedium:  // the last: several panels of rows, the final one short
      return {{64, 64, 192}, {100, 130, 99}, {150, 24, 1100}};
    case CaseSize::kLarge:
      return {{1024, 256, 768},
              {1024, 256, 256},
              {1024, 256, 1024},
              {1024, 1024, 256},
              {1024, 256, 100}};
  }
  return {};
}

inline std::vector<RowsSize> NormShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 2}, {3, 5}, {5, 33}, {3, 40}};
    case CaseSize::kMedium:
      return {{67, 256}, {8, 1023}};
    case CaseSize::kLarge:
      return {{1024, 256}};
  }
  return {};
}

inline constexpr int32_t kThreeAndFive[] = {3, 5};  // lengths of two sequences

inline std::vector<CrossAttentionShape> CrossAttentionShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 1, 1, 1, 1},
              {2, 3, 5, 2, 3},
              {1, 7, 2, 3, 4},
              {1, 66, 3, 1, 2},
              {2, 4, 6, 2, 3, kThreeAndFive},
              // Self attention of some of the queries: full, causal, shared keys, q in wider rows.
              {2, 3, 6, 4, 3, {}, 2, false, 0, 20},
              {1, 3, 8, 4, 2, {}, 2, true, 0, 12},
              {2, 4, 9, 2, 3, {}, 1, true, 3, 9, true},
              {1, 66, 70, 1, 2, {}, 0, true, 4, 0, true},
              // With windows; values that are narrower than keys, or wider.
              {2, 4, 9, 2, 3, {}, 1, true, 3, 9, true, 2},
              {1, 68, 70, 1, 2, {}, 0, true, 2, 0, false, 3},
              {2, 5, 5, 2, 3, {}, 0, true, 0, 0, false, 0, 2},
              {1, 3, 6, 3, 2, {}, 0, false, 0, 8, false, 0, 5},
              {1, 67, 70, 2, 2, {}, 0, true, 3, 0, true, 5, 1},
              {2, 3, 7, 2, 3, {}, 0, false, 0, 0, true, 0, 2, 3},
              // Queries that come behind the keys, and what these add to their gradient.
              {2, 4, 5, 4, 3, {}, 2, true, 7, 20, true, 0, 0, 0, true},
              {1, 68, 70, 1, 2, {}, 0, true, 80, 0, true, 79, 0, 0, true},
              {1, 3, 8, 2, 3, {}, 0, false, 0, 0, true, 0, 2, 3, true}};
    case CaseSize::kMedium:
      return {{2, 70, 150, 2, 16},
              {1, 130, 65, 2, 32},
              {2, 100, 40, 1, 20, kThreeAndFive},
              {2, 70, 150, 4, 16, {}, 2, true, 60, 128},
              {1, 130, 200, 2, 32, {}, 2, true, 70, 192, true},
              {1, 130, 200, 4, 32, {}, 2, true, 70, 192, true, 50},
              {2, 130, 130, 3, 24, {}, 0, true, 0, 0, false, 0, 16},
              {1, 70, 150, 2, 20, {}, 0, true, 80, 0, true, 33, 40},
              {1, 130, 150, 4, 32, {}, 2, true, 160, 192, true, 150, 0, 64, true}};
    case CaseSize::kLarge:
      return {{8, 64, 128, 4, 64}, {4, 128, 128, 4, 96, {}, 0, true, 0, 0, false, 0, 64}};
  }
  return {};
}

inline std::vector<AttentionShape> AttentionShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 1, 1, 1, true},
              {2, 5, 2, 3, true},
              {1, 6, 3, 4, false},
              {1, 67, 1, 2, true},
              // Slices of the queries: the first, one in the middle, the last.
              {2, 5, 2, 3, true, 0, 2},
              {2, 7, 2, 3, true, 2, 4},
              {2, 5, 2, 3, true, 3, 2},
              {1, 6, 3, 4, false, 2, 3},
              // Sequences of three and five tokens, padded to six.
              {2, 6, 2, 3, false, 0, 0, kThreeAndFive},
              // Heads that share keys: some, all.
              {2, 5, 4, 3, true, 0, 0, {}, 2},
              {1, 67, 6, 2, false, 0, 0, {}, 2},
              {2, 7, 4, 3, true, 2, 4, {}, 1},
              {2, 5, 4, 3, true, 3, 2, {}, 2},
              {2, 6, 3, 3, false, 0, 0, kThreeAndFive, 1},
              // Windows: of the token itself, of some, of more than there are; over two blocks.
              {2, 5, 2, 3, true, 0, 0, {}, 0, 1},
              {2, 7, 4, 3, true, 2, 4, {}, 2, 3},
              {1, 5, 2, 3, true, 0, 0, {}, 0, 9},
              {1, 67, 1, 2, true, 0, 0, {}, 0, 2},
              // Tiles of keys: of one, of some, past what the first rows of a block see.
              {2, 5, 2, 3, true, 0, 0, {}, 0, 0, 1},
              {2, 7, 4, 3, true, 2, 4, {}, 2, 3, 2},
              {1, 130, 2, 2, true, 0, 0, {}, 1, 0, 50},
              {2, 6, 2, 3, false, 0, 0, kThreeAndFive, 0, 0, 4}};
    case CaseSize::kMedium:
      return {{1, 129, 6, 20, true, 0, 0, {}, 2},
              {2, 200, 2, 16, true, 0, 0, {}, 0, 64},
              {1, 200, 4, 20, true, 64, 100, {}, 2, 50},
              {1, 300, 1, 64, true, 192, 108, {}, 0, 70},
              {2, 200, 4, 16, true, 0, 0, {}, 2, 0, 64},
              {1, 300, 2, 20, true, 64, 236, {}, 0, 70, 33},
              {2, 130, 4, 16, false, 0, 0, kThreeAndFive, 2},
              {2, 200, 4, 16, true, 64, 64, {}, 1},
              {1, 200, 4, 64, true, 128, 72, {}, 2},
              {2, 64, 2, 32, true},
              {1, 129, 3, 20, true},
              {1, 100, 2, 64, false},
              {1, 200, 1, 16, true},
              {2, 200, 2, 16, true, 64, 64},
              {1, 200, 2, 20, true, 30, 100},
              {1, 200, 1, 16, true, 128, 72},
              {2, 130, 2, 16, false, 0, 0, kThreeAndFive},
              // Tiles of 16 by 16 and of 64 rows, whole and not, up to every width that a kernel
              // pads heads to, and past the last.
              {1, 1, 2, 128, true},
              {2, 15, 2, 8, false},
              {1, 16, 2, 16, true},
              {1, 17, 1, 16, false},
              {1, 33, 2, 20, true},
              {1, 33, 1, 32, false},
              {1, 64, 1, 64, false},
              {1, 65, 1, 80, true},
              {2, 17, 1, 96, false},
              {1, 100, 1, 128, true},
              {1, 64, 1, 128, false},
              {1, 20, 1, 130, true},
              {1, 100, 1, 128, true, 64, 36},
              {1, 100, 2, 64, true, 15, 33},
              {1, 160, 1, 8, true, 0, 64},
              {1, 64, 1, 20, true, 16, 17},
              {1, 3, 520, 1, true}};  // more heads than a block takes of the gradient's statistics
    case CaseSize::kLarge:
      return {{8, 128, 4, 64, true},
              {8, 128, 4, 64, false},
              {4, 256, 8, 32, true},
              {4, 256, 8, 32, true, 192, 64},
              {4, 512, 8, 32, true, 0, 0, {}, 0, 128}};
  }
  return {};
}

inline std::vector<int64_t> ElementCounts(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {1, 15, 37};
    case CaseSize::kMedium:
      return {1000, 4096};
    case CaseSize::kLarge:
      return {1024 * 1024};
  }
  return {};
}

inline std::vector<DropoutShape> DropoutShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 0.5f, 3}, {37, 0.1f, 0}, {37, 0, 5}};
    case CaseSize::kMedium:  // offsets off the blocks of four; one that carries into the high word
      return {{1000, 0.25f, 1}, {4099, 0.1f, (uint64_t{1} << 34) - 130}};
    case CaseSize::kLarge:
      return {{1024 * 256, 0.1f, 0}, {1024 * 256, 0, 0}};
  }
  return {};
}

inline std::vector<EmbeddingShape> EmbeddingShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 1, 1, 1}, {2, 3, 4, 5}};
    case CaseSize::kMedium:  // few words, so that rows of the table collect many gradients
      return {{3, 65, 7, 100}};
    case CaseSize::kLarge:
      return {{8, 128, 100, 256}};
  }
  return {};
}

// One expert; some, shared ones, sigmoids, weights as they are, and with tokens dropped.
inline std::vector<ExpertShape> ExpertShapes(CaseSize size) {
  constexpr RouterScores kSoftmax = RouterScores::kSoftmax, kSigmoid = RouterScores::kSigmoid;
  switch (size) {
    case CaseSize::kSmall:
      return {{{1, 1, 1, 1}, 1, 1},
              {{2, 5, 4, 2}, 3, 5},
              {{1, 7, 5, 3, 2, kSigmoid, true, 2.5f}, 4, 3},
              {{2, 6, 3, 1, 0, kSoftmax, false}, 5, 2},
              {{2, 9, 4, 2, 1, kSoftmax, true, 1, 3}, 2, 7},
              {{2, 7, 6, 2, 1, kSigmoid, true, 2, 0, 3, 2}, 3, 2},
              {{1, 9, 8, 3, 0, kSoftmax, true, 1, 0, 8, 4}, 2, 2}};
    case CaseSize::kMedium:
      return {{{2, 64, 16, 4}, 40, 24},
              {{3, 50, 8, 2, 1, kSigmoid, false, 1.5f, 9}, 33, 65},
              {{2, 60, 32, 4, 1, kSigmoid, true, 2.5f, 0, 8, 2}, 20, 17}};
    case CaseSize::kLarge:
      return {{{8, 128, 8, 2}, 256, 512}};
  }
  return {};
}

inline std::vector<QuantizedShape> QuantizedShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{{1, 1, 1}, 1}, {{37, 5, 32}, 3}, {{40, 33, 40}, 2, true}};
    case CaseSize::kMedium:
      return {{{300, 70, 128}, 9},
              {{256, 64, 64}, 16, true},
              {{129, 40, 129}, 4},
              {{550, 72, 32}, 21},
              {{200, 33, 64}, 70, true}};
    case CaseSize::kLarge:
      return {{{4096, 4096, 128}, 1}, {{4096, 4096, 128}, 8}, {{4096, 4096, 128}, 128}};
  }
  return {};
}

inline std::vector<RowsSize> LossShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 1}, {3, 7}, {2, 40}};
    case CaseSize::kMedium:
      return {{65, 100}, {9, 1025}};
    case CaseSize::kLarge:
      return {{1024, 100}};
  }
  return {};
}

inline std::vector<AdamShape> AdamShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{1, 1, 0}, {37, 2, 0.1f}};
    case CaseSize::kMedium:
      return {{1003, 1000, 0.01f}};
    case CaseSize::kLarge:
      return {{1024 * 1024, 10, 0.01f}};
  }
  return {};
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CASES_SHAPES_H_
