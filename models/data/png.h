// PNG pictures, decoded by libpng, and brought to a small size on white.
//
//   PIPELAB_ASSIGN_OR_RETURN(PngImage picture, DecodePng(bytes, "a.png"));
//   std::vector<uint8_t> rgb = ScaleOnWhite(picture, /*side=*/32);       // [32, 32, 3]
#ifndef PIPELAB_MODELS_DATA_PNG_H_
#define PIPELAB_MODELS_DATA_PNG_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct PngImage {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgba;  // [height, width, 4], alpha not multiplied in
};

// OutOfRange for more than `limit` pixels, DataLoss for what is no whole PNG; `what` names it.
absl::StatusOr<PngImage> DecodePng(absl::string_view bytes, absl::string_view what,
                                   int64_t limit = 1 << 22);

// The picture in the middle of a white square as wide as its longer side, brought to side x side:
// each pixel is the mean of the area that it covers.
std::vector<uint8_t> ScaleOnWhite(const PngImage& picture, int64_t side);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_PNG_H_
