// tools/bazel run //experiments:amoebanet_train
//
// Trains a small AmoebaNet-D on Fashion-MNIST and compares its accuracy on the package's test
// images with that of the nearest class mean.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/study/study_list.h"
#include "experiments/train/predict.h"
#include "experiments/train/run_study.h"
#include "models/data/fashion_mnist.h"
#include "models/data/images.h"
#include "models/data/metrics.h"
#include "models/data/package_cache.h"
#include "models/zoo/amoebanet.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace amoebanet_train_study {

constexpr double kWanted = 0.90;             // accuracy
constexpr int64_t kValidationImages = 5000;  // the last of the training images
constexpr int64_t kCurveImages = 1000;

struct Images {
  ImageData data;
  double ours = 0, nearest_mean = 0;  // accuracy
  std::vector<double> exits;          // of blocks that learn locally (--scheme=local)
};

std::shared_ptr<const LabelledImages> Slice(const LabelledImages& images, int64_t begin,
                                            int64_t end) {
  auto part = std::make_shared<LabelledImages>(images);
  const int64_t bytes = images.image_bytes();
  part->pixels.assign(images.pixels.begin() + begin * bytes, images.pixels.begin() + end * bytes);
  part->labels.assign(images.labels.begin() + begin, images.labels.begin() + end);
  return part;
}

// The last training images take the place of the test images.
void HoldOutTrainingImages(ImageData* data) {
  const int64_t n = data->train->size(), kept = n - std::min(kValidationImages, n / 5);
  data->held_out = Slice(*data->train, kept, n);
  data->train = Slice(*data->train, 0, kept);
}

absl::StatusOr<ModelGraph> Network(const LabelledImages& images) {
  PIPELAB_ASSIGN_OR_RETURN(
      GroupedModel model,
      BuildAmoebaNet(SmallAmoebaNet(images.height, images.width, images.channels, images.classes)));
  return std::move(model.graph);
}

absl::Status Judge(Images* images, const BatchSource& held_out, SerialTrainer* trained) {
  const LabelledImages& asked = *images->data.held_out;
  PIPELAB_ASSIGN_OR_RETURN(images->exits, Accuracies(trained, held_out, asked.labels));
  images->ours = images->exits.back();
  images->exits.pop_back();
  images->nearest_mean = NearestMeanAccuracy(*images->data.train, asked);
  return absl::OkStatus();
}

Quality Compare(const Images& images) {
  Quality q;
  q.caption = absl::StrCat("The class of ", images.data.held_out->size(), " held-out images");
  q.metrics = {{"accuracy", "accuracy", "", 4}};
  q.rows = {{"AmoebaNet-D (3, 32)", {images.ours}}, {"nearest class mean", {images.nearest_mean}}};
  for (size_t i = 0; i < images.exits.size(); ++i) {
    q.rows.push_back({absl::StrCat("head of stage ", i), {images.exits[i]}});
  }
  q.claims = {Quality::Above("accuracy", "accuracy on the test images is that of small networks",
                             images.ours, kWanted),
              Quality::Above("over_nearest_mean", "accuracy above that of the nearest class mean",
                             images.ours, images.nearest_mean)};
  q.notes = {
      "Batch normalisation takes the statistics of each micro-batch in training, and running ones "
      "here."};
  return q;
}

absl::StatusOr<StudyWork> Load(const StudyRequest& request) {
  const auto images = std::make_shared<Images>();
  images->data = SyntheticImages(/*train=*/400, /*held_out=*/40, request.seed);
  if (!request.synthetic) {
    PIPELAB_ASSIGN_OR_RETURN(images->data, FetchFashionMnist(DefaultDataCache()));
  }
  if (request.validation) HoldOutTrainingImages(&images->data);
  const ImageData& data = images->data;

  StudyPart part;
  PIPELAB_ASSIGN_OR_RETURN(part.graph, Network(*data.train));
  part.train = std::make_shared<ImageBatchSource>(
      data.train, data.scale, ImageOptions(),
      ExampleOrder(data.train->size(), request.batch_samples, request.seed, "data/images"));
  const auto held_out = std::make_shared<ImageBatchSource>(
      data.held_out, data.scale, ImageOptions(), ExampleOrder(data.held_out->size()));
  part.held_out = held_out;
  part.held_out_samples = std::min(kCurveImages, data.held_out->size());
  part.judge = [images, held_out](SerialTrainer* trained) {
    return Judge(images.get(), *held_out, trained);
  };

  StudyWork work;
  work.data =
      absl::StrCat(request.synthetic ? "synthetic images" : "Fashion-MNIST", " (",
                   data.train->size(), " for training, ", data.held_out->size(), " held out)");
  work.parts.push_back(std::move(part));
  work.quality = [images]() -> absl::StatusOr<Quality> { return Compare(*images); };
  return work;
}

}  // namespace amoebanet_train_study

int RunAmoebanetTrainStudy(int argc, char** argv) {
  Study study;
  study.name = "amoebanet_train";
  study.title = "AmoebaNet-D on Fashion-MNIST";
  study.summary =
      "Trains a small AmoebaNet-D (3 normal cells, 2 reductions, 32 filters) on Fashion-MNIST, to "
      "tell ten kinds of clothes apart, and compares it with the nearest class mean.";
  study.defaults = {{"scheme", "1f1b"},        {"devices", "2"},         {"steps", "5000"},
                    {"micro_batch_size", "8"}, {"micro_batches", "8"},   {"learning_rate", "0.004"},
                    {"warmup_steps", "100"},   {"rate_decay", "cosine"}, {"weight_decay", "0.01"},
                    {"compare_steps", "3"}};
  study.load = amoebanet_train_study::Load;
  return RunStudy(argc, argv, study);
}

}  // namespace pipelab
