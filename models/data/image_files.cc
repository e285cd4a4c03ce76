#include "models/data/image_files.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/data/folder.h"
#include "models/data/idx.h"
#include "models/data/png.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kMostClasses = 256;  // labels are bytes
constexpr int64_t kMostBytes = int64_t{1} << 31;
constexpr int64_t kLeastImages = 10;
constexpr uint64_t kImageFolds = 5;  // of which one is held out

absl::StatusOr<std::vector<std::string>> NamesShownIn(const std::string& folder) {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(folder));
  const auto is_hidden = [](const std::string& name) { return name[0] == '.'; };
  names.erase(std::remove_if(names.begin(), names.end(), is_hidden), names.end());
  return names;
}

absl::Status AddPicture(const std::string& path, const ImageFolderOptions& options, size_t label,
                        LabelledImages* images) {
  if (!absl::EndsWith(absl::AsciiStrToLower(path), ".png")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": must be a PNG file"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  PIPELAB_ASSIGN_OR_RETURN(const PngImage picture, DecodePng(bytes, path));
  const std::vector<uint8_t> rgb = ScaleOnWhite(picture, options.side);
  for (size_t p = 0; p < rgb.size(); p += 3) {
    if (options.channels == 3) {
      images->pixels.insert(images->pixels.end(), rgb.begin() + p, rgb.begin() + p + 3);
    } else {
      images->pixels.push_back(static_cast<uint8_t>((rgb[p] + rgb[p + 1] + rgb[p + 2]) / 3));
    }
  }
  images->labels.push_back(static_cast<uint8_t>(label));
  return absl::OkStatus();
}

void AddImage(const LabelledImages& from, int64_t image, LabelledImages* to) {
  const auto first = from.pixels.begin() + image * from.image_bytes();
  to->pixels.insert(to->pixels.end(), first, first + from.image_bytes());
  to->labels.push_back(from.labels[image]);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LabelledImages>> ReadIdxImages(const std::string& images_path,
                                                                    const std::string& labels_path,
                                                                    int64_t classes) {
  PIPELAB_ASSIGN_OR_RETURN(const IdxArray images, ReadIdx(images_path));
  PIPELAB_ASSIGN_OR_RETURN(const IdxArray labels, ReadIdx(labels_path));
  if (images.dimensions.size() != 3 || images.bytes.empty()) {
    return absl::DataLossError(absl::StrFormat("%s: %d dimensions; images have 3, and none is 0",
                                               images_path, images.dimensions.size()));
  }
  if (labels.dimensions.size() != 1 || labels.dimensions[0] != images.dimensions[0]) {
    return absl::DataLossError(
        absl::StrFormat("%s: %d labels in %d dimensions; there are %d images", labels_path,
                        labels.dimensions[0], labels.dimensions.size(), images.dimensions[0]));
  }
  auto set = std::make_shared<LabelledImages>();
  set->height = images.dimensions[1];
  set->width = images.dimensions[2];
  set->pixels.assign(images.bytes.begin(), images.bytes.end());
  set->labels.assign(labels.bytes.begin(), labels.bytes.end());
  set->classes =
      classes > 0 ? classes : *std::max_element(set->labels.begin(), set->labels.end()) + 1;
  for (size_t i = 0; i < set->labels.size(); ++i) {
    if (set->labels[i] < set->classes) continue;
    return absl::DataLossError(absl::StrFormat("%s: label %d is %d; there are %d classes",
                                               labels_path, i, set->labels[i], set->classes));
  }
  return std::shared_ptr<const LabelledImages>(std::move(set));
}

absl::StatusOr<std::shared_ptr<const LabelledImages>> ReadImageFolder(
    const std::string& folder, const ImageFolderOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> classes, NamesShownIn(folder));
  if (classes.empty() || classes.size() > kMostClasses) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": ", classes.size(),
                                                   " folders; must have one for each class, 1 to ",
                                                   kMostClasses));
  }
  auto images = std::make_shared<LabelledImages>();
  images->height = images->width = options.side;
  images->channels = options.channels;
  images->classes = static_cast<int64_t>(classes.size());
  for (size_t label = 0; label < classes.size(); ++label) {
    const std::string of_class = JoinPath(folder, classes[label]);
    if (!IsDirectory(of_class)) {
      return absl::InvalidArgumentError(
          absl::StrCat(of_class, ": must be a folder with the pictures of one class"));
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesShownIn(of_class));
    if (files.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(of_class, ": has no picture"));
    }
    for (const std::string& file : files) {
      PIPELAB_RETURN_IF_ERROR(AddPicture(JoinPath(of_class, file), options, label, images.get()));
      if (static_cast<int64_t>(images->pixels.size()) > kMostBytes) {
        return absl::OutOfRangeError(absl::StrCat(folder, ": more than 2 GiB of pixels"));
      }
    }
  }
  return std::shared_ptr<const LabelledImages>(std::move(images));
}

absl::StatusOr<ImageData> SplitImages(const LabelledImages& images, absl::string_view name,
                                      uint64_t seed) {
  if (images.size() < kLeastImages) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", images.size(),
                                                   " images; must have at least ", kLeastImages,
                                                   ", to hold some out"));
  }
  auto train = std::make_shared<LabelledImages>(), held_out = std::make_shared<LabelledImages>();
  for (LabelledImages* part : {train.get(), held_out.get()}) {
    part->height = images.height;
    part->width = images.width;
    part->channels = images.channels;
    part->classes = images.classes;
  }
  const Shuffle shuffle(static_cast<uint64_t>(images.size()), seed, "data/images/split");
  for (int64_t i = 0; i < images.size(); ++i) {
    const bool out = shuffle.At(static_cast<uint64_t>(i)) % kImageFolds == 0;
    AddImage(images, i, out ? held_out.get() : train.get());
  }
  const PixelScale scale = ScaleOf(*train);
  return ImageData{std::string(name), std::move(train), std::move(held_out), scale};
}

}  // namespace pipelab
