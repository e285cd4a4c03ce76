// Sums over columns and over everything, in two steps and an order that the sizes alone fix.
//
//   ColumnSums(queue, "BiasGradient", m, n,
//              [=] PIPELAB_DEVICE(int64_t i, int64_t j) { return Two{dy[i * n + j], 0}; },
//              [=] PIPELAB_DEVICE(int64_t j, double sum, double) { db[j] += sum; });
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_SUMS_H_
#define PIPELAB_KERNELS_CUDA_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {

struct Two {
  float first, second;
};

// Two sums for each column j of terms(i, j) over m rows; then result(j, first, second). A block has
// 32 columns, of which eight groups of threads take every eighth row of up to 512; the parts are
// added in double.
template <class Terms, class Result>
void ColumnSums(Queue& queue, const char* kernel, int64_t m, int64_t c, const Terms& terms,
                const Result& result) {
  constexpr int64_t kColumns = 32, kLanes = kThreads / kColumns, kRows = 512, kMostChunks = 128;
  const int64_t tiles = (c + kColumns - 1) / kColumns;
  const int64_t chunks =
      std::max<int64_t>(1, std::min<int64_t>(kMostChunks, (m + kRows - 1) / kRows));
  const int64_t rows = (m + chunks - 1) / chunks;
  double* const parts = static_cast<double*>(queue.Scratch(chunks * c * 2 * 8));
  if (parts == nullptr) return;
  ForEachBlock(queue, kernel, tiles * chunks, 2 * kThreads,
               [=] PIPELAB_DEVICE(Block & block, int64_t b) {
                 const int64_t tile = b % tiles, chunk = b / tiles;
                 const int64_t begin = chunk * rows;
                 const int64_t end = begin + rows < m ? begin + rows : m;
                 float* const shared = block.shared();
                 block.ForEach(kThreads, [&](int64_t t) {
                   const int64_t j = tile * kColumns + t % kColumns;
                   Two sum{0, 0};
                   for (int64_t i = begin + t / kColumns; j < c && i < end; i += kLanes) {
                     const Two term = terms(i, j);
                     sum.first += term.first;
                     sum.second += term.second;
                   }
                   shared[t] = sum.first;
                   shared[kThreads + t] = sum.second;
                 });
                 block.ForEach(kColumns, [&](int64_t t) {
                   const int64_t j = tile * kColumns + t;
                   if (j >= c) return;
                   double first = 0, second = 0;
                   for (int64_t lane = 0; lane < kLanes; ++lane) {
                     first += shared[lane * kColumns + t];
                     second += shared[kThreads + lane * kColumns + t];
                   }
                   parts[(chunk * c + j) * 2] = first;
                   parts[(chunk * c + j) * 2 + 1] = second;
                 });
               });
  ForEach(queue, kernel, c, [=] PIPELAB_DEVICE(int64_t j) {
    double first = 0, second = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      first += parts[(chunk * c + j) * 2];
      second += parts[(chunk * c + j) * 2 + 1];
    }
    result(j, first, second);
  });
}

inline constexpr int64_t kMostParts = 1024;

// *result = the sum of term(i), in double, over n terms. `parts` has room for kMostParts.
template <class Term>
void SumOf(Queue& queue, const char* kernel, int64_t n, const Term& term, double* parts,
           double* result) {
  constexpr int64_t kTerms = 4096;  // of a block, at least
  const int64_t blocks =
      std::max<int64_t>(1, std::min<int64_t>(kMostParts, (n + kTerms - 1) / kTerms));
  const int64_t each = (n + blocks - 1) / blocks;
  ForEachBlock(queue, kernel, blocks, 0, [=] PIPELAB_DEVICE(Block & block, int64_t b) {
    const int64_t begin = b * each, end = begin + each < n ? begin + each : n;
    const double sum = block.Sum(end - begin, [&](int64_t i) { return term(begin + i); });
    block.ForEach(1, [&](int64_t) { parts[b] = sum; });
  });
  ForEachBlock(queue, kernel, 1, 0, [=] PIPELAB_DEVICE(Block & block, int64_t) {
    const double sum = block.Sum(blocks, [&](int64_t i) { return parts[i]; });
    block.ForEach(1, [&](int64_t) { *result = sum; });
  });
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_SUMS_H_
