#include "experiments/run/trained.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "experiments/run/replayed_step.h"
#include "experiments/training/checkpoint.h"
#include "kernels/tensor/arena.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/batch_norm.h"
#include "pipelines/runtime/staleness.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/memory.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Gives each parameter the next larger number of each of its own.
absl::Status RoundValues(SerialTrainer* trainer) {
  TrainingState state = trainer->State();
  for (auto& [key, tensor] : state.tensors) {
    if (!absl::EndsWith(key, absl::StrCat("/", kValueState))) continue;
    for (float& x : std::get<std::vector<float>>(tensor.values)) {
      x = std::nextafter(x, std::numeric_limits<float>::infinity());
    }
  }
  return trainer->SetState(state);
}

// From the study's --resume, and into its --checkpoint.
absl::Status TrainSteps(const RunInput& study, ProcessGroup* group, PipelineTraining* training,
                        Trained* trained) {
  const CheckpointNotes notes = {study.CheckpointSettings(), {}};
  absl::optional<CheckpointFile> file;
  if (!study.checkpoint.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(file, CheckpointFile::Take("--checkpoint", study.checkpoint, group));
  }
  if (!study.resume.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(
        trained->from, ResumeCheckpoint("--resume", study.resume, notes.settings, group, training));
    if (trained->from.step >= study.steps) {
      return absl::InvalidArgumentError(absl::StrCat("--steps=", study.steps, ": ", study.resume,
                                                     " has done ", trained->from.step, " already"));
    }
  }
  if (!study.pretrained.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(trained->from,
                             StartFromPretrained("--model", study.pretrained, group, training));
  }
  std::vector<Nanoseconds> times;
  for (int64_t step = trained->from.step + 1; step <= study.steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(TrainingStep done, training->Step());
    trained->result.losses.push_back(done.loss);
    trained->largest_loads.push_back(done.largest_load);
    trained->dropped_choices.push_back(done.dropped_choices);
    if (step + kReplayedSteps > study.steps) {
      times.push_back(done.trace.makespan);
      trained->result.traces.push_back(TraceOfMember(done.trace, study.config.tensor, 0));
    }
    trained->trace = std::move(done.trace);
    const bool due =
        step == study.steps || (study.checkpoint_every > 0 && step % study.checkpoint_every == 0);
    if (!due || study.checkpoint.empty()) continue;
    PIPELAB_RETURN_IF_ERROR(SaveCheckpoint(study.checkpoint, *training, notes, group));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  trained->measured = *middle;
  return absl::OkStatus();
}

// The devices of a process and the serial loop, which holds what one device would, in what memory
// there is.
absl::Status CheckHostMemory(const RunInput& study, const Trace& predicted,
                             const ProcessGroup* group) {
  Bytes all, largest;
  for (const DeviceTrace& d : predicted.devices) {
    const Bytes own = d.peak_activation + d.peak_state + d.peak_host;
    all += own * study.config.split().degree;
    largest = std::max(largest, own);
  }
  const int processes = group == nullptr ? 1 : group->size();
  const Bytes needed = Bytes(all.value() / processes) + largest, free = AvailableMemory();
  if (needed <= free) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(study.source, ": needs ", ToString(needed), " of memory for ",
                   predicted.devices.size(), " devices and serial training, and ", ToString(free),
                   " are free; fewer samples a micro-batch (b) or a smaller network would do"));
}

}  // namespace

absl::StatusOr<std::vector<double>> TrainSerially(const RunInput& study, int micro_batches,
                                                  std::vector<int> sum_of_micro_batch,
                                                  std::vector<int64_t> slices,
                                                  const Trained& trained, bool rounded) {
  SerialOptions options = trained.serial;
  options.num_micro_batches = micro_batches;
  options.micro_batch_size = study.samples();
  options.data = study.data.get();
  options.seed = study.seed;
  options.optimizer = study.optimizer;
  options.sum_of_micro_batch = std::move(sum_of_micro_batch);
  options.slices = std::move(slices);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ComputeDevice> on, study.devices(1));
  Arena arena(on[0].memory);
  const std::unique_ptr<Backend> backend = on[0].make_backend(&arena);
  PIPELAB_ASSIGN_OR_RETURN(auto trainer,
                           SerialTrainer::Create(trained.graph, backend.get(), options));
  if (!trained.from.tensors.empty()) {
    TrainingState from = trained.from;
    // An asynchronous schedule that no rule is known of has done more of them.
    if (!trained.has_serial) from.optimizer_steps = from.step;
    PIPELAB_RETURN_IF_ERROR(trainer->SetState(from));
  }
  if (rounded) PIPELAB_RETURN_IF_ERROR(RoundValues(trainer.get()));
  std::vector<double> losses;
  for (int64_t step = trained.from.step; step < study.steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(const double loss, trainer->Step());
    losses.push_back(loss);
  }
  return losses;
}

absl::StatusOr<Trained> TrainUnderScheme(const RunInput& study, Transport* transport) {
  TrainingOptions options;
  options.config = study.config;
  if (study.own) options.schedule = study.schedule;
  options.sequential = study.sequential;
  options.devices = study.devices;
  options.seed = study.seed;
  options.optimizer = study.optimizer;
  options.wait_limit = study.wait_limit;
  options.transport = transport;
  PIPELAB_ASSIGN_OR_RETURN(auto training,
                           PipelineTraining::Create(study.graph, *study.data, options));
  const Schedule& schedule = training->program().schedule;
  Trained trained;
  trained.graph = training->graph();
  // Terms of a gradient's sum: a group adds one a member.
  trained.result.config.micro_batches =
      schedule.num_micro_batches * static_cast<int>(study.samples());
  trained.result.must_be_bit_equal = KeepsMicroBatchOrder(schedule) &&
                                     !study.config.split().divides() &&
                                     !study.config.slice_exchange;
  AllowForDivision(study.graph, study.config.split(),
                   study.devices.activations() == DataType::kBFloat16, &trained.result);
  trained.result.slices = training->slices();
  // With context parallelism each sample's rows are added in two chunks on each of its devices.
  const int chunks = study.config.context > 1 ? 2 * study.config.context : 1;
  trained.result.num_slices = schedule.num_slices * chunks;
  PIPELAB_ASSIGN_OR_RETURN(trained.predicted, Simulate(training->program(), training->costs()));
  PIPELAB_RETURN_IF_ERROR(CheckHostMemory(study, trained.predicted, transport->processes()));
  const ModelPartition& partition = training->partition();
  trained.serial.norm_parts =
      NormParts(trained.graph, partition, schedule, study.config.batch_norm);
  trained.batch_norm = BatchNormNote(trained.graph, partition, schedule, study.config.batch_norm);
  // A stage's own consumers of an output add up their gradients first: so does the serial loop.
  if (!SumsInLayerOrder(trained.graph, partition)) {
    trained.serial.stage_of_layer = partition.stage_of_layer;
  }
  // The serial loop takes each sample through all stages as often.
  trained.has_serial = !schedule.HasUnequalPasses();
  if (HasOwnSteps(schedule)) {
    absl::StatusOr<Staleness> rule = PublishedStaleness(schedule);
    trained.has_serial = rule.ok();
    if (rule.ok()) {
      trained.serial.staleness = *std::move(rule);
      trained.serial.stage_of_layer = partition.stage_of_layer;
    }
  }
  PIPELAB_RETURN_IF_ERROR(TrainSteps(study, transport->processes(), training.get(), &trained));
  PIPELAB_ASSIGN_OR_RETURN(trained.replayed,
                           ReplayedStep(trained.result.traces, trained.graph, study.config.split(),
                                        study.samples(), *training));
  trained.counts = training->DeviceCounts();
  return trained;
}

}  // namespace pipelab
