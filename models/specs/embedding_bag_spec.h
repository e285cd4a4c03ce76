// A bag of ids as one vector: the sum or the mean of the ids' rows in a table. A branch of sparse
// features (DLRM). What it costs; embedding_bag.cc runs it.
//
//   LayerSpec layer = EmbeddingBagSpec({.name = "genres", .field = "genres", .ids = 10, .rows = 18,
//                                       .width = 16, .mean = true});
//
// Output: {1, width}; zeros for an empty bag. Places of the field without an id (kNoData) do not
// count. It keeps nothing. A table's gradient is as large as the table.
#ifndef PIPELAB_MODELS_SPECS_EMBEDDING_BAG_SPEC_H_
#define PIPELAB_MODELS_SPECS_EMBEDDING_BAG_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kEmbeddingBag[] = "embedding_bag";

struct EmbeddingBagSizes {
  std::string name;
  std::string field;            // of the data: ids
  int64_t ids = 0;              // most ids of a sample
  int64_t rows = 0, width = 0;  // of the table
  bool mean = false;            // else the sum
  double stddev = 0.02;
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct EmbeddingBagParameter {
  enum { kTable };  // [rows, width]
};

LayerSpec EmbeddingBagSpec(const EmbeddingBagSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_EMBEDDING_BAG_SPEC_H_
