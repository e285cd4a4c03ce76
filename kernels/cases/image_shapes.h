// The shapes of image kernels and embedding bags, as shapes.h has those of the others.
#ifndef PIPELAB_KERNELS_CASES_IMAGE_SHAPES_H_
#define PIPELAB_KERNELS_CASES_IMAGE_SHAPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cases/shapes.h"

namespace pipelab {

std::vector<ConvolutionShape> ConvolutionShapes(CaseSize size);
std::vector<PoolingShape> PoolingShapes(CaseSize size);
std::vector<RowsSize> BatchNormShapes(CaseSize size);

struct BagShape {
  int64_t samples, bag, rows, width;
  BagMode mode;
};
std::vector<BagShape> BagShapes(CaseSize size);

// "16x28x28x32->64/3x3/stride2x2/pad1x1"
std::string ToString(const ConvolutionShape& shape);
std::string ToString(const PoolingShape& shape);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CASES_IMAGE_SHAPES_H_
