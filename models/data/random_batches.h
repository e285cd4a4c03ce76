// Random data of any fields: what a network is trained on when only its speed is asked for.
//
//   RandomBatches batches(FieldsOf(graph), /*samples=*/32, /*seed=*/1);
//
// A training step's batch is the same `samples` samples again and again, drawn once: reading them
// is a copy. Floats are normal, ids uniform below the field's limit.
#ifndef PIPELAB_MODELS_DATA_RANDOM_BATCHES_H_
#define PIPELAB_MODELS_DATA_RANDOM_BATCHES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// All that the graph's layers read, each once.
std::vector<DataField> FieldsOf(const ModelGraph& graph);

class RandomBatches final : public BatchSource {
 public:
  // At least one sample (CHECKed).
  RandomBatches(std::vector<DataField> fields, int64_t samples, uint64_t seed);

  void FillFloats(int field, int64_t step, int64_t first_sample,
                  absl::Span<float> out) const override;
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out) const override;

 private:
  template <typename T>
  void Fill(int field, int64_t first_sample, const std::vector<T>& values, absl::Span<T> out) const;

  const int64_t samples_;
  std::vector<std::vector<float>> floats_;  // [field][sample, ...]
  std::vector<std::vector<int32_t>> ids_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_RANDOM_BATCHES_H_
