// The end of a classifier: logits x w + b, and their cross-entropy with the targets. Its output is
// the loss. What it costs; classifier.cc runs it.
//
//   LayerSpec layer = ClassifierSpec({.name = "classifier", .input = 8, .rows = 1, .channels = 512,
//                                     .classes = 1000});
//
// One target a row: rows is 1 for a class of the whole sample, the pixels for one of each. Keeps
// the logits, whose place their gradient takes.
#ifndef PIPELAB_MODELS_SPECS_CLASSIFIER_SPEC_H_
#define PIPELAB_MODELS_SPECS_CLASSIFIER_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kClassifier[] = "classifier";

struct ClassifierSizes {
  std::string name;
  int input = 0;
  int64_t rows = 1;  // of a sample
  int64_t channels = 0, classes = 0;
  double stddev = 0.01;
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct ClassifierParameter {
  enum { kW, kB };  // [channels, classes], [classes]
};

LayerSpec ClassifierSpec(const ClassifierSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_CLASSIFIER_SPEC_H_
