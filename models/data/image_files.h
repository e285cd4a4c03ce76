// Labelled images from a user's files.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto a, ReadIdxImages("train-images-idx3-ubyte.gz",
//                                                  "train-labels-idx1-ubyte.gz", /*classes=*/10));
//   PIPELAB_ASSIGN_OR_RETURN(auto b, ReadImageFolder("pictures", {/*side=*/32, /*channels=*/3}));
//
// A folder of pictures has one folder for each class, in the order of their names, with PNG files
// in it; each becomes side x side on white. MNIST's files are of the IDX format (idx.h).
//
// Errors name the file or folder, and what would be right.
#ifndef PIPELAB_MODELS_DATA_IMAGE_FILES_H_
#define PIPELAB_MODELS_DATA_IMAGE_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/images.h"

namespace pipelab {

// `classes` 0: one more than the largest label.
absl::StatusOr<std::shared_ptr<const LabelledImages>> ReadIdxImages(const std::string& images_path,
                                                                    const std::string& labels_path,
                                                                    int64_t classes = 0);

struct ImageFolderOptions {
  int64_t side = 28;
  int64_t channels = 3;  // 3: red, green, blue; 1: their mean
};
// At most 256 classes, in labels of a byte. Files that do not end in .png are refused by name.
absl::StatusOr<std::shared_ptr<const LabelledImages>> ReadImageFolder(
    const std::string& folder, const ImageFolderOptions& options);

// One image in five held out, drawn by the seed. InvalidArgument for fewer than ten images.
absl::StatusOr<ImageData> SplitImages(const LabelledImages& images, absl::string_view name,
                                      uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_IMAGE_FILES_H_
