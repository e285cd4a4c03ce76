#include "experiments/commands/step_input.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/output.h"
#include "experiments/report/table.h"
#include "models/files/model_file.h"
#include "models/specs/megatron_kernels.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step_fields.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(int, devices);  // schedule_input.cc
ABSL_DECLARE_FLAG(int, micro_batches);
ABSL_DECLARE_FLAG(int, virtual_stages);
ABSL_DECLARE_FLAG(int, group_size);
ABSL_DECLARE_FLAG(int, replicas);
ABSL_DECLARE_FLAG(std::string, concatenation);
ABSL_DECLARE_FLAG(int, update_interval);
ABSL_DECLARE_FLAG(int, slices);
ABSL_DECLARE_FLAG(int, data_parallel);
ABSL_DECLARE_FLAG(int, context_parallel);
ABSL_DECLARE_FLAG(std::string, context_exchange);
ABSL_DECLARE_FLAG(int, expert_parallel);
ABSL_DECLARE_FLAG(bool, recompute);
ABSL_DECLARE_FLAG(bool, overlap);  // time_flags.cc
ABSL_FLAG(std::string, model, "",
          "a published model's name, or a file of layers with their costs (docs/models.md): times "
          "and memory are then the model's, in milliseconds and bytes");
ABSL_FLAG(std::string, model_time_unit, "s", "unit of the times in a Piper file: s or ms");
ABSL_FLAG(
    std::string, kernels, "own",
    "whose kernels, and what they keep, a language model's layers cost: own, megatron (attention "
    "fused), megatron-unfused or megatron-unfused-loss (docs/models.md)");
ABSL_FLAG(std::string, cluster, "",
          "the machine for --model: a name or a file (docs/clusters.md); empty: all layers were "
          "measured, and messages take no time");
ABSL_FLAG(std::string, launches, "eager",
          "how kernels reach the cluster's devices: eager, each launched by the host, or graphs "
          "(CUDA graphs), where the host's time for each (host_launch) no longer counts");
ABSL_FLAG(int64_t, micro_batch_size, 1,
          "samples of a micro-batch of one data-parallel copy, with --model");
ABSL_FLAG(std::string, layout, "",
          "layers of each stage, with --model: 3,2,2,3 or 0-2;3,4;5-9; empty: stages of about the "
          "same time");
ABSL_FLAG(
    std::string, dtype, "",
    "numbers that the machine computes with: fp32, tf32, bf16, fp16 or fp8; empty: the narrowest "
    "that it has");
ABSL_FLAG(std::string, execution, "plain",
          "how steps run, with --model: plain, megatron2022, or parts of it with + between them "
          "(docs/search.md)");
ABSL_FLAG(std::string, ranks, "tp-dp-pp",
          "which ranks are neighbours on the cluster, innermost first, with --model: tp-dp-pp; "
          "tp-pp-dp, each replica on its own devices; tp-dp-mirror, for bidirectional schemes");
ABSL_FLAG(double, reserve, 0,
          "share of a device's memory that a step must leave free, 0 to 1: for the library, "
          "fragmentation, the display");

namespace pipelab {
namespace {

constexpr int64_t kMostDevices = 1 << 20;

// What a configuration's keys say.
constexpr const char* kSizeFlags[] = {
    "devices",          "micro_batches", "virtual_stages",   "group_size",
    "replicas",         "concatenation", "recompute",        "update_interval",
    "slices",           "data_parallel", "context_parallel", "expert_parallel",
    "micro_batch_size", "layout",        "execution",        "ranks",
    "context_exchange"};

absl::Status CheckNoSizeFlags(const std::string& word) {
  for (const char* flag : kSizeFlags) {
    if (!FlagWasSet(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": the configuration ", word, " says its sizes; give them there"));
  }
  return absl::OkStatus();
}

// Flags with the words of a configuration's keys.
absl::Status TakeKeys(StepConfig* config) {
  for (const auto& [key, value] :
       {std::make_pair("execution", absl::GetFlag(FLAGS_execution)),
        std::make_pair("ranks", absl::GetFlag(FLAGS_ranks)),
        std::make_pair("context_exchange", absl::GetFlag(FLAGS_context_exchange))}) {
    for (const StepField& field : StepFields()) {
      if (field.key != key || value == field.get(StepConfig())) continue;
      const absl::Status set = field.set(value, config);
      if (set.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat("--", key, "=", value, ": ", set.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StepConfig> ConfigFromFlags(const std::string& scheme) {
  StepConfig c;
  c.scheme = scheme;
  c.pipeline = absl::GetFlag(FLAGS_devices);
  c.micro_batches = absl::GetFlag(FLAGS_micro_batches);
  c.virtual_stages = absl::GetFlag(FLAGS_virtual_stages);
  c.data = absl::GetFlag(FLAGS_data_parallel);
  c.context = absl::GetFlag(FLAGS_context_parallel);
  c.experts = absl::GetFlag(FLAGS_expert_parallel);
  c.micro_batch_size = absl::GetFlag(FLAGS_micro_batch_size);
  c.recompute = absl::GetFlag(FLAGS_recompute) ? Recompute::kFull : Recompute::kNone;
  c.group_size = absl::GetFlag(FLAGS_group_size);
  c.replicas = absl::GetFlag(FLAGS_replicas);
  c.update_interval = absl::GetFlag(FLAGS_update_interval);
  c.slices = absl::GetFlag(FLAGS_slices);
  c.layout = absl::StrReplaceAll(absl::GetFlag(FLAGS_layout), {{",", "+"}, {";", "/"}});
  c.overlap_pipeline = absl::GetFlag(FLAGS_overlap);
  PIPELAB_ASSIGN_OR_RETURN(c.concatenation, ParseConcatenation(absl::GetFlag(FLAGS_concatenation)));
  PIPELAB_RETURN_IF_ERROR(TakeKeys(&c));
  for (const auto& [flag, value] : {std::make_pair("context_parallel", int64_t{c.context}),
                                    std::make_pair("expert_parallel", int64_t{c.experts}),
                                    std::make_pair("micro_batch_size", c.micro_batch_size)}) {
    if (value >= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, ": must be at least 1"));
  }
  return c;
}

absl::StatusOr<ModelGraph> WithKernels(ModelGraph graph, NumberType type) {
  const std::string kernels = absl::GetFlag(FLAGS_kernels);
  if (kernels == "own") return graph;
  const auto error = [&](absl::string_view reason) {
    return absl::InvalidArgumentError(absl::StrCat("--kernels=", kernels, ": ", reason));
  };
  const bool unfused_loss = kernels == "megatron-unfused-loss";
  const bool fused = kernels == "megatron" || unfused_loss;
  if (!fused && kernels != "megatron-unfused") {
    return error("must be own, megatron, megatron-unfused or megatron-unfused-loss");
  }
  const auto has = [&](absl::string_view kind) {
    return std::any_of(graph.layers.begin(), graph.layers.end(),
                       [&](const LayerSpec& layer) { return layer.kind == kind; });
  };
  const bool latent = has("gpt_latent_attention");
  if (latent && !fused) return error("latent attention is fused; megatron would do");
  if (!latent && !has("gpt_attention")) {
    return error(absl::StrCat(graph.name, " is no language model"));
  }
  // The code whose loss is not fused adds gradients up by kernels of their own.
  const auto with_kernels = unfused_loss ? MegatronGraph : MegatronCoreGraph;
  return with_kernels(
      std::move(graph), fused ? AttentionImplementation::kFused : AttentionImplementation::kUnfused,
      type, unfused_loss ? LossImplementation::kUnfused : LossImplementation::kFused);
}

std::string ModelWord(const StepConfig& config) {
  return config.model.empty() ? absl::GetFlag(FLAGS_model) : config.model;
}

absl::StatusOr<ModelGraph> LoadModel(const std::string& word) {
  const std::string unit = absl::GetFlag(FLAGS_model_time_unit);
  ModelFileOptions options;
  if (unit == "ms") {
    options.piper_unit = PiperTimeUnit::kMilliseconds;
  } else if (unit != "s") {
    return absl::InvalidArgumentError(
        absl::StrCat("--model_time_unit=", unit, ": must be s or ms"));
  }
  if (word.empty()) {
    return absl::InvalidArgumentError("--model: missing; a name (pipelab list models) or a file");
  }
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, FindModel("--model", word, options));
  PrintNotes(graph);
  return graph;
}

absl::StatusOr<NumberType> TypeFromFlags(const StepConfig& config, const ClusterSpec& cluster) {
  const std::string name = config.dtype.empty() ? absl::GetFlag(FLAGS_dtype) : config.dtype;
  if (name.empty()) return NarrowestType(cluster.device);
  const absl::StatusOr<NumberType> type = FindNumberType(name);
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", name, ": ", type.status().message()));
  }
  if (cluster.device.peaks.count(*type) > 0) return type;
  return absl::InvalidArgumentError(
      absl::StrCat("--dtype=", name, ": ", cluster.name, " does not compute with it"));
}

}  // namespace

bool IsConfigWord(const std::string& word) {
  return absl::StrContains(word, ':') || absl::EndsWith(word, ".csv") ||
         absl::EndsWith(word, ".json") || absl::EndsWith(word, ".txt");
}

absl::StatusOr<StepConfig> ConfigFromWord(const std::string& word) {
  if (!IsConfigWord(word)) return ConfigFromFlags(word);
  PIPELAB_RETURN_IF_ERROR(CheckNoSizeFlags(word));
  return ParseStepConfig("configuration", word);
}

absl::Status TakeLaunches(ClusterSpec* cluster) {
  const std::string launches = absl::GetFlag(FLAGS_launches);
  if (launches == "graphs") {
    cluster->device.host_launch.reset();
  } else if (launches != "eager") {
    return absl::InvalidArgumentError(
        absl::StrCat("--launches=", launches, ": must be eager or graphs"));
  }
  return absl::OkStatus();
}

ClusterSpec GrownTo(int64_t devices, ClusterSpec cluster) {
  const int64_t has = cluster.max_devices();
  if (devices <= has || devices > kMostDevices) return cluster;
  cluster = WithNodesFor(devices, std::move(cluster));
  if (cluster.max_devices() > has) {
    std::fprintf(stderr, "Note: %s has %s devices; figures are for %s nodes of its kind.\n",
                 cluster.name.c_str(), absl::StrCat(has).c_str(),
                 absl::StrCat(cluster.levels.back().size).c_str());
  }
  return cluster;
}

absl::StatusOr<std::unique_ptr<ModelOnCluster>> LoadModelOnCluster(const StepConfig& config) {
  PIPELAB_RETURN_IF_ERROR(UsableMemory(Bytes(0)).status());
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, LoadModel(ModelWord(config)));
  const std::string name = config.cluster.empty() ? absl::GetFlag(FLAGS_cluster) : config.cluster;
  if (name.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(graph, WithKernels(std::move(graph), NumberType::kFp32));
    return ModelOnCluster::Of(std::move(graph), absl::nullopt, NumberType::kFp32);
  }
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, LoadCluster("--cluster", name));
  PIPELAB_RETURN_IF_ERROR(TakeLaunches(&cluster));
  const int64_t asked = FlagWasSet("devices") ? absl::GetFlag(FLAGS_devices) : 0;
  cluster = GrownTo(std::max(asked, config.devices()), std::move(cluster));
  PIPELAB_ASSIGN_OR_RETURN(const NumberType type, TypeFromFlags(config, cluster));
  PIPELAB_ASSIGN_OR_RETURN(graph, WithKernels(std::move(graph), type));
  return ModelOnCluster::Of(std::move(graph), std::move(cluster), type);
}

absl::Status FaultOfModel(const absl::Status& status, const StepConfig& of) {
  if (!IsTooLong(status) || !IsModelFile(ModelWord(of))) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("--model=", ModelWord(of), ": ", status.message()));
}

absl::Status CheckHasTimes(const ModelOnCluster& on) {
  if (on.step().cluster != nullptr) return absl::OkStatus();
  for (const LayerSpec& layer : on.model().graph.layers) {
    const LayerOperations ops = layer.operations(1, TokenSlice());
    for (const auto* pass : {&ops.forward, &ops.backward_input, &ops.backward_weight}) {
      for (const Operation& o : *pass) {
        if (o.kind == OperationKind::kMeasured || o.own) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("--cluster: missing, and layer \"", layer.name,
                         "\" has flops and no measured time; give the machine that it runs on"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CalibrationNote(
    const StepModel& on, Nanoseconds expected,
    const std::function<absl::StatusOr<StepPrediction>(const StepModel&)>& predict) {
  if (on.cluster == nullptr) return "";
  const std::string warning = CalibrationWarning(*on.cluster);
  if (warning.empty()) return "";
  const EfficiencyRange range = EfficiencyRangeOf(*on.cluster);
  std::vector<Nanoseconds> times;
  for (const double efficiency : {range.best, range.worst}) {
    const ClusterSpec cluster = WithEfficiency(*on.cluster, efficiency);
    StepModel changed = on;
    changed.cluster = &cluster;
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, predict(changed));
    times.push_back(p.step_time);
  }
  return absl::StrFormat(
      "Note: %s.\nStep: %.1f ms at best, %.1f ms expected, %.1f ms at worst efficiency (%g, 1 and "
      "%g times the specification's shares).\n",
      warning, ToMilliseconds(times[0]), ToMilliseconds(expected), ToMilliseconds(times[1]),
      range.best, range.worst);
}

double ReserveFromFlags(double unless_set) {
  return FlagWasSet("reserve") ? absl::GetFlag(FLAGS_reserve) : unless_set;
}

absl::StatusOr<Bytes> UsableMemory(Bytes device_memory, double unless_set) {
  const double reserve = ReserveFromFlags(unless_set);
  if (!(reserve >= 0 && reserve < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--reserve=", reserve, ": must be at least 0 and below 1"));
  }
  return Bytes(static_cast<int64_t>(static_cast<double>(device_memory.value()) * (1 - reserve)));
}

absl::Status CheckMemory(const StepPrediction& p) {
  if (p.step.device_memory == Bytes(0)) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const Bytes usable, UsableMemory(p.step.device_memory));
  if (p.largest_device <= usable) return absl::OkStatus();
  const std::string reserved =
      usable < p.step.device_memory
          ? absl::StrFormat(" less --reserve=%g", absl::GetFlag(FLAGS_reserve))
          : "";
  return DoesNotFit(absl::StrFormat("%s does not fit: the fullest device needs %.2f GiB of %.2f%s",
                                    p.step.config.ToString(), ToGiB(p.largest_device),
                                    ToGiB(p.step.device_memory), reserved));
}

nlohmann::json StepAsJson(const StepPrediction& p) {
  nlohmann::json devices = nlohmann::json::array();
  for (const DevicePrediction& d : p.devices) {
    devices.push_back({{"memory_gib", ToGiB(d.memory)},
                       {"memory_bytes", d.memory.value()},
                       {"peak_activation_bytes", d.peak_activation.value()},
                       {"peak_state_bytes", d.peak_state.value()},
                       {"sent_bytes", d.sent.value()},
                       {"collective_bytes", d.collective.value()},
                       {"tensor_bytes", d.tensor.value()},
                       {"bubble", d.bubble},
                       {"peak_in_flight", d.peak_in_flight}});
  }
  const absl::StatusOr<Bytes> usable = UsableMemory(p.step.device_memory);
  return {
      {"schema", kOutputSchema},
      {"config", p.step.config.ToString()},
      {"step_ms", ToMs(p.step_time)},
      {"bubble", p.bubble},
      {"memory_gib", ToGiB(p.largest_device)},
      {"memory_bytes", p.largest_device.value()},
      {"fits", p.step.device_memory == Bytes(0) || (usable.ok() && p.largest_device <= *usable)},
      {"tflops_per_device", p.tflops_per_device},
      {"samples_per_second", p.samples_per_second()},
      {"devices", devices}};
}

}  // namespace pipelab
