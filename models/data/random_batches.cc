#include "models/data/random_batches.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {

std::vector<DataField> FieldsOf(const ModelGraph& graph) {
  std::vector<DataField> fields;
  for (const LayerSpec& layer : graph.layers) {
    for (const DataField& field : layer.data) {
      const bool known = std::any_of(fields.begin(), fields.end(),
                                     [&](const DataField& f) { return f.name == field.name; });
      if (!known) fields.push_back(field);
    }
  }
  return fields;
}

RandomBatches::RandomBatches(std::vector<DataField> fields, int64_t samples, uint64_t seed)
    : BatchSource(std::move(fields)), samples_(samples) {
  CHECK_GT(samples, 0);
  for (const DataField& field : this->fields()) {
    const CounterRng rng(seed, absl::StrCat("data/random/", field.name));
    const int64_t size = samples * field.size();
    std::vector<float>& floats = floats_.emplace_back();
    std::vector<int32_t>& ids = ids_.emplace_back();
    for (int64_t i = 0; i < size; ++i) {
      if (field.type == FieldType::kFloat) {
        floats.push_back(rng.Normal(i));
      } else {
        ids.push_back(static_cast<int32_t>(rng.Below(i, field.limit)));
      }
    }
  }
}

void RandomBatches::FillFloats(int field, int64_t, int64_t first_sample,
                               absl::Span<float> out) const {
  Fill(field, first_sample, floats_[field], out);
}

void RandomBatches::FillIds(int field, int64_t, int64_t first_sample,
                            absl::Span<int32_t> out) const {
  Fill(field, first_sample, ids_[field], out);
}

template <typename T>
void RandomBatches::Fill(int field, int64_t first_sample, const std::vector<T>& values,
                         absl::Span<T> out) const {
  const int64_t size = fields()[field].size(), count = SamplesIn(field, out.size());
  CHECK_EQ(static_cast<int64_t>(values.size()), samples_ * size)
      << "field \"" << fields()[field].name << "\" is of the other type";
  for (int64_t i = 0; i < count; ++i) {
    const auto from = values.begin() + (first_sample + i) % samples_ * size;
    std::copy(from, from + size, out.begin() + i * size);
  }
}

}  // namespace pipelab
