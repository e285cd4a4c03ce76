// One input of a model that comes from the data set: what a layer asks for, and what a source of
// batches offers (models/data/batch_source.h). The two meet by name.
//
//   DataField{"image", FieldType::kFloat, {1, 28, 28}}
//   DataField{"tokens", FieldType::kId, {128}, /*limit=*/82}     // 0 to 81
#ifndef PIPELAB_MODELS_GRAPH_DATA_FIELD_H_
#define PIPELAB_MODELS_GRAPH_DATA_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipelab {

enum class FieldType : uint8_t {
  kFloat,  // float32
  kId,     // int32, from 0
};

struct DataField {
  std::string name;
  FieldType type = FieldType::kFloat;
  // The shape of one sample, at least one dimension; a batch's tensor has samples times the first.
  std::vector<int64_t> shape;
  int64_t limit = 0;  // ids are below it; 0 for floats
  // Ids may also be kNoData, the mark of places without one: bags with fewer ids, targets that are
  // not asked for.
  bool padded = false;

  int64_t row_size() const {  // numbers in one row of the first dimension
    int64_t n = 1;
    for (size_t i = 1; i < shape.size(); ++i) n *= shape[i];
    return n;
  }
  int64_t size() const { return shape[0] * row_size(); }  // numbers in a sample
  bool operator==(const DataField& o) const {
    return name == o.name && type == o.type && shape == o.shape && limit == o.limit &&
           padded == o.padded;
  }
};

inline constexpr int32_t kNoData = -1;

// What a step's loss is the mean over: every source has a field of this name. Places without a
// target (kNoData) count, so that micro-batches weigh the same.
inline constexpr char kTargets[] = "targets";
// What an image model reads: [height, width, channels] (or with channels first: the source says).
inline constexpr char kImage[] = "image";
// What a language model reads.
inline constexpr char kTokens[] = "tokens";

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_DATA_FIELD_H_
