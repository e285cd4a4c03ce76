// Fashion-MNIST: 60,000 training and 10,000 test images of clothes, grey, 28x28, in 10 classes
// (Xiao et al., arXiv:1708.07747), from Debian's package dataset-fashion-mnist (Expat).
//
//   PIPELAB_ASSIGN_OR_RETURN(ImageData data, FetchFashionMnist(DefaultDataCache()));
//
// The held-out part is the package's own test set. Its README lists accuracies of small
// convolutional networks of 0.876 to 0.934, and 0.835 of people without training.
// Errors: see package_cache.h; IsUnavailable means that generated images may stand in, named as
// such.
#ifndef PIPELAB_MODELS_DATA_FASHION_MNIST_H_
#define PIPELAB_MODELS_DATA_FASHION_MNIST_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/images.h"
#include "models/data/package_cache.h"

namespace pipelab {

const DebianPackage& FashionMnistPackage();

absl::StatusOr<ImageData> LoadFashionMnist(absl::string_view package_dir);

// From the cache, or through apt into the cache.
absl::StatusOr<ImageData> FetchFashionMnist(absl::string_view cache_dir,
                                            const FetchOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_FASHION_MNIST_H_
