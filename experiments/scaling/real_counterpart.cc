#include "experiments/scaling/real_counterpart.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/calibration/busy_cores.h"
#include "experiments/calibration/kernel_times.h"
#include "experiments/calibration/link_times.h"
#include "models/data/random_batches.h"
#include "models/layers/optimizer.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/gpt.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/replay.h"
#include "pipelines/step/step.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<RealNet> SmallAmoebaNet() {
  AmoebaNetConfig config;
  config.layers = 6;
  config.filters = 256;
  config.classes = 10;
  config.height = config.width = 16;
  config.stem_stride = 1;
  config.stem_reductions = 0;
  RealNet net;
  net.id = "amoebanet";
  net.title = "AmoebaNet-D (6, 256) on 16 x 16 pixels";
  PIPELAB_ASSIGN_OR_RETURN(net.model, BuildAmoebaNet(config));
  return net;
}

absl::StatusOr<RealNet> SmallTransformer() {
  GptConfig config;
  config.layers = 14;
  config.hidden = 128;
  config.heads = 2;
  config.tokens = 64;
  config.vocabulary = 256;
  config.output_bias = true;
  config.positions = Positions::kSinusoidal;
  RealNet net;
  net.id = "transformer";
  net.title = "Transformer-14 of width 128 on 64 tokens";
  PIPELAB_ASSIGN_OR_RETURN(net.model.graph, BuildGpt(config));
  const int n = static_cast<int>(net.model.graph.layers.size());
  for (int i = 0; i < n; ++i) net.model.group_of_layer.push_back((i + 1) / 2);
  return net;
}

class RealRun {
 public:
  static absl::StatusOr<std::unique_ptr<RealRun>> Create(const RealNet& net,
                                                         const BatchSource& data, int devices,
                                                         int micro_batches, int64_t batch_samples) {
    if (micro_batches < 1 || batch_samples % micro_batches != 0) {
      return absl::InvalidArgumentError(absl::StrCat("M=", micro_batches, ": must divide the ",
                                                     batch_samples, " samples of a step"));
    }
    auto run = std::make_unique<RealRun>();
    run->graph_ = &net.model.graph;
    run->point_.devices = devices;
    run->point_.micro_batches = micro_batches;
    run->point_.micro_batch_size = batch_samples / micro_batches;
    StepConfig& config = run->config_;
    config.scheme = "gpipe";
    config.pipeline = devices;
    config.micro_batches = micro_batches;
    config.micro_batch_size = run->point_.micro_batch_size;
    config.recompute = Recompute::kFull;
    config.cut = CutRule::kFlopsVariance;
    run->model_.model = &net.model;
    StepCache cache(run->model_);
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* groups, cache.UnitsOf(config, devices));
    run->point_.groups_of_stage = *groups;
    TrainingOptions options;
    options.config = config;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> stage_of_layer,
                             StagesOfGroups(net.model, run->point_.groups_of_stage));
    options.config.layout = StagesText(stage_of_layer);
    run->model_.optimizer_tensors = static_cast<int>(StateNames(options.optimizer).size());
    PIPELAB_ASSIGN_OR_RETURN(run->training_, PipelineTraining::Create(*run->graph_, data, options));
    return run;
  }

  absl::Status Step(bool counts) {
    PIPELAB_ASSIGN_OR_RETURN(TrainingStep step, training_->Step());
    if (counts) traces_.push_back(std::move(step.trace));
    return absl::OkStatus();
  }

  absl::StatusOr<RealPoint> Point(const ClusterSpec& machine) const {
    RealPoint point = point_;
    point.steps = static_cast<int>(traces_.size());
    std::vector<double> wall;
    for (const Trace& trace : traces_) {
      wall.push_back(static_cast<double>(trace.makespan.value()));
    }
    point.measured = Nanoseconds(std::llround(Median(std::move(wall))));
    PIPELAB_ASSIGN_OR_RETURN(const Trace replayed,
                             Replay(training_->program(), traces_, training_->costs()));
    point.replayed = replayed.makespan;
    StepModel on = model_;
    on.cluster = &machine;
    on.type = NumberType::kFp32;
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction simulated, PredictStep(on, config_));
    point.simulated = simulated.step_time;
    return point;
  }

 private:
  const ModelGraph* graph_ = nullptr;
  RealPoint point_;
  StepModel model_;
  StepConfig config_;
  std::unique_ptr<PipelineTraining> training_;
  std::vector<Trace> traces_;
};

std::vector<double> AbsoluteErrors(const RealCounterpart& real) {
  std::vector<double> errors;
  for (const RealPoint& point : real.points) errors.push_back(std::abs(point.error()));
  return errors;
}

}  // namespace

absl::StatusOr<RealNet> ScaledDown(absl::string_view family) {
  if (family == "amoebanet") return SmallAmoebaNet();
  if (family == "transformer") return SmallTransformer();
  return absl::InvalidArgumentError(
      absl::StrCat("family \"", family, "\": must be amoebanet or transformer"));
}

double RealCounterpart::MedianError() const { return Median(AbsoluteErrors(*this)); }

double RealCounterpart::LargestError() const {
  const std::vector<double> errors = AbsoluteErrors(*this);
  return *std::max_element(errors.begin(), errors.end());
}

absl::StatusOr<RealCounterpart> RunRealCounterpart(const RealNet& net,
                                                   const RealCounterpartOptions& options) {
  const RandomBatches data(FieldsOf(net.model.graph), options.batch_samples, /*seed=*/1);
  std::vector<std::unique_ptr<RealRun>> runs;
  for (int devices : options.devices) {
    for (int micro_batches : options.micro_batches) {
      PIPELAB_ASSIGN_OR_RETURN(
          auto run, RealRun::Create(net, data, devices, micro_batches, options.batch_samples));
      runs.push_back(std::move(run));
    }
  }
  const BusyCores busy;
  KernelMeasurements kernels(KernelProbes(options.calibration.sizes), options.calibration.kernels);
  std::unique_ptr<Progress> progress;
  if (options.progress) {
    progress = std::make_unique<Progress>(
        net.id, static_cast<int64_t>(runs.size()) * options.rounds, "run");
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t r = 0; r < runs.size(); ++r) {
      if (!options.machine.has_value()) {
        kernels.MeasurePart(static_cast<int>(r), static_cast<int>(runs.size()));
      }
      for (int step = 0; step <= options.steps; ++step) {
        PIPELAB_RETURN_IF_ERROR(runs[r]->Step(/*counts=*/step > 0));
      }
      if (progress != nullptr) progress->Add(1);
    }
  }
  if (progress != nullptr) progress->Finish();
  RealCounterpart real;
  real.net = net.title;
  if (options.machine.has_value()) {
    real.machine = *options.machine;
  } else {
    PIPELAB_ASSIGN_OR_RETURN(const LinkTimes link, MeasureLink(options.calibration.link));
    PIPELAB_ASSIGN_OR_RETURN(real.machine, SpecificationOf(MeasurementsOf(kernels, link)));
  }
  for (const auto& run : runs) {
    PIPELAB_ASSIGN_OR_RETURN(RealPoint point, run->Point(real.machine));
    real.points.push_back(std::move(point));
  }
  return real;
}

Table RealCounterpartTable(const RealCounterpart& real) {
  Table t("real_counterpart",
          absl::StrCat("Step time of ", real.net, " under GPipe's schedule on in-process devices"));
  t.AddKey("devices", "K");
  t.AddKey("micro_batches", "M");
  t.AddColumn({"layout", "groups of each stage", "", "", Origin::kComputed, 0});
  t.AddColumn({"step_time", "step time on the cores here", "step", "ms", Origin::kMeasured, 1});
  t.AddColumn(
      {"step_time_replayed", "step time, one core per device", "step", "ms", Origin::kReplayed, 1});
  t.AddColumn({"step_time_simulated", "step time by the cost model", "step", "ms",
               Origin::kSimulated, 1,
               /*varies=*/true});
  t.AddColumn({"step_time_error", "simulated against replayed", "error", "%", Origin::kComputed, 1,
               /*varies=*/true});
  for (const RealPoint& p : real.points) {
    t.AddRow({Label(p.devices), Label(p.micro_batches),
              Computed(absl::StrJoin(p.groups_of_stage, ",")), Measured(ToMilliseconds(p.measured)),
              Replayed(ToMilliseconds(p.replayed)), Simulated(ToMilliseconds(p.simulated)),
              Computed(100 * p.error())});
  }
  t.AddNote(absl::StrFormat("Simulated against replayed: median error %.1f %%, largest %.1f %%. %s",
                            100 * real.MedianError(), 100 * real.LargestError(),
                            real.machine.title));
  return t;
}

}  // namespace pipelab
