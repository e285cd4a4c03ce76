#include "models/mining/nearest.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include "glog/logging.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"

namespace pipelab {
namespace {

// 576 rows are one call of oneDNN's product (kernels/cpu/sgemm.cc); 1,024 columns keep the block of
// scores in a core's cache while both sides read it.
constexpr int64_t kBlockRows = 576, kBlockColumns = 1024;

bool Better(const Neighbour& a, const Neighbour& b) {
  return a.score > b.score || (a.score == b.score && a.index < b.index);
}

// Whether a score of these may enter a list. The common answer is no, so it is one without branches
// for each score.
bool AnyEnters(const float* scores, int64_t count, float least_of_row, const float* least) {
  int any = 0;
#pragma omp simd reduction(| : any)
  for (int64_t j = 0; j < count; ++j) {
    any |= static_cast<int>(scores[j] >= least_of_row) | static_cast<int>(scores[j] >= least[j]);
  }
  return any != 0;
}

// All of x with every `stride`-th block of y's rows, from block `first`.
void SearchBlocks(const Tensor& x_MD, const Tensor& y_ND, int64_t first, int64_t stride,
                  NeighbourLists* of_x, NeighbourLists* of_y) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const int64_t m = x_MD.dim(0), n = y_ND.dim(0);
  for (int64_t j = first * kBlockColumns; j < n; j += stride * kBlockColumns) {
    const Tensor y = y_ND.Rows(j, std::min(n, j + kBlockColumns));
    for (int64_t i = 0; i < m; i += kBlockRows) {
      const Tensor x = x_MD.Rows(i, std::min(m, i + kBlockRows));
      const Tensor scores = backend->Allocate({x.dim(0), y.dim(0)});
      backend->LinearTransposed(x, y, scores);
      for (int64_t r = 0; r < x.dim(0); ++r) {
        const auto row = scores.f32().subspan(r * y.dim(0), y.dim(0));
        OfferScores(i + r, j, row, of_x, of_y);
      }
    }
  }
}

}  // namespace

NeighbourLists::NeighbourLists(int64_t rows, int k)
    : k_(k),
      lists_(rows * k),
      filled_(rows, 0),
      least_(rows, -std::numeric_limits<float>::infinity()) {
  CHECK_GE(k, 1);
}

absl::Span<const Neighbour> NeighbourLists::Of(int64_t row) const {
  return absl::MakeConstSpan(lists_).subspan(row * k_, filled_[row]);
}

void NeighbourLists::Offer(int64_t row, Neighbour candidate) {
  Neighbour* const list = &lists_[row * k_];
  int& filled = filled_[row];
  if (filled == k_ && !Better(candidate, list[k_ - 1])) return;
  int place = filled < k_ ? filled++ : k_ - 1;
  for (; place > 0 && Better(candidate, list[place - 1]); --place) list[place] = list[place - 1];
  list[place] = candidate;
  if (filled == k_) least_[row] = list[k_ - 1].score;
}

void NeighbourLists::Merge(const NeighbourLists& other) {
  CHECK_EQ(rows(), other.rows());
  for (int64_t row = 0; row < rows(); ++row) {
    for (const Neighbour& n : other.Of(row)) Offer(row, n);
  }
}

void OfferScores(int64_t row, int64_t first, absl::Span<const float> scores, NeighbourLists* of_x,
                 NeighbourLists* of_y) {
  constexpr int64_t kChunk = 64;
  const auto n = static_cast<int64_t>(scores.size());
  const float* const least = of_y->least().data() + first;
  for (int64_t j = 0; j < n; j += kChunk) {
    const int64_t end = std::min(n, j + kChunk);
    if (!AnyEnters(&scores[j], end - j, of_x->least()[row], least + j)) continue;
    for (int64_t c = j; c < end; ++c) {
      if (scores[c] >= of_x->least()[row]) {
        of_x->Offer(row, {static_cast<int32_t>(first + c), scores[c]});
      }
      if (scores[c] >= least[c]) {
        of_y->Offer(first + c, {static_cast<int32_t>(row), scores[c]});
      }
    }
  }
}

Neighbours NearestNeighbours(const Tensor& x_MD, const Tensor& y_ND, int k, int threads) {
  CHECK_GE(threads, 1);
  CHECK_EQ(x_MD.dim(1), y_ND.dim(1));
  Neighbours all(x_MD.dim(0), y_ND.dim(0), k);
  // A thread owns blocks of y with their lists, and has lists of x of its own.
  std::vector<NeighbourLists> parts(threads - 1, NeighbourLists(x_MD.dim(0), k));
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads; ++t) {
    helpers.emplace_back(SearchBlocks, std::cref(x_MD), std::cref(y_ND), t, threads, &parts[t - 1],
                         &all.of_y);
  }
  SearchBlocks(x_MD, y_ND, 0, threads, &all.of_x, &all.of_y);
  for (std::thread& helper : helpers) helper.join();
  for (const NeighbourLists& part : parts) all.of_x.Merge(part);
  return all;
}

}  // namespace pipelab
