// pipelab run: trains a small GPT under a schedule, or a plan's model, on devices of this process
// or of those that mpirun started, beside the serial loop.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "experiments/flags/output.h"
#include "experiments/run/replayed_step.h"
#include "experiments/run/run_commands.h"
#include "experiments/run/run_input.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/comparison.h"
#include "experiments/training/processes.h"
#include "kernels/compute_device.h"
#include "kernels/tensor/arena.h"
#include "models/checkpoint/training_state.h"
#include "models/layers/serial_trainer.h"
#include "models/specs/vocabulary_parts.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/batch_norm.h"
#include "pipelines/runtime/staleness.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/json.h"
#include "tools/base/memory.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc

namespace pipelab {
namespace {

struct Trained {
  SchemeResult result;  // losses, and what they must equal
  Trace trace;          // of the last step
  Trace predicted;      // of the program's devices
  TrainingState from;   // of --resume's file, or with --pretrained's weights, or none
  std::vector<ComputeDevice::Counts> counts;
  ModelGraph graph;        // as it was trained: with local heads
  SerialOptions serial;    // what a plain loop must do to have the same losses
  bool has_serial = true;  // false: asynchronous by no published rule, or unequal passes
  Nanoseconds measured;    // of a step, the median of those that are replayed
  Nanoseconds replayed;    // of a step, with a core for each device
  std::string batch_norm;  // a line about copies
  // By step, as TrainingStep has them; loads are 0 in a model without experts.
  std::vector<double> largest_loads;
  std::vector<int64_t> dropped_choices;
};

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

absl::StatusOr<std::vector<double>> TrainSerially(const RunInput& study, int micro_batches,
                                                  std::vector<int> sum_of_micro_batch,
                                                  std::vector<int64_t> slices,
                                                  const Trained& trained, bool rounded = false) {
  SerialOptions options = trained.serial;
  options.num_micro_batches = micro_batches;
  options.micro_batch_size = study.micro_batch_size;
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
      trained->result.traces.push_back(TraceOfMember(done.trace, study.tensor_parallel, 0));
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
    all += own * study.split().degree;
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

absl::StatusOr<Trained> TrainUnderScheme(const RunInput& study, Transport* transport) {
  const Schedule& schedule = study.schedule;
  TrainingOptions options;
  options.schedule = schedule;
  options.micro_batch_size = study.micro_batch_size;
  options.stage_of_layer = study.stage_of_layer;
  options.block_of_layer = study.block_of_layer;
  options.rebuilt = study.rebuilt;
  options.sequential = study.sequential;
  options.devices = study.devices;
  options.tensor_parallel = study.tensor_parallel;
  options.sequence_parallel = study.sequence_parallel;
  options.context_parallel = study.context_parallel;
  options.context_exchange = study.context_exchange;
  options.expert_parallel = study.expert_parallel;
  options.whole_experts = study.whole_experts;
  options.lowering = study.lowering;
  options.batch_norm = study.batch_norm;
  options.local_heads = study.local_heads;
  options.seed = study.seed;
  options.optimizer = study.optimizer;
  options.wait_limit = study.wait_limit;
  options.transport = transport;
  PIPELAB_ASSIGN_OR_RETURN(auto training,
                           PipelineTraining::Create(study.graph, *study.data, options));
  Trained trained;
  trained.graph = training->graph();
  // Terms of a gradient's sum: a group adds one a member.
  trained.result.sizes.micro_batches =
      schedule.num_micro_batches * static_cast<int>(study.micro_batch_size);
  trained.result.must_be_bit_equal =
      KeepsMicroBatchOrder(schedule) && !study.split().divides() && !study.lowering.slice_exchange;
  AllowForDivision(study.graph, study.split(), study.devices.activations() == DataType::kBFloat16,
                   &trained.result);
  trained.result.slices = training->slices();
  // With context parallelism each sample's rows are added in two chunks on each of its devices.
  const int chunks = study.context_parallel > 1 ? 2 * study.context_parallel : 1;
  trained.result.num_slices = schedule.num_slices * chunks;
  PIPELAB_ASSIGN_OR_RETURN(trained.predicted, Simulate(training->program(), training->costs()));
  PIPELAB_RETURN_IF_ERROR(CheckHostMemory(study, trained.predicted, transport->processes()));
  const ModelPartition& partition = training->partition();
  trained.serial.norm_parts = NormParts(trained.graph, partition, schedule, study.batch_norm);
  trained.batch_norm = BatchNormNote(trained.graph, partition, schedule, study.batch_norm);
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
                           ReplayedStep(trained.result.traces, trained.graph, study.split(),
                                        study.micro_batch_size, *training));
  trained.counts = training->DeviceCounts();
  return trained;
}

std::string Losses(const std::vector<double>& serial, const Trained& trained,
                   const Equality& equality) {
  const char* const unequal = !trained.has_serial ? "not compared"
                              : equality.ok       ? "within tolerance"
                                                  : "differs";
  std::string text =
      absl::StrFormat("%4s  %18s  %18s\n", "step", "serial [nats/token]", "this schedule");
  for (size_t i = 0; i < serial.size(); ++i) {
    absl::StrAppendFormat(&text, "%4d  %18.12f  %18.12f  %s\n", trained.from.step + i + 1,
                          serial[i], trained.result.losses[i],
                          serial[i] == trained.result.losses[i] ? "equal" : unequal);
  }
  return text;
}

// Of ranks, where groups compute layers together, with what each sends to its group.
std::string Devices(const Trace& trace, bool groups) {
  std::string text = absl::StrFormat("%6s  %16s  %12s  %14s  %8s", groups ? "rank" : "device",
                                     "peak activation", "state", "sent a step", "messages");
  absl::StrAppend(&text, groups ? "  sent to group\n" : "\n");
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceTrace& t = trace.devices[d];
    absl::StrAppendFormat(&text, "%6d  %16s  %12s  %14s  %8d", d, ToString(t.peak_activation),
                          ToString(t.peak_state), ToString(t.bytes_sent), t.messages_sent);
    if (groups) absl::StrAppendFormat(&text, "  %13s", ToString(t.tensor_bytes));
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// What devices counted over the whole run, a line each; "" where they count nothing.
std::string Counts(const std::vector<ComputeDevice::Counts>& counts) {
  std::string text;
  for (size_t d = 0; d < counts.size(); ++d) {
    if (counts[d].empty()) continue;
    absl::StrAppend(&text, "device ", d, ": ",
                    absl::StrJoin(counts[d], ", ", absl::PairFormatter(" ")), "\n");
  }
  return text;
}

// Of the whole run, where there are experts.
std::string Loads(const Trained& trained) {
  const auto most = std::max_element(trained.largest_loads.begin(), trained.largest_loads.end());
  if (most == trained.largest_loads.end() || *most == 0) return "";
  return absl::StrFormat(
      "experts: the fullest of a layer has %.2f times its mean rows, at most; %d choices dropped\n",
      *most,
      std::accumulate(trained.dropped_choices.begin(), trained.dropped_choices.end(), int64_t{0}));
}

// How far what was held and sent is from the simulator's prediction: "to the byte", or the largest
// difference and whose it is.
std::string Prediction(const Trained& trained, int tensor_parallel) {
  double largest = 0;
  std::string text = "to the byte";
  for (size_t rank = 0; rank < trained.trace.devices.size(); ++rank) {
    const DeviceTrace& m = trained.trace.devices[rank];
    const DeviceTrace& p = trained.predicted.devices[rank / tensor_parallel];
    for (const auto& [what, measured, predicted] :
         {std::make_tuple("peak activation", m.peak_activation, p.peak_activation),
          std::make_tuple("state", m.peak_state, p.peak_state),
          std::make_tuple("host memory", m.peak_host, p.peak_host),
          std::make_tuple("messages", m.bytes_sent, p.bytes_sent),
          std::make_tuple("collectives", m.collective_bytes, p.collective_bytes),
          std::make_tuple("group's sums", m.tensor_bytes, p.tensor_bytes)}) {
      if (measured == predicted) continue;
      const double off = std::abs(predicted.value() - measured.value()) /
                         static_cast<double>(std::max<int64_t>(1, measured.value()));
      if (off <= largest) continue;
      largest = off;
      text = absl::StrFormat("within %.2f %% (%s of %s %d)", 100 * off, what,
                             tensor_parallel > 1 ? "rank" : "device", rank);
    }
  }
  return text;
}

// Of a step, and of what copies normalise by.
std::string StepTimes(const Trained& trained) {
  std::string text =
      absl::StrFormat("step time, median of %d: measured %.3f ms", trained.result.traces.size(),
                      ToMilliseconds(trained.measured));
  if (trained.replayed > Nanoseconds(0)) {
    absl::StrAppendFormat(&text, "; replayed %.3f ms, with a core for each device",
                          ToMilliseconds(trained.replayed));
  }
  absl::StrAppend(&text, "\n");
  if (!trained.batch_norm.empty()) absl::StrAppend(&text, trained.batch_norm, "\n");
  return text;
}

// The files that were resumed from and written.
std::string Checkpoints(const RunInput& study, const Trained& trained) {
  std::string text;
  if (trained.from.step > 0) {
    absl::StrAppend(&text, "resumed ", study.resume, " at step ", trained.from.step, "\n");
  }
  if (!study.checkpoint.empty()) absl::StrAppend(&text, "checkpoint: ", study.checkpoint, "\n");
  return text;
}

// "4 devices", "4 devices in groups of 2": of the schedule's devices each is a group.
std::string DeviceCount(const Schedule& schedule, int tensor_parallel, const Processes& processes) {
  std::string count = absl::StrCat(schedule.num_devices() * tensor_parallel, " devices");
  if (tensor_parallel > 1) absl::StrAppend(&count, " in groups of ", tensor_parallel);
  if (processes.group() == nullptr) return count;
  return absl::StrCat(count, " in ", processes.group()->size(), " processes");
}

nlohmann::json TrainedJson(const RunInput& study, const Trained& trained,
                           const std::vector<double>& serial, const Equality& equality) {
  nlohmann::json losses = nlohmann::json::array(), ranks = nlohmann::json::array();
  for (size_t i = 0; i < serial.size(); ++i) {
    losses.push_back({{"step", trained.from.step + static_cast<int64_t>(i) + 1},
                      {"serial", serial[i]},
                      {"schedule", trained.result.losses[i]}});
    if (trained.largest_loads[i] == 0) continue;
    losses.back()["largest_expert_load"] = trained.largest_loads[i];
    losses.back()["dropped_choices"] = trained.dropped_choices[i];
  }
  for (const DeviceTrace& t : trained.trace.devices) {
    ranks.push_back({{"peak_activation_bytes", t.peak_activation.value()},
                     {"peak_state_bytes", t.peak_state.value()},
                     {"sent_bytes", t.bytes_sent.value()},
                     {"messages", t.messages_sent},
                     {"sent_to_group_bytes", t.tensor_bytes.value()}});
  }
  return {{"schema", kOutputSchema},
          {"parameters", study.graph.num_parameters()},
          {"micro_batches", study.schedule.num_micro_batches},
          {"losses", losses},
          {"reproduces_serial", equality.ok && trained.has_serial},
          {"step_ms", ToMilliseconds(trained.measured)},
          {"replayed_step_ms", ToMilliseconds(trained.replayed)},
          {"equality", equality.text},
          {"ranks", ranks},
          {"as_predicted", Prediction(trained, study.tensor_parallel)}};
}

absl::Status TrainAndCompare(const Words& words, const Processes& processes) {
  PIPELAB_ASSIGN_OR_RETURN(const RunInput study, RunInputFromFlags(words));
  const Schedule& schedule = study.schedule;
  PIPELAB_ASSIGN_OR_RETURN(Trained trained, TrainUnderScheme(study, processes.transport()));
  if (!processes.speaks()) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> serial,
                           TrainSerially(study, schedule.num_micro_batches, {}, {}, trained));
  const bool replicas = schedule.placement.num_replicas() > 1;
  if (replicas || schedule.num_slices > 1) {
    trained.result.part = replicas ? "replica" : "slice";
    PIPELAB_ASSIGN_OR_RETURN(
        trained.result.serial_by_part,
        TrainSerially(study, schedule.num_micro_batches,
                      replicas ? schedule.placement.replica_of_micro_batch : std::vector<int>(),
                      trained.result.slices, trained));
  }
  Equality equality = CompareLosses(trained.result, serial);
  if (!equality.ok && trained.has_serial && !trained.result.must_be_bit_equal) {
    PIPELAB_ASSIGN_OR_RETURN(
        trained.result.rounded,
        TrainSerially(study, schedule.num_micro_batches, {}, {}, trained, /*rounded=*/true));
    equality = CompareLosses(trained.result, serial);
  }
  // A part of the vocabulary has its input's gradient from the loss.
  const auto is_detached = [](const LayerSpec& layer) {
    return !layer.detached.empty() && layer.kind != kVocabularyShard;
  };
  const bool local =
      std::any_of(trained.graph.layers.begin(), trained.graph.layers.end(), is_detached);
  if (local) {
    absl::StrAppend(&equality.text, ", as in serial local learning: each stage has its own loss");
  }
  // An asynchronous schedule steps on gradients of older weights, by its paper's rule; local
  // learning's are of the newest.
  if (!trained.has_serial) {
    equality.text = absl::StrCat(schedule.HasUnequalPasses()
                                     ? "stages run passes of their own numbers"
                                     : "asynchronous without a published staleness rule",
                                 ", so not compared with serial training");
    equality.ok = true;
  } else if (HasOwnSteps(schedule) && !local) {
    absl::StrAppend(&equality.text, ", by its published staleness rule");
  }
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!json_out.empty()) {
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", json_out,
                                        DumpJson(TrainedJson(study, trained, serial, equality))));
  }
  if (json_out != "-") {
    PIPELAB_RETURN_IF_ERROR(WriteOutput(
        "stdout", "-",
        absl::StrFormat(
            "%s: %s, %s, %d micro-batches\n"
            "\n%s\nlosses: %s\n\n%s\n%s%s",
            study.source,
            absl::StrReplaceAll(study.title, {{"%", absl::StrCat(study.graph.num_parameters())}}),
            DeviceCount(schedule, study.tensor_parallel, processes), schedule.num_micro_batches,
            Losses(serial, trained, equality), equality.text,
            Devices(trained.trace, study.split().divides()),
            absl::StrCat("bytes held and sent: as predicted ",
                         Prediction(trained, study.tensor_parallel), "\n"),
            absl::StrCat(Loads(trained), StepTimes(trained), Counts(trained.counts))) +
            Checkpoints(study, trained)));
  }
  if (equality.ok) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(study.source, " does not reproduce serial training: ", equality.text));
}

}  // namespace

absl::Status RunCommand(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(Processes processes, Processes::Join());
  return processes.End(TrainAndCompare(words, processes));
}

}  // namespace pipelab
