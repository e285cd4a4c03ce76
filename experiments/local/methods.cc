#include "experiments/local/methods.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/train/predict.h"
#include "experiments/train/train_part.h"
#include "models/zoo/amoebanet.h"
#include "pipelines/fill/fill_network.h"
#include "pipelines/fill/gaps.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMicroBatchSamples = 8;
constexpr LocalHead kHead = LocalHead::kConvolution;
constexpr int64_t kWholeStudy = 4992;  // batches that the accuracy's claim is of

// Fashion-MNIST's.
AmoebaNetConfig FashionNetwork() { return SmallAmoebaNet(28, 28, 1, 10); }

// PPLL as its paper has it: `local`, whose steps need no flush.
constexpr char kNoFlush[] = "local, no flush";
constexpr int kAllMicroBatches = kMethodSamples / kMicroBatchSamples;

// Asynchronous schemes, and what needs no flush, run all samples as one program; the others a step
// at a time.
absl::StatusOr<Method> Priced(StepCache* cache, const std::string& scheme,
                              const std::vector<FillNetwork>& fill) {
  StepConfig c;
  c.scheme = scheme == kNoFlush ? "local" : scheme;
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* found, FindScheme(c.scheme));
  const bool whole = scheme == kNoFlush || found->asynchronous;
  c.micro_batches = whole ? kAllMicroBatches : kMethodMicroBatches;
  if (whole && (found->options & kUpdateEvery) != 0) c.update_interval = kMethodMicroBatches;
  c.pipeline = kMethodDevices;
  c.micro_batch_size = kMicroBatchSamples;
  c.cut = CutRule::kLayers;
  c.local_heads = kHead;
  const int64_t steps = kAllMicroBatches / c.micro_batches;
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, PredictStep(cache, c));
  Method m;
  m.scheme = scheme;
  m.step = Nanoseconds(p.step_time.value() * steps);
  m.largest_device = p.largest_device;
  for (const DevicePrediction& d : p.devices) m.sent += Bytes(d.sent.value() * steps);
  m.late = Lateness(p.step.program.schedule);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<DeviceGaps> gaps,
                           FindGaps(p.step.program, p.step.costs, p.trace, p.step.device_memory));
  Nanoseconds idle, filled;
  for (const DeviceGaps& device : gaps) {
    idle += device.idle;
    filled += FillWithNetwork(fill, device, /*slack=*/Nanoseconds()).work;
  }
  m.idle = idle / p.step_time / static_cast<double>(gaps.size());
  if (idle > Nanoseconds(0)) m.filled = filled / idle;
  return m;
}

// The accuracy of each loss, the network's own last.
absl::StatusOr<std::vector<double>> Judge(const StudyPart& part, const LabelledImages& asked,
                                          const PipelineTraining& training) {
  PIPELAB_ASSIGN_OR_RETURN(const auto trained, Evaluator::Create(training.graph(), part));
  PIPELAB_ASSIGN_OR_RETURN(const TrainingState state, training.State());
  PIPELAB_RETURN_IF_ERROR(trained->TakeValues(state));
  return Accuracies(trained->network(), *part.held_out, asked.labels);
}

}  // namespace

TrainingOptions MethodTraining(const Scheme& scheme, int64_t batches) {
  TrainingOptions options;
  options.config.scheme = std::string(scheme.name);
  options.config.pipeline = kMethodDevices;
  const bool whole = scheme.asynchronous;
  options.config.micro_batches = whole ? kMethodRun : kMethodMicroBatches;
  if (whole && (scheme.options & kUpdateEvery) != 0)
    options.config.update_interval = kMethodMicroBatches;
  options.config.micro_batch_size = kMicroBatchSamples;
  options.config.local_heads = kHead;
  options.trace = false;
  options.optimizer.adam.learning_rate = 0.004f;
  options.optimizer.adam.weight_decay = 0.01f;
  const int steps = (scheme.options & kLateGradients) != 0 ? kMethodMicroBatches : 1;  // of a batch
  options.optimizer.schedule = {steps * batches / 50, RateDecay::kCosine, steps * batches};
  return options;
}

absl::StatusOr<std::vector<double>> TrainedAccuracies(const TrainingOptions& options,
                                                      const ModelGraph& graph,
                                                      const ImageData& images, int64_t batches) {
  const int64_t run = options.config.micro_batches / kMethodMicroBatches;  // batches
  StudyPart part;
  part.graph = graph;
  part.train = std::make_shared<ImageBatchSource>(
      images.train, images.scale, ImageOptions(),
      ExampleOrder(images.train->size(), options.config.micro_batches * kMicroBatchSamples,
                   /*seed=*/1, "data/images"));
  part.held_out = std::make_shared<ImageBatchSource>(images.held_out, images.scale, ImageOptions(),
                                                     ExampleOrder(images.held_out->size()));
  PIPELAB_ASSIGN_OR_RETURN(const auto training,
                           PipelineTraining::Create(part.graph, *part.train, options));
  Progress progress(options.config.scheme, batches, "step");
  for (int64_t batch = run; batch <= batches; batch += run) {
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep done, training->Step());
    progress.Update(batch, absl::StrFormat("loss %.4f", done.loss));
  }
  progress.Finish();
  return Judge(part, *images.held_out, *training);
}

int Lateness(const Schedule& schedule) {
  std::vector<int> late(schedule.num_stages(), 0);
  std::vector<int> order = schedule.stages.TopologicalOrder();
  std::reverse(order.begin(), order.end());
  for (int stage : order) {
    for (int e : schedule.stages.out_edges[stage]) {
      const StageGraph::Edge& edge = schedule.stages.edges[e];
      if (!edge.gradient.late()) continue;
      late[stage] = std::max(late[stage], late[edge.to] + edge.gradient.number);
    }
  }
  int most = *std::max_element(late.begin(), late.end());
  for (int stage = 0; stage < schedule.num_stages(); ++stage) {
    int newest = 0;  // that the stage has had
    for (int m = 0; schedule.ReplaysAt(stage) && m < schedule.MicroBatches(stage); ++m) {
      const int sample = schedule.SampleOf(stage, m);
      newest = std::max(newest, sample);
      most = std::max(most, newest - sample);
    }
  }
  if (!HasOwnSteps(schedule)) return most;
  for (const std::vector<Action>& list : schedule.order) {
    std::vector<int> newest(schedule.num_stages(), 0), behind(schedule.num_stages(), 0);
    std::vector<int> backwards(schedule.num_stages(), 0);
    for (const Action& a : list) {
      if (a.kind == ActionKind::kStep) {
        // The gradients of a step that are of the oldest weights miss so many steps' micro-batches.
        most = std::max(most, behind[a.stage] * backwards[a.stage]);
        newest[a.stage] = a.version;
        behind[a.stage] = backwards[a.stage] = 0;
      } else if (a.kind == ActionKind::kBackward) {
        ++backwards[a.stage];
        behind[a.stage] = std::max(behind[a.stage], newest[a.stage] - a.version);
      }
    }
  }
  return most;
}

absl::StatusOr<std::vector<Method>> PricedMethods(const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, BuildAmoebaNet(FashionNetwork()));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = NumberType::kFp32;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<FillNetwork> fill,
                           FillNetworks(model.graph, {cluster.device, on.type}, {}));
  StepCache cache(on);
  std::vector<Method> methods;
  for (const char* scheme :
       {"1f1b", "zb_h1", "zbv", "local", kNoFlush, "over_time", "pipedream_2bw"}) {
    PIPELAB_ASSIGN_OR_RETURN(Method m, Priced(&cache, scheme, fill));
    if (m.scheme == "zb_h1" || m.scheme == "zbv") m.equal_to = "1f1b";
    if (m.scheme == kNoFlush) m.equal_to = "local";
    methods.push_back(std::move(m));
  }
  return methods;
}

absl::Status CheckTrainBatches(int64_t batches) {
  constexpr int64_t kRun = kMethodRun / kMethodMicroBatches;
  if (batches >= kRun && batches % kRun == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--train_batches=", batches, ": must be a multiple of ", kRun, ", or 0 for none"));
}

absl::Status TrainMethods(const ImageData& images, int64_t batches, std::vector<Method>* methods) {
  const LabelledImages& train = *images.train;
  PIPELAB_ASSIGN_OR_RETURN(
      const GroupedModel model,
      BuildAmoebaNet(SmallAmoebaNet(train.height, train.width, train.channels, train.classes)));
  PIPELAB_RETURN_IF_ERROR(CheckTrainBatches(batches));
  for (Method& m : *methods) {
    if (!m.equal_to.empty()) continue;
    PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(m.scheme));
    PIPELAB_ASSIGN_OR_RETURN(
        m.exits, TrainedAccuracies(MethodTraining(*scheme, batches), model.graph, images, batches));
    m.accuracy = m.exits.back();
    m.exits.pop_back();
  }
  for (Method& m : *methods) {
    for (const Method& other : *methods) {
      if (other.scheme == m.equal_to) m.accuracy = other.accuracy;
    }
  }
  return absl::OkStatus();
}

Table MethodTable(const std::vector<Method>& methods, int64_t samples) {
  Table t("methods", "What a sample costs and what it teaches: AmoebaNet-D (3, 32), P = 4");
  t.AddKey("scheme");
  t.AddColumn({"sample", "time of a sample", "sample", "us", Origin::kSimulated, 1});
  t.AddColumn({"memory", "largest GPU", "memory", "MiB", Origin::kSimulated, 1});
  t.AddColumn({"sent", "sent a sample", "sent", "KiB", Origin::kSimulated, 1});
  t.AddColumn({"late", "gradients late by", "late", "micro-batches", Origin::kComputed, 0});
  t.AddColumn({"idle", "idle of the step", "idle", "%", Origin::kSimulated, 1});
  t.AddColumn({"filled", "of that, a fill job's", "filled", "%", Origin::kSimulated, 1});
  t.AddColumn({"accuracy", absl::StrCat("accuracy after ", samples, " samples"), "accuracy", "",
               Origin::kMeasured, 4});
  for (const Method& m : methods) {
    const double per_sample = 1.0 / static_cast<double>(kMethodSamples);
    std::vector<Cell> row = {Label(m.scheme),
                             Simulated(ToMs(m.step) * 1e3 * per_sample),
                             Simulated(ToMiB(m.largest_device)),
                             Simulated(ToMiB(m.sent) * 1024 * per_sample),
                             Computed(m.late),
                             Simulated(ToPercent(m.idle)),
                             Simulated(ToPercent(m.filled))};
    if (!m.accuracy.has_value()) {
      row.push_back(Missing("not trained in this run"));
    } else {
      const auto four = [](std::string* out, double value) {
        absl::StrAppendFormat(out, "%.4f", value);
      };
      std::string note = m.equal_to.empty() ? "" : "the same bits as " + m.equal_to;
      if (!m.exits.empty()) {
        note = absl::StrCat("heads before the last: ", absl::StrJoin(m.exits, ", ", four));
      }
      Cell accuracy = Measured(*m.accuracy);
      accuracy.note = note;
      row.push_back(std::move(accuracy));
    }
    t.AddRow(std::move(row));
  }
  t.AddNote(absl::StrCat(
      "Micro-batches of ", kMicroBatchSamples, "; a step after each ", kMethodMicroBatches,
      " of them, and under over_time after each one. Fashion-MNIST; the same settings for all, "
      "those that amoebanet_train has for 1F1B. The fill job is the same network's inference."));
  return t;
}

std::vector<Claim> MethodClaims(const std::vector<Method>& methods, int64_t batches) {
  Claim c = OwnClaim("ppll.accuracy",
                     "local learning in four blocks comes within 1.5 points of backpropagation");
  absl::optional<double> local, end_to_end;
  for (const Method& m : methods) {
    if (m.scheme == "local") local = m.accuracy;
    if (m.scheme == "1f1b") end_to_end = m.accuracy;
  }
  if (batches < kWholeStudy || !local.has_value() || !end_to_end.has_value()) {
    NotMade(&c, absl::StrCat("--train_batches=", kWholeStudy, " makes it"));
    return {c};
  }
  Found(&c, Origin::kMeasured, *local,
        absl::StrFormat("%.4f, of %.4f by backpropagation", *local, *end_to_end));
  MetIf(&c, *local >= 0.895 && *local >= *end_to_end - 0.015,
        "at least 0.895, and within 0.015 of backpropagation", "blocks learn for their own heads");
  return {c};
}

}  // namespace pipelab
