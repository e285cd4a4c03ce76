#include "experiments/local/paces.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/local/methods.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/local_heads.h"
#include "models/zoo/resnet.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kLayers = 14;
constexpr double kSlow = 0.5;

SchemeParams SizesOf(const Pace& pace, int micro_batches) {
  SchemeParams sizes{kMethodDevices, micro_batches};
  sizes.update_interval = kMethodMicroBatches;
  if (pace.window == 0) return sizes;
  sizes.group_size = pace.window;
  sizes.micro_batches_of_stage.assign(kMethodDevices, micro_batches);
  sizes.micro_batches_of_stage[pace.slow] = static_cast<int32_t>(micro_batches * kSlow);
  return sizes;
}

const char* SchemeOf(const Pace& pace) { return pace.window == 0 ? "local" : "local_replay"; }

}  // namespace

absl::StatusOr<std::vector<Pace>> PricedPaces(const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, BuildCifarResNet(kLayers, 28, 1, 10));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = NumberType::kFp32;
  StepConfig config;
  config.scheme = "local";
  config.pipeline = kMethodDevices;
  config.micro_batch_size = kMethodBatch / kMethodMicroBatches;
  config.micro_batches = static_cast<int>(kMethodSamples / config.micro_batch_size);
  config.update_interval = kMethodMicroBatches;
  config.cut = CutRule::kLayers;
  config.local_heads = LocalHead::kConvolution;
  StepCache cache(on);
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, PredictStep(&cache, config));
  std::vector<Pace> paces = {{}};
  for (int slow : {0, 1, kMethodDevices - 1}) {
    for (int window : {0, 1, 8}) {
      if (window > 1 && slow == kMethodDevices - 1) continue;  // nobody reads behind it
      paces.push_back({slow, window, {}, 0, 0, {}});
    }
  }
  for (Pace& pace : paces) {
    PIPELAB_ASSIGN_OR_RETURN(Schedule schedule,
                             MakeSchedule(SchemeOf(pace), SizesOf(pace, config.micro_batches)));
    LoweringOptions lowering;
    lowering.stages = p.step.partition.stages;
    PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(std::move(schedule), lowering));
    CostTable costs = p.step.costs;
    costs.device_speed.assign(kMethodDevices, 1);
    if (pace.slow >= 0) costs.device_speed[pace.slow] = kSlow;
    PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
    pace.step = trace.makespan;
    pace.stale = Lateness(program.schedule);
    PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis analysis, Analyze(program, trace));
    const Breakdown& wall = analysis.overall.wall;
    pace.idle = 1 - (wall.compute + wall.optimizer) / trace.makespan / kMethodDevices;
  }
  return paces;
}

absl::Status TrainPaces(const ImageData& images, int64_t batches, std::vector<Pace>* paces) {
  PIPELAB_RETURN_IF_ERROR(CheckTrainBatches(batches));
  const LabelledImages& train = *images.train;
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model,
                           BuildCifarResNet(kLayers, train.height, train.channels, train.classes));
  std::vector<double> waiting;  // `local` at half the speed, whichever device is slow
  for (Pace& pace : *paces) {
    if (pace.window == 0 && !waiting.empty()) {
      pace.accuracies = waiting;
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(SchemeOf(pace)));
    const bool waits = pace.window == 0 && pace.slow >= 0;
    const int64_t own =
        waits ? static_cast<int64_t>(static_cast<double>(batches) * kSlow) : batches;
    TrainingOptions options = MethodTraining(*scheme, batches);
    // Stages that have taken fewer steps have the same rate.
    options.optimizer.schedule = {batches / 50, RateDecay::kConstant, 0};
    if (pace.window > 0) {
      PIPELAB_ASSIGN_OR_RETURN(options.schedule,
                               MakeSchedule(scheme->name, SizesOf(pace, kMethodRun)));
    }
    PIPELAB_ASSIGN_OR_RETURN(pace.accuracies, TrainedAccuracies(options, model.graph, images, own));
    if (waits) waiting = pace.accuracies;
  }
  return absl::OkStatus();
}

Table PaceTable(const std::vector<Pace>& paces, int64_t batches) {
  Table t("paces", absl::StrCat("One of four devices at half the speed: ResNet-", kLayers,
                                " in local stages"));
  t.AddKey("slow", "slow device");
  t.AddKey("scheme");
  t.AddKey("window", "outputs in a buffer");
  t.AddColumn({"sample", "time of a sample", "sample", "us", Origin::kSimulated, 1});
  t.AddColumn({"idle", "idle of the step", "idle", "%", Origin::kSimulated, 1});
  t.AddColumn({"stale", "samples older by", "stale", "micro-batches", Origin::kComputed, 0});
  t.AddColumn({"accuracy", "accuracy in the same time", "accuracy", "", Origin::kMeasured, 4});
  for (const Pace& pace : paces) {
    std::vector<Cell> row = {Label(pace.slow < 0 ? "none" : absl::StrCat(pace.slow)),
                             Label(SchemeOf(pace)),
                             Label(pace.window),
                             Simulated(ToMs(pace.step) * 1e3 / static_cast<double>(kMethodSamples)),
                             Simulated(ToPercent(pace.idle)),
                             Computed(pace.stale)};
    if (pace.accuracies.empty()) {
      row.push_back(Missing("not trained in this run"));
    } else {
      std::string exits;
      for (size_t i = 0; i + 1 < pace.accuracies.size(); ++i) {
        absl::StrAppendFormat(&exits, "%s%.4f", i > 0 ? ", " : "", pace.accuracies[i]);
      }
      row.push_back(Measured(pace.accuracies.back()).WithNote("heads before the last: " + exits));
    }
    t.AddRow(std::move(row));
  }
  t.AddNote(absl::StrCat(
      "Fashion-MNIST. Each trains for as long as four equal devices take for ", batches,
      " batches of ", kMethodBatch,
      " images, which is half as many batches for local with a slow device. Under "
      "local_replay the slow device's stage runs half the passes. A stage steps behind each ",
      kMethodMicroBatches,
      " of its passes, at a constant rate; buffers begin empty in each run of ", kMethodRun,
      " micro-batches."));
  return t;
}

std::vector<Claim> PaceClaims(const std::vector<Pace>& paces) {
  double local = 1e9, replay = 0;  // over the slow devices
  for (const Pace& pace : paces) {
    const double times = pace.step / paces[0].step;
    if (pace.slow >= 0 && pace.window == 0) local = std::min(local, times);
    if (pace.slow >= 0 && pace.window > 0) replay = std::max(replay, times);
  }
  Claim c = OwnClaim("dgl.slow_device",
                     "one device at half the speed holds up local_replay's other stages no more");
  c.unit = "x";
  Found(&c, Origin::kSimulated, replay,
        absl::StrFormat("%.2f times as long as with equal devices; local %.2f", replay, local));
  MetIf(&c, replay <= 1.05 && local >= 1.5, "at most 1.05, where local takes 1.5 or more",
        "the slowest stage decides");
  return {c};
}

}  // namespace pipelab
