#include "models/data/example_source.h"

#include "glog/logging.h"

namespace pipelab {

void ExampleSource::FillFloats(int field, int64_t step, int64_t first_sample,
                               absl::Span<float> out) const {
  CHECK(fields()[field].type == FieldType::kFloat) << fields()[field].name;
  const int64_t size = fields()[field].size(), samples = SamplesIn(field, out.size());
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t sample = first_sample + i;
    WriteFloats(field, {order_.ExampleAt(step, sample), step, sample}, out.subspan(i * size, size));
  }
}

void ExampleSource::FillIds(int field, int64_t step, int64_t first_sample,
                            absl::Span<int32_t> out) const {
  CHECK(fields()[field].type == FieldType::kId) << fields()[field].name;
  const int64_t size = fields()[field].size(), samples = SamplesIn(field, out.size());
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t sample = first_sample + i;
    WriteIds(field, {order_.ExampleAt(step, sample), step, sample}, out.subspan(i * size, size));
  }
}

void ExampleSource::WriteFloats(int field, const Draw&, absl::Span<float>) const {
  LOG(FATAL) << "field \"" << fields()[field].name << "\" is not written";
}

void ExampleSource::WriteIds(int field, const Draw&, absl::Span<int32_t>) const {
  LOG(FATAL) << "field \"" << fields()[field].name << "\" is not written";
}

}  // namespace pipelab
