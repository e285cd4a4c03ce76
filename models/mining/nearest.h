// Exact nearest neighbours by inner product, of all rows of x among those of y and the reverse,
// from one blocked matrix product.
//
//   const Neighbours near = NearestNeighbours(x_MD, y_ND, /*k=*/4, /*threads=*/2);
//   near.of_x.Of(7)[0].index;      // the row of y that is nearest to row 7 of x
//   near.of_y.Of(2)[0].score;      // the inner product of row 2 of y with its nearest row of x
//
// Rows of unit length make inner products cosines. Scores are float32. Best first; of equal scores
// the smaller index comes first, so that the lists are one exact answer, whatever the order in
// which scores come. Blocks of the product have sizes of their own, so bits are the same for any
// number of threads.
//
// Memory beside x and y: the lists, 8 k bytes a row (times `threads` for x), and a block of 2.4 MB
// for each thread. The matrix of all scores is never whole.
#ifndef PIPELAB_MODELS_MINING_NEAREST_H_
#define PIPELAB_MODELS_MINING_NEAREST_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

struct Neighbour {
  int32_t index = -1;  // -1: none
  float score = 0;
};

// The best k that each of `rows` rows was offered.
class NeighbourLists {
 public:
  NeighbourLists(int64_t rows, int k);

  int k() const { return k_; }
  int64_t rows() const { return static_cast<int64_t>(least_.size()); }
  // Best first; shorter where fewer than k were offered.
  absl::Span<const Neighbour> Of(int64_t row) const;

  void Offer(int64_t row, Neighbour candidate);
  void Merge(const NeighbourLists& other);  // of as many rows (CHECKed)

  // By row: a score below this changes nothing. Minus infinity while the list is not full.
  absl::Span<const float> least() const { return least_; }

 private:
  int k_;
  std::vector<Neighbour> lists_;
  std::vector<int> filled_;
  std::vector<float> least_;
};

struct Neighbours {
  Neighbours(int64_t x_rows, int64_t y_rows, int k) : of_x(x_rows, k), of_y(y_rows, k) {}

  // The score of x's row `x` with y's row `y`, both ways.
  void Offer(int32_t x, int32_t y, float score) {
    of_x.Offer(x, {y, score});
    of_y.Offer(y, {x, score});
  }

  NeighbourLists of_x, of_y;
};

// float32 on the host, with as many columns; k and threads at least 1 (CHECKed).
Neighbours NearestNeighbours(const Tensor& x_MD, const Tensor& y_ND, int k, int threads);

// A row of scores offered both ways: scores[j] is that of x's `row` with y's first + j.
void OfferScores(int64_t row, int64_t first, absl::Span<const float> scores, NeighbourLists* of_x,
                 NeighbourLists* of_y);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_NEAREST_H_
