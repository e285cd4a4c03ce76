#include "pipelines/runtime/training.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "pipelines/fill/fill_pass.h"
#include "pipelines/fill/gaps.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/runtime/gather_state.h"
#include "pipelines/runtime/gather_trace.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/step_loss.h"
#include "pipelines/runtime/training_devices.h"
#include "pipelines/runtime/training_plan.h"
#include "pipelines/runtime/whole_state.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Between processes, before a training, when one may do for all what takes long.
constexpr absl::Duration kStartLimit = absl::Hours(1);

class DeviceTraining final : public PipelineTraining {
 public:
  static absl::StatusOr<std::unique_ptr<PipelineTraining>> Create(const ModelGraph& graph,
                                                                  const BatchSource& batches,
                                                                  const TrainingOptions& options) {
    auto training = std::make_unique<DeviceTraining>();
    PIPELAB_ASSIGN_OR_RETURN(training->plan_, PlanTraining(graph, batches, options));
    PIPELAB_RETURN_IF_ERROR(training->Start(batches, options));
    return training;
  }

  absl::StatusOr<TrainingStep> Step() override {
    TrainingStep step;
    in_step_ = true;
    devices_->BeginStep();
    PIPELAB_ASSIGN_OR_RETURN(step.trace, executor_->RunStep());
    if (gaps_.has_value()) PIPELAB_RETURN_IF_ERROR(LearnGaps(&step.trace));
    std::vector<LossPart> own;
    for (const auto& [place, stage] : devices_->loss_stages()) {
      own.push_back({place, stage->losses(), stage->gradient_norm()});
    }
    const LoadsOfLayers loads = devices_->TakeLoads();
    StepLoss loss;
    if (processes() == nullptr) {
      loss = SumLosses(std::move(own), loads);
    } else {
      PIPELAB_ASSIGN_OR_RETURN(
          loss, SumLossesOfProcesses(*processes(), own, loads, devices_->exchange_limit()));
      PIPELAB_ASSIGN_OR_RETURN(
          step.trace, GatherTrace(*processes(), std::move(step.trace), executor_->step_begin_ns(),
                                  devices_->exchange_limit()));
    }
    if (forward_only()) {  // where no optimizer's step ends it
      for (LayerStage* stage : devices_->Stages()) {
        PIPELAB_RETURN_IF_ERROR(stage->SetTrainingStep(stage->training_step() + 1));
      }
    }
    in_step_ = false;
    step.loss = loss.sum / static_cast<double>(plan_.batch_tokens);
    step.gradient_norm = loss.gradient_norm;
    step.largest_load = LargestLoad(loss.loads);
    for (const auto& [layer, of_layer] : loss.loads) step.dropped_choices += of_layer.dropped;
    return step;
  }

  absl::StatusOr<std::vector<float>> ParameterValue(const std::string& name) const override {
    for (const StateEntry& entry : StateEntries(*target_.graph, /*optimizer_state=*/{})) {
      if (entry.spec->name != name) continue;
      if (processes() == nullptr) return WholeTensor(entry, devices_->Stages());
      return GatherTensor(*processes(), entry, devices_->Stages(), devices_->exchange_limit());
    }
    return absl::NotFoundError(absl::StrCat("the model has no parameter \"", name, "\""));
  }

  absl::StatusOr<TrainingState> State() const override {
    PIPELAB_RETURN_IF_ERROR(CheckSteps());
    if (processes() == nullptr) return WholeState(target_, devices_->Stages());
    return GatherState(*processes(), target_, devices_->Stages(), devices_->exchange_limit());
  }

  absl::Status SetState(const TrainingState& state) override {
    PIPELAB_RETURN_IF_ERROR(CheckSteps());
    if (!forward_only()) return SpreadWhole(state);
    // The state may be of any training: what is left of it here are values.
    TrainingState values = EmptyState(target_, state.step);
    values.model = state.model;
    values.source = state.source;
    for (const StateEntry& entry : StateEntries(*target_.graph, /*optimizer_state=*/{})) {
      const auto it = state.tensors.find(entry.key);
      if (it != state.tensors.end()) values.tensors.insert(*it);
    }
    return SpreadWhole(values);
  }

  const Program& program() const override { return plan_.step.program; }
  const std::vector<int64_t>& slices() const override { return plan_.step.slices; }
  const CostTable& costs() const override { return plan_.step.costs; }
  const ModelPartition& partition() const override { return plan_.step.partition; }
  const ModelGraph& graph() const override { return plan_.graph; }
  std::string data() const override { return batches_->Fingerprint(); }
  std::vector<ComputeDevice::Counts> DeviceCounts() const override { return devices_->Counts(); }
  std::vector<FillReport> FillReports() const override { return devices_->FillReports(); }

 private:
  bool forward_only() const { return plan_.step.program.schedule.forward_only; }

  absl::Status SpreadWhole(const TrainingState& state) {
    if (processes() == nullptr) return SetWholeState(state, target_, devices_->Stages());
    return SpreadState(*processes(), state, target_, devices_->Stages(),
                       devices_->exchange_limit());
  }

  ProcessGroup* processes() const { return devices_->processes(); }

  // Checks that no process has a step that failed.
  absl::Status CheckSteps() const {
    absl::Status own;
    if (in_step_) {
      own = absl::FailedPreconditionError(
          "a training step failed; what it left behind cannot be continued");
    }
    return processes() == nullptr ? own : processes()->Agree(own, devices_->exchange_limit());
  }

  // The next step's fills have the gaps of the last ones, on the devices of this process.
  absl::Status LearnGaps(Trace* own) {
    Trace trace;
    trace.origin = own->origin;
    trace.makespan = own->makespan;
    trace.devices.resize(plan_.step.program.instructions.size());
    for (size_t i = 0; i < own->devices.size(); ++i) {
      const size_t rank = i + static_cast<size_t>(devices_->first_rank());
      trace.devices[rank / static_cast<size_t>(plan_.split.degree)].spans = own->devices[i].spans;
      if (!trace_) own->devices[i].DropTimes();
    }
    constexpr Bytes kAll(std::numeric_limits<int64_t>::max());
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<DeviceGaps> gaps,
                             FindGaps(plan_.step.program, plan_.step.costs, trace,
                                      fill_.device_memory > Bytes(0) ? fill_.device_memory : kAll));
    gaps_->Add(gaps);
    gaps_->SetFills(&plan_.step.program);
    return absl::OkStatus();
  }

  absl::Status Start(const BatchSource& batches, const TrainingOptions& options) {
    target_.graph = &plan_.graph;
    target_.optimizer = OptimizerKindName(options.optimizer.kind);
    const auto names = StateNames(options.optimizer);
    if (!forward_only()) target_.optimizer_state.assign(names.begin(), names.end());
    target_.seed = options.seed;
    batches_ = &batches;
    target_.updates_per_step = plan_.updates;
    trace_ = options.trace;
    fill_ = options.fill;
    if (options.fill_works) {
      plan_.step.program = WithFillPlaces(std::move(plan_.step.program));
      gaps_.emplace(std::max(options.fill.learn_steps, 1));
    }
    PIPELAB_ASSIGN_OR_RETURN(devices_, TrainingDevices::Create(plan_, batches, options));
    plan_.step.costs.collectives_at_wait = devices_->collectives_at_wait();
    ExecutorOptions executor;
    executor.tensor_parallel = static_cast<int>(plan_.split.degree);
    executor.divided_messages = plan_.step.costs.divided_messages;
    executor.host_bandwidth = options.host_bandwidth;
    executor.wait_limit = options.wait_limit;
    executor.trace = options.trace || gaps_.has_value();
    executor.others_elsewhere = processes() != nullptr;
    PIPELAB_ASSIGN_OR_RETURN(
        executor_, Executor::Create(&plan_.step.program, devices_->TakeSetups(), executor));
    // Some may still be busy with what comes before training, in one process for all.
    return processes() == nullptr ? absl::OkStatus() : processes()->Meet(kStartLimit);
  }

  TrainingPlan plan_;
  StateTarget target_;  // what a state must fit
  const BatchSource* batches_ = nullptr;
  bool in_step_ = false;  // stays when a step fails
  bool trace_ = true;
  FillOptions fill_;
  absl::optional<GapForecast> gaps_;  // where there are fill jobs
  std::unique_ptr<TrainingDevices> devices_;
  std::unique_ptr<Executor> executor_;  // last: its threads end before what they use
};

}  // namespace

absl::StatusOr<std::unique_ptr<PipelineTraining>> PipelineTraining::Create(
    const ModelGraph& graph, const BatchSource& batches, const TrainingOptions& options) {
  return DeviceTraining::Create(graph, batches, options);
}

Trace TraceOfMember(const Trace& ranks, int64_t tensor_parallel, int64_t t) {
  Trace trace;
  trace.origin = ranks.origin;
  trace.makespan = ranks.makespan;
  for (size_t r = static_cast<size_t>(t); r < ranks.devices.size(); r += tensor_parallel) {
    trace.devices.push_back(ranks.devices[r]);
  }
  return trace;
}
}  // namespace pipelab
