// tools/bazel run //experiments:dlrm_train
//
// Trains DLRM's form of network, embedding bags and dense layers side by side, to predict which
// films users of MovieLens like, and compares its area under the ROC curve with that of user and
// item biases.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/study/study_list.h"
#include "experiments/train/predict.h"
#include "experiments/train/run_study.h"
#include "models/data/metrics.h"
#include "models/data/movielens.h"
#include "models/data/package_cache.h"
#include "models/data/rating_batches.h"
#include "models/data/ratings.h"
#include "models/zoo/branch_stages.h"
#include "models/zoo/dlrm.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace dlrm_train_study {

constexpr uint64_t kSplitSeed = 1;  // as in docs/data.md: the split does not change with --seed
constexpr double kQuoted = 0.772;   // AUC of the bias model on another split
constexpr int64_t kCurveSamples = 2000;

struct Ratings {
  RatingTable table;
  RatingSplit split;
  double ours = 0;  // AUC
};

// A tenth of the training ratings takes the place of the held-out ones.
void HoldOutTrainingRatings(RatingSplit* split) {
  const CounterRng rng(kSplitSeed, "study/ratings/validation");
  RatingSplit inner;
  for (const int64_t rating : split->train) {
    (rng.Below(rating, 10) == 0 ? inner.held_out : inner.train).push_back(rating);
  }
  *split = std::move(inner);
}

absl::StatusOr<ModelGraph> Network(const RatingFeatures& features) {
  DlrmConfig config;
  for (const DataField& field : features.Fields()) {
    if (field.name == kTargets) continue;
    if (field.type == FieldType::kFloat) {
      config.dense.push_back({field.name, field.size()});
    } else {
      config.bags.push_back({field.name, field.size(), field.limit});
    }
  }
  config.dense_layers = 1;
  config.hidden = 64;
  config.embedding = 16;
  config.join_layers = 1;
  config.mean = true;
  return BuildDlrm(config);
}

absl::Status Judge(Ratings* ratings, const BatchSource& held_out, SerialTrainer* trained) {
  const std::vector<int64_t>& asked = ratings->split.held_out;
  PIPELAB_ASSIGN_OR_RETURN(
      const std::vector<float> scores,
      Predict(trained, held_out, static_cast<int64_t>(asked.size()), /*chunk=*/256));
  std::vector<uint8_t> liked;
  for (const int64_t i : asked) liked.push_back(ratings->table.ratings[i].liked());
  ratings->ours = AreaUnderRoc(scores, liked);
  return absl::OkStatus();
}

Quality Compare(const Ratings& ratings) {
  const BiasModel bias(ratings.table, ratings.split.train);
  const double baseline = AreaUnderRoc(bias, ratings.table, ratings.split.held_out);
  Quality q;
  q.caption = absl::StrCat("Which of ", ratings.split.held_out.size(),
                           " held-out ratings have 4 stars or more");
  q.metrics = {{"auc", "area under the ROC curve", "", 4}};
  q.rows = {{"DLRM", {ratings.ours}}, {"user and item bias", {baseline}}};
  q.claims = {
      Quality::Above("over_biases", "AUC above that of user and item bias on the same ratings",
                     ratings.ours, baseline),
      Quality::Above("over_quoted", "AUC above what is quoted of user and item bias", ratings.ours,
                     kQuoted)};
  return q;
}

absl::StatusOr<StudyWork> Load(const StudyRequest& request) {
  const auto ratings = std::make_shared<Ratings>();
  ratings->table = SyntheticRatings(/*users=*/60, /*films=*/80, /*ratings=*/1500, request.seed);
  if (!request.synthetic) {
    PIPELAB_ASSIGN_OR_RETURN(ratings->table, FetchMovieLens(DefaultDataCache()));
  }
  ratings->split = SplitRatings(ratings->table, kSplitSeed);
  if (request.validation) HoldOutTrainingRatings(&ratings->split);
  const RatingSplit& split = ratings->split;
  const auto features =
      std::make_shared<const RatingFeatures>(ratings->table, split.train, RatingOptions());

  StudyPart part;
  PIPELAB_ASSIGN_OR_RETURN(part.graph, Network(*features));
  PIPELAB_ASSIGN_OR_RETURN(part.parallel_stages, BranchStages(part.graph, /*stages_of_branch=*/1));
  part.train = std::make_shared<RatingBatchSource>(
      features, split.train,
      ExampleOrder(static_cast<int64_t>(split.train.size()), request.batch_samples, request.seed,
                   "data/ratings"));
  const auto held_out = std::make_shared<RatingBatchSource>(
      features, split.held_out, ExampleOrder(static_cast<int64_t>(split.held_out.size())));
  part.held_out = held_out;
  part.held_out_samples =
      std::min<int64_t>(kCurveSamples, static_cast<int64_t>(split.held_out.size()));
  part.judge = [ratings, held_out](SerialTrainer* trained) {
    return Judge(ratings.get(), *held_out, trained);
  };

  StudyWork work;
  work.data = absl::StrCat(
      request.synthetic ? "synthetic ratings" : "MovieLens", " (", ratings->table.ratings.size(),
      " ratings of ", ratings->table.films.size(), " films by ", ratings->table.users, " users)");
  work.parts.push_back(std::move(part));
  work.quality = [ratings]() -> absl::StatusOr<Quality> { return Compare(*ratings); };
  return work;
}

}  // namespace dlrm_train_study

int RunDlrmTrainStudy(int argc, char** argv) {
  Study study;
  study.name = "dlrm_train";
  study.title = "DLRM on MovieLens";
  study.summary =
      "Trains DLRM's form of network, embedding bags and dense layers side by side, to predict "
      "which films users of MovieLens like, and compares it with user and item biases.";
  study.defaults = {
      {"scheme", "graph"}, {"steps", "600"}, {"micro_batch_size", "64"}, {"micro_batches", "4"}};
  study.optimizer.adam.weight_decay = 1;
  study.quick.clear();  // seconds
  study.load = dlrm_train_study::Load;
  return RunStudy(argc, argv, study);
}

}  // namespace pipelab
