// tools/bazel run //experiments:candle_uno_train
//
// Trains CANDLE-Uno's form of network, a branch of dense layers for each family of descriptors, on
// the inhibitors of cyclooxygenase 2, once for each fold held out, and compares its R2 with that of
// 5 nearest neighbours.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/study/study_list.h"
#include "experiments/train/predict.h"
#include "experiments/train/run_study.h"
#include "models/data/cox2.h"
#include "models/data/descriptors.h"
#include "models/data/metrics.h"
#include "models/data/package_cache.h"
#include "models/zoo/branch_stages.h"
#include "models/zoo/candle_uno.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace candle_uno_train_study {

constexpr uint64_t kSplitSeed = 1;  // as in docs/data.md: folds do not change with --seed
constexpr int kNeighbours = 5;
constexpr double kQuoted = 0.376;  // R2 of 5 nearest neighbours on another split
constexpr int64_t kSyntheticCompounds = 120;

// Descriptors have long tails: the network sees them cut at so many deviations.
constexpr float kMostDeviations = 3;

struct Fold {
  DescriptorData data;
  std::vector<float> targets, ours, neighbours;  // of the held-out compounds, in log10 IC50
};

// The fold's held-out compounds, or a fold of its training compounds in their place.
DescriptorData Split(const DescriptorTable& table, int fold, bool validation) {
  DescriptorData data = SplitDescriptors(table, fold, kSplitSeed);
  return validation ? SplitDescriptors(*data.train, fold, kSplitSeed + 1) : data;
}

std::shared_ptr<const DescriptorTable> WithoutTails(const DescriptorTable& table) {
  auto cut = std::make_shared<DescriptorTable>(table);
  for (float& v : cut->values) v = std::min(std::max(v, -kMostDeviations), kMostDeviations);
  return cut;
}

absl::Status Judge(Fold* fold, const BatchSource& held_out, SerialTrainer* trained) {
  const DescriptorData& data = fold->data;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> ours,
                           Predict(trained, held_out, data.held_out->compounds()));
  const auto undo = [&](const std::vector<float>& values) {
    std::vector<float> out;
    for (const float v : values) {
      out.push_back(static_cast<float>(v * data.target_deviation + data.target_mean));
    }
    return out;
  };
  fold->ours = undo(ours);
  fold->targets = undo(data.held_out->targets);
  fold->neighbours = undo(NearestNeighbours(*data.train, *data.held_out, kNeighbours));
  return absl::OkStatus();
}

Quality Compare(const std::vector<std::shared_ptr<Fold>>& folds) {
  std::vector<float> targets, ours, neighbours;
  const auto append = [](const std::vector<float>& from, std::vector<float>* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  Quality q;
  Quality::Row us = {"CANDLE-Uno", {}},
               near = {absl::StrCat(kNeighbours, " nearest neighbours"), {}};
  q.metrics = {{"r2", "R2, all folds"}};
  for (size_t k = 0; k < folds.size(); ++k) {
    const Fold& fold = *folds[k];
    append(fold.targets, &targets);
    append(fold.ours, &ours);
    append(fold.neighbours, &neighbours);
    q.metrics.push_back({absl::StrCat("r2_fold_", k + 1), absl::StrCat("fold ", k + 1)});
    us.values.push_back(RSquared(fold.targets, fold.ours));
    near.values.push_back(RSquared(fold.targets, fold.neighbours));
  }
  const double pooled = RSquared(targets, ours), baseline = RSquared(targets, neighbours);
  us.values.insert(us.values.begin(), pooled);
  near.values.insert(near.values.begin(), baseline);
  q.caption = absl::StrCat("log10 IC50 of ", targets.size(),
                           " compounds, each predicted when its fold was held out");
  q.rows = {us, near};
  q.claims = {Quality::Above("over_neighbours",
                             absl::StrCat("R2 above that of ", kNeighbours,
                                          " nearest neighbours on the same folds"),
                             pooled, baseline),
              Quality::Above(
                  "over_quoted",
                  absl::StrCat("R2 above what is quoted of ", kNeighbours, " nearest neighbours"),
                  pooled, kQuoted)};
  return q;
}

absl::StatusOr<StudyPart> MakePart(const std::shared_ptr<Fold>& fold, int number,
                                   const StudyRequest& request) {
  const DescriptorData& data = fold->data;
  StudyPart part;
  part.name = absl::StrCat("fold_", number);
  CandleUnoConfig config;
  for (const DescriptorFamily& f : data.train->families)
    config.branches.push_back({f.name, f.count});
  config.layers = 1;
  config.hidden = 64;
  config.join_layers = 1;
  PIPELAB_ASSIGN_OR_RETURN(part.graph, BuildCandleUno(config));
  PIPELAB_ASSIGN_OR_RETURN(part.parallel_stages, BranchStages(part.graph, /*stages_of_branch=*/1));
  part.train = std::make_shared<DescriptorBatchSource>(
      WithoutTails(*data.train), ExampleOrder(data.train->compounds(), request.batch_samples,
                                              request.seed, absl::StrCat("data/", part.name)));
  const auto held_out = std::make_shared<DescriptorBatchSource>(
      WithoutTails(*data.held_out), ExampleOrder(data.held_out->compounds()));
  part.held_out = held_out;
  part.held_out_samples = data.held_out->compounds();
  part.judge = [fold, held_out](SerialTrainer* trained) {
    return Judge(fold.get(), *held_out, trained);
  };
  return part;
}

absl::StatusOr<StudyWork> Load(const StudyRequest& request) {
  DescriptorTable table = SyntheticDescriptors(kSyntheticCompounds, request.seed);
  if (!request.synthetic) {
    PIPELAB_ASSIGN_OR_RETURN(table, FetchCox2(DefaultDataCache()));
  }
  StudyWork work;
  work.data =
      absl::StrCat(request.synthetic ? "synthetic compounds" : "inhibitors of cyclooxygenase 2",
                   " (", table.compounds(), " compounds, ", table.columns, " descriptors)");
  std::vector<std::shared_ptr<Fold>> folds;
  for (int k = 0; k < kFolds; ++k) {
    folds.push_back(std::make_shared<Fold>());
    folds.back()->data = Split(table, k, request.validation);
    PIPELAB_ASSIGN_OR_RETURN(StudyPart part, MakePart(folds.back(), k + 1, request));
    work.parts.push_back(std::move(part));
  }
  work.quality = [folds]() -> absl::StatusOr<Quality> { return Compare(folds); };
  return work;
}

}  // namespace candle_uno_train_study

int RunCandleUnoTrainStudy(int argc, char** argv) {
  Study study;
  study.name = "candle_uno_train";
  study.title = "CANDLE-Uno on cyclooxygenase inhibitors";
  study.summary =
      "Trains CANDLE-Uno's form of network, a branch for each family of descriptors, to predict "
      "how strongly 462 compounds inhibit cyclooxygenase 2, once for each of five folds held out, "
      "and compares it with 5 nearest neighbours.";
  study.loss_unit = "squared deviations";
  study.defaults = {
      {"scheme", "graph"}, {"steps", "160"}, {"micro_batch_size", "8"}, {"micro_batches", "4"}};
  study.optimizer.adam.weight_decay = 6;
  study.quick.clear();  // seconds
  study.load = candle_uno_train_study::Load;
  return RunStudy(argc, argv, study);
}

}  // namespace pipelab
