#include "pipelines/graphs/preparation.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

using Stage = PreparationStage;

absl::Status CheckTaken(const PreparationSizes& s) {
  if (s.taken.empty()) return absl::OkStatus();
  std::vector<int> sorted = s.taken, last(std::max(1, s.workers), -1);
  std::sort(sorted.begin(), sorted.end());
  bool fits = static_cast<int>(sorted.size()) == s.batches;
  for (int m = 0; m < s.batches && fits; ++m) fits = sorted[m] == m;
  for (size_t i = 0; i < s.taken.size() && fits; ++i) {
    int& before = last[s.taken[i] % last.size()];
    fits = s.taken[i] > before;
    before = s.taken[i];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("batches in the order in which they are taken: each of ", s.batches,
                   " must be there once, and those of a worker in order"));
}

absl::Status Check(const PreparationSizes& s) {
  const auto at_least = [](const char* name, int value, int least) {
    return value >= least ? absl::OkStatus()
                          : absl::InvalidArgumentError(
                                absl::StrCat("--", name, "=", value, ": must be at least ", least));
  };
  for (const absl::Status& status :
       {at_least("workers", s.workers, 0), at_least("depth", s.depth, 1),
        at_least("batches", s.batches, 1), at_least("copies", s.copies, 1)}) {
    if (!status.ok()) return status;
  }
  if (s.batches >= std::numeric_limits<int16_t>::max()) {  // weight versions
    return absl::InvalidArgumentError(absl::StrCat("--batches=", s.batches, ": must be below ",
                                                   std::numeric_limits<int16_t>::max(),
                                                   ", one optimizer step each"));
  }
  return CheckTaken(s);
}

Action Make(ActionKind kind, int stage, int batch, int version) {
  Action a;
  a.kind = kind;
  a.stage = static_cast<int16_t>(stage);
  a.micro_batch = batch;
  a.version = static_cast<int16_t>(version);
  return a;
}

}  // namespace

int DevicesOfCopy(const PreparationSizes& s) { return 1 + s.workers + (s.copy_engine ? 1 : 0); }

int TrainerOf(const PreparationSizes& s, int copy) { return copy * DevicesOfCopy(s); }

int DeviceOf(const PreparationSizes& s, int copy, int stage, int batch) {
  const int trainer = TrainerOf(s, copy);
  if (stage == Stage::kTrain) return trainer;
  if (stage == Stage::kMove && s.copy_engine) return trainer + 1 + s.workers;
  return s.workers == 0 ? trainer : trainer + 1 + batch % s.workers;
}

absl::StatusOr<Schedule> MakePreparation(const PreparationSizes& sizes) {
  if (absl::Status status = Check(sizes); !status.ok()) return status;
  constexpr Reads kNone = Reads::None();
  Schedule s;
  s.name = "preparation";
  s.stages = StageGraph::FromEdges(Stage::kStages,
                                   {{Stage::kSample, Stage::kGather, kNone},
                                    {Stage::kGather, Stage::kMove, kNone},
                                    {Stage::kMove, Stage::kTrain, kNone},
                                    {Stage::kTrain, Stage::kSample, kNone, Reads::List()}});
  s.prepares = {1, 1, 1, 0};
  s.num_micro_batches = sizes.batches;
  const int replicas = std::max(1, sizes.workers);
  s.placement.num_devices = sizes.copies * DevicesOfCopy(sizes);
  s.placement.groups.assign(replicas, std::vector<std::vector<int>>(Stage::kStages));
  s.order.resize(s.placement.num_devices);
  for (int r = 0; r < replicas; ++r) {
    for (int stage = 0; stage < Stage::kStages; ++stage) {
      for (int copy = 0; copy < sizes.copies; ++copy) {
        s.placement.groups[r][stage].push_back(DeviceOf(sizes, copy, stage, r));
      }
    }
  }
  const int ahead = replicas * sizes.depth;
  for (int m = 0; m < sizes.batches; ++m) {
    s.placement.replica_of_micro_batch.push_back(m % replicas);
    s.carried.push_back(sizes.workers > 0 && m >= ahead ? m - ahead : -1);
    for (int copy = 0; copy < sizes.copies; ++copy) {
      for (int stage = 0; stage < Stage::kTrain; ++stage) {
        s.order[DeviceOf(sizes, copy, stage, m)].push_back(Make(ActionKind::kForward, stage, m, 0));
      }
      const int taken = sizes.taken.empty() ? m : sizes.taken[m];
      std::vector<Action>& trainer = s.order[TrainerOf(sizes, copy)];
      trainer.push_back(Make(ActionKind::kForward, Stage::kTrain, taken, m));
      trainer.push_back(Make(ActionKind::kBackward, Stage::kTrain, taken, m));
      trainer.push_back(Make(ActionKind::kStep, Stage::kTrain, 0, m + 1));
    }
  }
  return s;
}

PreparationBound BoundOf(const PreparationSizes& sizes, double sample, double gather, double move,
                         double train) {
  const double on_worker = sample + gather + (sizes.copy_engine ? 0 : move);
  PreparationBound bound;
  if (sizes.workers == 0) {
    bound.slowest = bound.with_first = sizes.batches * (sample + gather + move + train);
    return bound;
  }
  const double engine = sizes.copy_engine ? move : 0;
  bound.slowest = sizes.batches * std::max({train, engine, on_worker / sizes.workers});
  bound.with_first = bound.slowest + sample + gather + move + train;
  bound.workers = on_worker / std::max(train, engine);
  return bound;
}

}  // namespace pipelab
