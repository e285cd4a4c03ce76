// Batch normalisation by itself (most stand in an image_conv layer). What it costs; batch_norm.cc
// runs it.
//
//   LayerSpec layer = BatchNormSpec({.name = "reduce2/norm", .input = 7, .rows = 196,
//                                    .channels = 64});
//
// Rows are a sample's pixels; statistics are over all rows of the micro-batch. Keeps mean and
// variance, and needs its input for the input gradient.
#ifndef PIPELAB_MODELS_SPECS_BATCH_NORM_SPEC_H_
#define PIPELAB_MODELS_SPECS_BATCH_NORM_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kBatchNorm[] = "batch_norm";

struct BatchNormSizes {
  std::string name;
  int input = 0;
  int64_t rows = 0, channels = 0;
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct BatchNormParameter {
  enum { kGamma, kBeta };  // [C]
};

LayerSpec BatchNormSpec(const BatchNormSizes& sizes);

// The operations of a batch normalisation of rows of so many channels.
LayerOperations BatchNormOperations(int64_t rows, int64_t channels);

// Running mean and variance of a layer of this name, for LayerSpec::statistics.
std::vector<ParameterSpec> RunningStatistics(const std::string& name, int64_t channels);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_BATCH_NORM_SPEC_H_
