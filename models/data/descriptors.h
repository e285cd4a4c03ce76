// Compounds with numeric descriptors in named families and one number to predict (CANDLE-Uno's
// form: a branch of the network for each family).
//
//   DescriptorTable table = SyntheticDescriptors(/*compounds=*/200, /*seed=*/1);
//   const DescriptorData data = SplitDescriptors(table, /*fold=*/0, /*seed=*/1);
//   DescriptorBatchSource train(data.train, ExampleOrder(data.train->compounds(), 32, 1, "data"));
//   RSquared(data.held_out->targets, NearestNeighbours(*data.train, *data.held_out, 5));
//
// Fields: one of each family's name, floats [descriptors of the family], and "targets", a float.
// Numbers are (x - mean) / deviation of the training part, targets too; a descriptor that does not
// vary there is 0.
#ifndef PIPELAB_MODELS_DATA_DESCRIPTORS_H_
#define PIPELAB_MODELS_DATA_DESCRIPTORS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/data/example_source.h"

namespace pipelab {

struct DescriptorFamily {
  std::string name;      // "QikProp"
  int64_t first, count;  // its columns
};

struct DescriptorTable {
  std::string name;  // "cox2", "synthetic"
  std::vector<DescriptorFamily> families;
  int64_t columns = 0;
  std::vector<float> values;   // [compound, column]
  std::vector<float> targets;  // log10 of the concentration, for cox2

  int64_t compounds() const { return static_cast<int64_t>(targets.size()); }
};

// Three families; the target is a smooth function of hidden numbers that all of them show, under
// noise.
DescriptorTable SyntheticDescriptors(int64_t compounds, uint64_t seed);

// One of kFolds parts held out, and all standardised by the rest.
constexpr int kFolds = 5;
struct DescriptorData {
  std::string name;
  std::shared_ptr<const DescriptorTable> train, held_out;
  double target_mean = 0, target_deviation = 1;  // of the training part, to undo it
};
DescriptorData SplitDescriptors(const DescriptorTable& table, int fold, uint64_t seed);

// The mean target of the k training compounds at the least distance; of equals the first.
std::vector<float> NearestNeighbours(const DescriptorTable& train, const DescriptorTable& asked,
                                     int k);

// R2 of such predictions, each compound asked when its fold is held out.
double NearestNeighboursRSquared(const DescriptorTable& table, int k, uint64_t seed);

class DescriptorBatchSource final : public ExampleSource {
 public:
  // The order's examples are the compounds (CHECKed).
  DescriptorBatchSource(std::shared_ptr<const DescriptorTable> table, ExampleOrder order);

 private:
  void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const override;

  const std::shared_ptr<const DescriptorTable> table_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_DESCRIPTORS_H_
