// pipelab run: trains a small GPT under a schedule, or a plan's model, on devices of this process
// or of those that mpirun started, beside the serial loop.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "experiments/flags/output.h"
#include "experiments/run/run_commands.h"
#include "experiments/run/run_input.h"
#include "experiments/run/trained.h"
#include "experiments/training/comparison.h"
#include "experiments/training/processes.h"
#include "kernels/compute_device.h"
#include "models/specs/vocabulary_parts.h"
#include "pipelines/ir/versions.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc

namespace pipelab {
namespace {

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

// One line for each device, or for each of the ranks, where groups compute layers together, with
// what each sends to its group.
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

// The loads of the whole run, where there are experts.
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

// The times of a step, and what copies normalise by.
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
          {"as_predicted", Prediction(trained, study.config.tensor)}};
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
            DeviceCount(schedule, study.config.tensor, processes), schedule.num_micro_batches,
            Losses(serial, trained, equality), equality.text,
            Devices(trained.trace, study.config.split().divides()),
            absl::StrCat("bytes held and sent: as predicted ",
                         Prediction(trained, study.config.tensor), "\n"),
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
