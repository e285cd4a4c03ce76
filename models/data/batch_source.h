// Where training samples come from: a pure function of (step, sample), so every stage of every
// scheme can ask for the same batch, in any order, from any thread.
//
//   const int image = source.FindField("image");                  // -1 where it has none
//   std::vector<float> x(8 * source.fields()[image].size());
//   source.FillFloats(image, step, /*first_sample=*/0, absl::MakeSpan(x));       // 8 samples
#ifndef PIPELAB_MODELS_DATA_BATCH_SOURCE_H_
#define PIPELAB_MODELS_DATA_BATCH_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/graph/data_field.h"

namespace pipelab {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  const std::vector<DataField>& fields() const { return fields_; }
  int FindField(absl::string_view name) const;  // place in fields(), or -1
  // The field must be there (CHECKed).
  const DataField& Field(absl::string_view name) const;
  // Numbers in a sample's field kTargets: losses are means over them.
  int64_t targets_per_sample() const { return Field(kTargets).size(); }

  // The same number where fields and samples are the same, as some samples of some steps tell: 16
  // hexadecimal digits.
  std::string Fingerprint() const;

  // One field of the samples [first_sample, first_sample + n) of the step's batch, n from the
  // span's size. A field has one of the two, by its type.
  virtual void FillFloats(int field, int64_t step, int64_t first_sample,
                          absl::Span<float> out) const;
  virtual void FillIds(int field, int64_t step, int64_t first_sample,
                       absl::Span<int32_t> out) const;

 protected:
  // Names are unique, one is kTargets, and ids have limits (CHECKed).
  explicit BatchSource(std::vector<DataField> fields);
  // How many samples `out` holds: a whole number (CHECKed).
  int64_t SamplesIn(int field, size_t out) const;

 private:
  const std::vector<DataField> fields_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_BATCH_SOURCE_H_
