#include "experiments/training/comparison_prediction.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/calibration/busy_cores.h"
#include "experiments/calibration/calibration.h"
#include "experiments/calibration/kernel_probe.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/device.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kBursts = 5;  // of messages in a round

class Predictor {
 public:
  Predictor(const ModelGraph& graph, const ComparisonOptions& options, const ClusterSpec& machine)
      : options_(options), model_{graph, {}} {
    step_.model = &model_;
    step_.cluster = &machine;
    step_.type = NumberType::kFp32;
    step_.optimizer_tensors = static_cast<int>(StateNames(options.optimizer).size());
  }

  // As training runs it: in-process devices, a training's reductions at the end.
  absl::StatusOr<Nanoseconds> StepTime(const Schedule& schedule, const ModelPartition& partition,
                                       const std::vector<int64_t>& slices) const {
    StepParts parts;
    parts.model = &step_;
    parts.partition = &partition;
    parts.config.pipeline = schedule.num_devices();
    parts.config.micro_batches = schedule.num_micro_batches;
    parts.micro_batch_size = options_.micro_batch_size;
    parts.slices = slices;
    if (options_.optimizer.needs_norm()) {
      parts.lowering.norm_values = NumParameterValues(model_.graph);
    }
    parts.schedule = schedule;
    PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction prediction, SimulateStep(std::move(step)));
    return prediction.step_time;
  }

  // Without a pipeline: one device, forward and backward of one micro-batch after the other.
  absl::StatusOr<Nanoseconds> SerialStepTime() const {
    SchemeParams sizes;
    sizes.devices = 1;
    sizes.micro_batches = options_.micro_batches;
    PIPELAB_ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule("1f1b", sizes));
    PIPELAB_ASSIGN_OR_RETURN(
        const ModelPartition whole,
        ChoosePartition(model_.graph, /*num_stages=*/1, options_.micro_batch_size, ""));
    return StepTime(schedule, whole, {});
  }

 private:
  const ComparisonOptions& options_;
  const GroupedModel model_;
  StepModel step_;
};

}  // namespace

StepTimePrediction::StepTimePrediction()
    : kernels_(KernelProbes(QuickCalibration().sizes), QuickCalibration().kernels) {}

absl::Status StepTimePrediction::Measure() {
  {
    const BusyCores busy;
    kernels_.MeasureRound();
  }
  // Threads that wait for a core make it longer, never shorter; a predicted device has its own.
  for (int burst = 0; burst < kBursts; ++burst) {
    PIPELAB_ASSIGN_OR_RETURN(const LinkTimes link, MeasureLink(QuickCalibration().link));
    if (!link_.has_value() || link.latency_seconds < link_->latency_seconds) link_ = link;
  }
  return absl::OkStatus();
}

absl::Status StepTimePrediction::Predict(const ModelGraph& graph, const ComparisonOptions& options,
                                         ComparisonResult* result) const {
  PIPELAB_ASSIGN_OR_RETURN(result->machine, SpecificationOf(MeasurementsOf(kernels_, *link_)));
  const Predictor predictor(graph, options, *result->machine);
  PIPELAB_ASSIGN_OR_RETURN(result->serial_predicted, predictor.SerialStepTime());
  for (SchemeResult& r : result->schemes) {
    PIPELAB_ASSIGN_OR_RETURN(r.predicted,
                             predictor.StepTime(r.program.schedule, r.partition, r.slices));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
