#include "models/data/fashion_mnist.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/data/image_files.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kArticles = 10;
constexpr absl::string_view kFilesFolder = "usr/share/datasets/fashion-mnist";

absl::StatusOr<std::shared_ptr<const LabelledImages>> LoadPart(absl::string_view package_dir,
                                                               absl::string_view part) {
  const std::string base = JoinPath(JoinPath(package_dir, kFilesFolder), part);
  const std::string images_path = absl::StrCat(base, "-images-idx3-ubyte.gz");
  const std::string labels_path = absl::StrCat(base, "-labels-idx1-ubyte.gz");
  return ReadIdxImages(images_path, labels_path, kArticles);
}

}  // namespace

const DebianPackage& FashionMnistPackage() {
  static const auto& package =
      *new DebianPackage{"dataset-fashion-mnist", "0.0~git20200523.55506a9-1",
                         "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0"};
  return package;
}

absl::StatusOr<ImageData> LoadFashionMnist(absl::string_view package_dir) {
  ImageData data;
  data.name = "fashion-mnist";
  PIPELAB_ASSIGN_OR_RETURN(data.train, LoadPart(package_dir, "train"));
  PIPELAB_ASSIGN_OR_RETURN(data.held_out, LoadPart(package_dir, "t10k"));
  if (data.train->image_bytes() != data.held_out->image_bytes()) {
    return absl::DataLossError(absl::StrCat(package_dir, ": training and test images of ",
                                            data.train->image_bytes(), " and ",
                                            data.held_out->image_bytes(), " pixels"));
  }
  data.scale = ScaleOf(*data.train);
  return data;
}

absl::StatusOr<ImageData> FetchFashionMnist(absl::string_view cache_dir,
                                            const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(FashionMnistPackage(), cache_dir, options));
  return LoadFashionMnist(dir);
}

}  // namespace pipelab
