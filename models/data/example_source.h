// A source of batches over a fixed set of examples. Who comes when is ExampleOrder's; a data set
// only writes one example's fields.
//
//   class Numbers : public ExampleSource {
//    public:
//     explicit Numbers(ExampleOrder order)
//         : ExampleSource({{kTargets, FieldType::kId, {1}, 10}}, std::move(order)) {}
//    private:
//     void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override {
//       out[0] = draw.example % 10;
//     }
//   };
#ifndef PIPELAB_MODELS_DATA_EXAMPLE_SOURCE_H_
#define PIPELAB_MODELS_DATA_EXAMPLE_SOURCE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "models/data/batch_source.h"
#include "models/data/example_order.h"

namespace pipelab {

class ExampleSource : public BatchSource {
 public:
  int64_t examples() const { return order_.examples(); }
  const ExampleOrder& order() const { return order_; }

  void FillFloats(int field, int64_t step, int64_t first_sample, absl::Span<float> out) const final;
  void FillIds(int field, int64_t step, int64_t first_sample, absl::Span<int32_t> out) const final;

 protected:
  struct Draw {
    int64_t example;
    int64_t step, sample;  // key what is random about it
  };

  ExampleSource(std::vector<DataField> fields, ExampleOrder order)
      : BatchSource(std::move(fields)), order_(std::move(order)) {}

 private:
  // One example's field: `out` has its size.
  virtual void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const;
  virtual void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const;

  const ExampleOrder order_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EXAMPLE_SOURCE_H_
