// Grey pictures of the PGM format, plain (P2) or raw (P5): what cameras' frames come in without a
// codec (the netpbm manual, pgm(5)).
//
//   PIPELAB_ASSIGN_OR_RETURN(GreyImage image, ParsePgm(bytes, "image.0001.pgm"));
//   image.pixels[row * image.width + column]
//
// One picture a file, of at most 255 grey levels. Errors name the file and what is wrong.
#ifndef PIPELAB_MODELS_DATA_PGM_H_
#define PIPELAB_MODELS_DATA_PGM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct GreyImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [row, column], 0 to 255: scaled where the file has fewer levels
};

// DataLoss where the file ends in mid-picture; InvalidArgument where it is no PGM; Unimplemented
// for pixels of two bytes.
absl::StatusOr<GreyImage> ParsePgm(absl::string_view bytes, absl::string_view file);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_PGM_H_
