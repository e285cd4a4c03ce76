// Where a parameter's numbers are in a tensor of transformers' files, for the layouts of
// hugging_face_families.h.
#ifndef PIPELAB_MODELS_FILES_HUGGING_FACE_TENSORS_H_
#define PIPELAB_MODELS_FILES_HUGGING_FACE_TENSORS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/files/hugging_face_families.h"

namespace pipelab {

// A tensor, or a part of it, that is the columns [column, column + width) of a parameter, or of one
// expert's.
struct TensorPart {
  std::string name;
  WeightLayout layout = WeightLayout::kSame;
  bool vector = false;
  int64_t rows = 0, width = 0, column = 0;
  double scale = 1;
  // The sizes of a tensor [outputs, inputs], in which the part's outputs may be a range.
  int64_t inputs = 0, outputs = 0, first_output = 0;
  int64_t patch = 0;                     // side
  int64_t rope_size = 0, nope_size = 0;  // of a head, which turn and which do not
};

// The tensor's shape; of kFirstRows its least.
std::vector<int64_t> ShapeOf(const TensorPart& part);
// The place in it of the part's number in row i and column j.
int64_t PlaceOf(const TensorPart& part, int64_t i, int64_t j);

// "block#/mlp/w1" and "3" of "block3/mlp/w1".
std::pair<std::string, std::string> PatternOf(absl::string_view name);
// "a{x,y}b" as "axb" and "ayb".
std::vector<std::string> PartsOf(const std::string& pattern);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_HUGGING_FACE_TENSORS_H_
