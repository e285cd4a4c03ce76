#include "experiments/training/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "experiments/training/comparison_prediction.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The scheme runs branches side by side.
bool TakesBranches(const ComparisonOptions& options, const Scheme& scheme) {
  return (scheme.options & kStageGraph) != 0 && !TakesVocabularyParts(scheme) &&
         !options.parallel_stages.empty();
}

StepConfig ConfigOf(const ComparisonOptions& options, const Scheme& scheme) {
  StepConfig config = CutByLayers();
  const std::vector<int>& stages = options.parallel_stages;
  const bool branches = TakesBranches(options, scheme);
  config.scheme = std::string(scheme.name);
  config.pipeline =
      branches ? *std::max_element(stages.begin(), stages.end()) + 1 : options.devices;
  config.micro_batches = options.micro_batches;
  config.micro_batch_size = options.micro_batch_size;
  config.virtual_stages =
      options.virtual_stages > 0 && scheme.default_virtual_stages > 1 ? options.virtual_stages : 0;
  // GPipe as published re-materialises; the others keep their activations.
  if (scheme.name == "gpipe") config.recompute = Recompute::kFull;
  config.layout = branches ? StagesText(stages) : options.layout;
  return config;
}

// True in the process, of several, that has all traces and does what one does for all.
bool IsFirstProcess(const ComparisonOptions& options) {
  return options.transport == nullptr || options.transport->processes() == nullptr ||
         options.transport->processes()->rank() == 0;
}

std::string LossNote(double loss) { return absl::StrFormat("loss %.3f", loss); }

// What a serial loop follows of a scheme's order of summing (SerialOptions).
struct SumOrder {
  std::vector<int> sum_of_micro_batch;
  std::vector<int64_t> slices;
  std::vector<int> stage_of_layer;

  bool operator<(const SumOrder& o) const {
    return std::tie(sum_of_micro_batch, slices, stage_of_layer) <
           std::tie(o.sum_of_micro_batch, o.slices, o.stage_of_layer);
  }
};

// And the name of the parts; empty where it is the plain loop's.
std::string PartsOf(const ModelGraph& graph, const PipelineTraining& training, SumOrder* order) {
  std::vector<std::string> parts;
  const Schedule& schedule = training.program().schedule;
  if (schedule.placement.num_replicas() > 1) {
    order->sum_of_micro_batch = schedule.placement.replica_of_micro_batch;
    parts.push_back("replica");
  }
  if (schedule.num_slices > 1) {
    order->slices = training.slices();
    parts.push_back("slice");
  }
  if (!SumsInLayerOrder(graph, training.partition())) {
    order->stage_of_layer = training.partition().stage_of_layer;
    parts.push_back("stage");
  }
  return absl::StrJoin(parts, " and ");
}

struct SerialRun {
  std::vector<double> losses;
  std::vector<Nanoseconds> times;
};

absl::StatusOr<SerialRun> TrainSerially(const ModelGraph& graph, const BatchSource& batches,
                                        const ComparisonOptions& options, absl::string_view label,
                                        const SumOrder& order) {
  SerialOptions serial;
  serial.num_micro_batches = options.micro_batches;
  serial.micro_batch_size = options.micro_batch_size;
  serial.data = &batches;
  serial.seed = options.seed;
  serial.optimizer = options.optimizer;
  serial.sum_of_micro_batch = order.sum_of_micro_batch;
  serial.slices = order.slices;
  serial.stage_of_layer = order.stage_of_layer;
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  PIPELAB_ASSIGN_OR_RETURN(auto trainer, SerialTrainer::Create(graph, backend.get(), serial));
  SerialRun run;
  Progress progress(label, options.steps, "step");
  for (int step = 0; step < options.steps; ++step) {
    const absl::Time begin = absl::Now();
    PIPELAB_ASSIGN_OR_RETURN(const double loss, trainer->Step());
    run.times.push_back(Nanoseconds(absl::ToInt64Nanoseconds(absl::Now() - begin)));
    run.losses.push_back(loss);
    if (!std::isfinite(loss)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--learning_rate=", BaseLearningRate(options.optimizer),
          ": serial training diverges: the loss of step ", step + 1, " is not finite"));
    }
    progress.Update(step + 1, LossNote(loss));
  }
  progress.Finish();
  return run;
}

absl::StatusOr<SchemeResult> TrainScheme(const ModelGraph& graph, const BatchSource& batches,
                                         const ComparisonOptions& options, const Scheme& scheme,
                                         SumOrder* order) {
  TrainingOptions training_options;
  training_options.config = ConfigOf(options, scheme);
  training_options.seed = options.seed;
  training_options.optimizer = options.optimizer;
  training_options.transport = options.transport;
  PIPELAB_ASSIGN_OR_RETURN(auto training,
                           PipelineTraining::Create(graph, batches, training_options));
  SchemeResult result;
  result.config = training_options.config;
  result.program = training->program();
  result.partition = training->partition();
  result.slices = training->slices();
  result.num_slices = result.program.schedule.num_slices;
  result.part = PartsOf(training->graph(), *training, order);
  if ((scheme.options & kNoGradients) != 0 && IsFirstProcess(options)) {
    PIPELAB_ASSIGN_OR_RETURN(SerialRun local, TrainSerially(training->graph(), batches, options,
                                                            "local learning, serial", {}));
    result.local_losses = std::move(local.losses);
  }
  const Schedule& schedule = result.program.schedule;
  result.config.virtual_stages =
      schedule.num_stages() * schedule.placement.num_replicas() / schedule.num_devices();
  result.must_be_bit_equal =
      KeepsMicroBatchOrder(schedule) && SumsInLayerOrder(training->graph(), training->partition());
  result.costs = training->costs();
  PIPELAB_ASSIGN_OR_RETURN(result.simulated, Simulate(result.program, result.costs));
  Progress progress(result.config.scheme, options.steps, "step");
  for (int step = 0; step < options.steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(TrainingStep done, training->Step());
    result.losses.push_back(done.loss);
    if (step + kReplayedSteps >= options.steps) result.traces.push_back(std::move(done.trace));
    progress.Update(step + 1, LossNote(done.loss));
  }
  progress.Finish();
  if (!IsFirstProcess(options)) return result;
  PIPELAB_ASSIGN_OR_RETURN(result.replayed,
                           Replay(result.program, result.traces, training->costs()));
  return result;
}

absl::StatusOr<std::vector<const Scheme*>> ChooseSchemes(const ComparisonOptions& options) {
  std::vector<const Scheme*> schemes;
  if (options.schemes.empty()) {
    for (const Scheme& scheme : Catalog()) {
      // Comparable with the serial loop, and not another one here.
      if (TrainsAsSerial(scheme) && !TakesVocabularyParts(scheme)) schemes.push_back(&scheme);
    }
  }
  for (const std::string& name : options.schemes) {
    PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(name, options.schemes_option));
    if (scheme->asynchronous || (scheme->options & kForwardOnly) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.schemes_option, "=", name, ": ",
                       scheme->asynchronous ? "asynchronous" : "inference",
                       "; it does not train as the serial loop that all schemes are "
                       "compared with"));
    }
    if (std::find(schemes.begin(), schemes.end(), scheme) != schemes.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.schemes_option, "=", name, ": listed twice"));
    }
    schemes.push_back(scheme);
  }
  return schemes;
}

absl::Status CheckOptions(const ComparisonOptions& options) {
  if (options.steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps=", options.steps, ": must be at least 1"));
  }
  if (options.micro_batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batch_size=", options.micro_batch_size, ": must be at least 1"));
  }
  if (options.virtual_stages < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--virtual_stages=", options.virtual_stages,
                     ": must be at least 1, or 0 for each scheme's own"));
  }
  return absl::OkStatus();
}

}  // namespace

double LossTolerance(int steps, int64_t terms, double first_loss) {
  return steps * static_cast<double>(std::max<int64_t>(1, terms - 1)) *
         static_cast<double>(std::numeric_limits<float>::epsilon()) * std::abs(first_loss);
}

int64_t SplitTerms(const ModelGraph& graph) {
  int64_t terms = 0;
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.split_dimension >= 0 && p.shape.size() > 1) terms += p.shape[p.split_dimension];
    }
  }
  return terms;
}

namespace {

// Partial results of a model's divided products on `degree` devices, and the sums of them: what is
// rounded to bfloat16 where one device rounds a product once.
int64_t SplitParts(const ModelGraph& graph, int64_t degree) {
  int64_t parts = 0;
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.split_dimension >= 0 && p.shape.size() > 1) parts += degree + 1;
    }
  }
  return parts;
}

// The same of attention on `context` devices with parts of the tokens, two chunks each: outputs,
// and gradients of queries and of keys, are sums of a part for each chunk of keys or queries.
int64_t ContextParts(const ModelGraph& graph, int64_t context) {
  const auto layers =
      std::count_if(graph.layers.begin(), graph.layers.end(), [](const LayerSpec& layer) {
        return layer.split.context == ContextUse::kKeys ||
               layer.split.context == ContextUse::kCausalKeys;
      });
  return context == 1 ? 0 : 3 * (2 * context + 1) * static_cast<int64_t>(layers);
}

}  // namespace

void AllowForDivision(const ModelGraph& graph, const TensorParallel& split, bool bfloat16,
                      SchemeResult* scheme) {
  const bool divided = split.degree * split.experts > 1;
  if (divided) scheme->tensor_terms = SplitTerms(graph);
  if (!bfloat16) return;
  scheme->rounded_parts =
      (divided ? SplitParts(graph, split.degree) : 0) + ContextParts(graph, split.context);
}

namespace {

// How far the rounded losses are from the serial ones at most, if they explain the differences
// beyond the tolerance; 0 if not.
double AmplifiedDifference(const std::vector<double>& serial, const std::vector<double>& rounded,
                           const std::vector<double>& differences, double tolerance) {
  if (rounded.size() != differences.size()) return 0;
  double largest = 0;
  for (size_t i = 0; i < differences.size(); ++i) {
    largest = std::max(largest, std::abs(rounded[i] - serial[i]));
    if (differences[i] > std::max(tolerance, kAmplified * largest)) return 0;
  }
  return largest;
}

}  // namespace

Equality CompareLosses(const SchemeResult& scheme, const std::vector<double>& from_end_to_end) {
  const std::vector<double>& serial =
      scheme.local_losses.empty() ? from_end_to_end : scheme.local_losses;
  Equality e;
  int worst = 0;
  std::vector<double> differences;
  bool finite = scheme.losses.size() == serial.size();
  for (size_t i = 0; i < serial.size() && finite; ++i) {
    finite = std::isfinite(scheme.losses[i]) && std::isfinite(serial[i]);
    const double difference = std::abs(scheme.losses[i] - serial[i]);
    differences.push_back(difference);
    if (difference > e.largest_difference) {
      e.largest_difference = difference;
      worst = static_cast<int>(i);
    }
  }
  if (!finite) {
    e.text = "DIFFERS: a loss is not finite";
    return e;
  }
  const double rounding = std::sqrt(static_cast<double>(scheme.rounded_parts)) * 0x1.0p-8;
  const double tolerance =
      scheme.must_be_bit_equal
          ? 0
          : LossTolerance(
                static_cast<int>(serial.size()),
                int64_t{scheme.config.micro_batches} * scheme.num_slices + scheme.tensor_terms,
                serial.front()) +
                static_cast<double>(serial.size()) * rounding * std::abs(serial.front());
  const bool by_part = !scheme.serial_by_part.empty() && scheme.losses == scheme.serial_by_part;
  const double rounded = AmplifiedDifference(serial, scheme.rounded, differences, tolerance);
  e.ok = by_part || e.largest_difference <= tolerance || rounded > 0;
  if (e.largest_difference == 0) {
    e.text = scheme.local_losses.empty() ? "bit-equal" : "bit-equal to local learning";
  } else if (by_part) {
    e.text = absl::StrFormat("within %.1e; bit-equal by %s", e.largest_difference, scheme.part);
  } else if (rounded > 0) {
    e.text = absl::StrFormat(
        "within %.1e: training amplifies rounding, and a serial loop from the next larger values "
        "differs by %.1e",
        e.largest_difference, rounded);
  } else {
    e.text = absl::StrFormat("%s %.1e (tolerance %.1e)", e.ok ? "within" : "DIFFERS by",
                             e.largest_difference, tolerance);
    if (!e.ok) absl::StrAppend(&e.text, " at step ", worst + 1);
  }
  return e;
}

absl::Status CheckEquality(const ComparisonResult& result) {
  for (const SchemeResult& scheme : result.schemes) {
    const Equality equality = CompareLosses(scheme, result.serial_losses);
    if (equality.ok) continue;
    return absl::InternalError(
        absl::StrCat(scheme.config.scheme, " does not reproduce serial training: ", equality.text));
  }
  return absl::OkStatus();
}

absl::Status CheckComparison(const ModelGraph& graph, const ComparisonOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckOptions(options));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<const Scheme*> schemes, ChooseSchemes(options));
  for (const Scheme* scheme : schemes) {
    SchemeParams sizes = SchemeSizes(ConfigOf(options, *scheme));
    if (TakesBranches(options, *scheme)) {
      PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                               MakePartition(graph, options.parallel_stages));
      sizes.stages = partition.stages;
    }
    PIPELAB_ASSIGN_OR_RETURN(Schedule schedule,
                             MakeSchedule(scheme->name, sizes, options.schemes_option));
    if (TakesBranches(options, *scheme)) continue;
    PIPELAB_RETURN_IF_ERROR(
        ChoosePartition(graph, schedule.num_stages(), options.micro_batch_size, options.layout)
            .status());
  }
  return absl::OkStatus();
}

absl::StatusOr<ComparisonResult> Compare(const ModelGraph& graph, const BatchSource& batches,
                                         const ComparisonOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckComparison(graph, options));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<const Scheme*> schemes, ChooseSchemes(options));
  ComparisonResult result;
  const bool first = IsFirstProcess(options);
  const bool one_process =
      options.transport == nullptr || options.transport->processes() == nullptr;
  std::unique_ptr<StepTimePrediction> prediction;
  if (options.calibrate && one_process) prediction = std::make_unique<StepTimePrediction>();
  SerialRun serial;
  if (first) {
    PIPELAB_ASSIGN_OR_RETURN(serial, TrainSerially(graph, batches, options, "serial", {}));
  }
  result.serial_losses = std::move(serial.losses);
  result.serial_times = std::move(serial.times);
  // Schemes may share one.
  std::map<SumOrder, std::vector<double>> by_part;
  for (const Scheme* scheme : schemes) {
    SumOrder order;
    if (prediction != nullptr) PIPELAB_RETURN_IF_ERROR(prediction->Measure());
    PIPELAB_ASSIGN_OR_RETURN(SchemeResult one,
                             TrainScheme(graph, batches, options, *scheme, &order));
    if (first && !one.part.empty()) {
      std::vector<double>& losses = by_part[order];
      if (losses.empty()) {
        PIPELAB_ASSIGN_OR_RETURN(
            serial,
            TrainSerially(graph, batches, options, absl::StrCat("serial by ", one.part), order));
        losses = std::move(serial.losses);
      }
      one.serial_by_part = losses;
    }
    result.schemes.push_back(std::move(one));
  }
  if (prediction != nullptr) {
    PIPELAB_RETURN_IF_ERROR(prediction->Predict(graph, options, &result));
  }
  return result;
}

}  // namespace pipelab
