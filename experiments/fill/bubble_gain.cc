#include "experiments/fill/bubble_gain.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/resnet.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<ModelGraph> BertOf(const char* name, int64_t layers, int64_t hidden, int64_t heads,
                                  int64_t words) {
  BertConfig c;
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.tokens = 512;
  c.vocabulary = words;
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildBert(c));
  graph.name = name;
  return graph;
}

absl::Status AddKinds(const ModelGraph& graph, const Machine& machine, FillSet* set) {
  for (const bool training : {false, true}) {
    FillNetworkOptions options;
    options.training = training;
    FillKind kind;
    kind.name = absl::StrCat(graph.name, training ? ", training" : ", inference");
    absl::StatusOr<std::vector<FillNetwork>> sizes = FillNetworks(graph, machine, options);
    // XLM-R XL does not train on one GPU; nobody would ask for it.
    if (absl::IsResourceExhausted(sizes.status())) continue;
    PIPELAB_RETURN_IF_ERROR(sizes.status());
    kind.sizes = *std::move(sizes);
    set->kinds.push_back(std::move(kind));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelGraph> MainGraph(const MainModel& model) {
  GptConfig c;
  c.layers = model.blocks;
  c.hidden = 8192;
  c.heads = 64;
  c.tokens = 2048;
  c.vocabulary = 51200;
  return BuildGpt(c);  // embedding and head are not tied, as asynchronous schemes need it
}

absl::StatusOr<Step> StepOf(const MainModel& model, ClusterSpec cluster, const std::string& scheme,
                            int64_t gpus, int micro_batches) {
  const int64_t copy = int64_t{model.pipeline} * model.tensor;
  if (gpus < copy || gpus % copy != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--devices: ", gpus, ": must be a multiple of ",
                                                   copy, ", the GPUs of a pipeline"));
  }
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, MainGraph(model));
  cluster = WithNodesFor(gpus, std::move(cluster));
  const NumberType type = NarrowestType(cluster.device);
  const auto on = ModelOnCluster::Of(std::move(graph), std::move(cluster), type);
  StepConfig config;
  config.scheme = scheme;
  config.pipeline = model.pipeline;
  config.tensor = model.tensor;
  config.data = static_cast<int>(gpus / copy);
  config.micro_batch_size = model.micro_batch_size;
  config.micro_batches = micro_batches;
  // Blocks do not know slices of tokens.
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* found, FindScheme(scheme));
  const bool sliced = (found->options & kTokenSlices) != 0;
  config.recompute = sliced ? Recompute::kNone : Recompute::kBlocks;
  return BuildStep(on->step(), config);
}

// Products of the blocks for a micro-batch, forward and backward.
absl::StatusOr<double> BlockFlops(const MainModel& model) {
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, MainGraph(model));
  double flops = 0;
  for (const LayerSpec& layer : graph.layers) {
    if (!absl::StartsWith(layer.name, "block")) continue;
    const LayerCosts costs = layer.costs(model.micro_batch_size);
    flops += (costs.forward + costs.backward_input + costs.backward_weight).value();
  }
  return flops;
}

absl::StatusOr<MainRun> RunOf(const Program& program, const CostTable& costs, const Trace& trace,
                              const Step& step, int members) {
  MainRun run;
  run.scheme = step.config.scheme;
  run.gpus = step.config.devices();
  run.micro_batches = step.config.micro_batches;
  run.step = trace.makespan;
  run.memory = step.device_memory;
  run.largest_device = LargestDevice(trace);
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis analysis, Analyze(program, trace));
  run.bubble = analysis.overall.bubble;
  PIPELAB_ASSIGN_OR_RETURN(std::vector<DeviceGaps> gaps,
                           FindGaps(program, costs, trace, step.device_memory));
  for (size_t d = 0; d < gaps.size(); d += members) run.gaps.push_back(std::move(gaps[d]));
  return run;
}

}  // namespace

double MainRun::idle_share() const {
  Nanoseconds idle;
  for (const DeviceGaps& device : gaps) idle += device.idle;
  return idle / step / static_cast<double>(gaps.size());
}

absl::StatusOr<FillSet> FillSetOn(const ClusterSpec& cluster, NumberType type) {
  const Machine machine{cluster.device, type};
  FillSet set;
  set.name = NumberTypeName(type);
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph base, BertOf("BERT-base", 12, 768, 12, 30522));
  PIPELAB_RETURN_IF_ERROR(AddKinds(base, machine, &set));
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph large, BertOf("BERT-large", 24, 1024, 16, 30522));
  PIPELAB_RETURN_IF_ERROR(AddKinds(large, machine, &set));
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph xl, BertOf("XLM-R XL", 36, 2560, 32, 250880));
  PIPELAB_RETURN_IF_ERROR(AddKinds(xl, machine, &set));
  PIPELAB_ASSIGN_OR_RETURN(GroupedModel resnet, BuildResNet(ResNet50()));
  resnet.graph.name = "ResNet-50";
  PIPELAB_RETURN_IF_ERROR(AddKinds(resnet.graph, machine, &set));
  return set;
}

absl::StatusOr<MainRun> EqualStages(const MainModel& model, const ClusterSpec& cluster,
                                    const std::string& scheme, int64_t gpus, int micro_batches) {
  PIPELAB_ASSIGN_OR_RETURN(const Step step, StepOf(model, cluster, scheme, gpus, micro_batches));
  // One copy, without reductions and the optimizer.
  SchemeParams sizes;
  sizes.devices = model.pipeline;
  sizes.micro_batches = micro_batches;
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(scheme, sizes));
  LoweringOptions lowering;
  lowering.step = false;
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(std::move(schedule), lowering));
  CostTable costs = CostTable::Unit(program.schedule);
  costs.stages.assign(costs.stages.size(), step.costs.stages[step.costs.stages.size() / 2]);
  // For the memory: they take no time.
  costs.edge_bytes.assign(costs.edge_bytes.size(), LargestMessage(step.costs));
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
  PIPELAB_ASSIGN_OR_RETURN(MainRun run, RunOf(program, costs, trace, step, 1));
  PIPELAB_ASSIGN_OR_RETURN(const double flops, BlockFlops(model));
  run.flops = Flops(flops * micro_batches / model.pipeline / model.tensor);
  return run;
}

absl::StatusOr<MainRun> WholeStep(const MainModel& model, const ClusterSpec& cluster,
                                  const std::string& scheme, int64_t gpus, int micro_batches) {
  PIPELAB_ASSIGN_OR_RETURN(Step step, StepOf(model, cluster, scheme, gpus, micro_batches));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, Predict(std::move(step)));
  PIPELAB_ASSIGN_OR_RETURN(MainRun run,
                           RunOf(p.step.program, p.step.costs, p.trace, p.step, p.step.members));
  run.step = p.step_time;
  run.flops = Flops(p.step.model_flops.value() / static_cast<double>(gpus));
  return run;
}

std::vector<FillGain> GainsOf(const FillSet& set, const MainRun& run) {
  std::vector<FillGain> gains;
  const double devices = static_cast<double>(run.gaps.size());
  for (const FillKind& kind : set.kinds) {
    FillGain g;
    double flops = 0;
    Nanoseconds idle, work, fits;
    const double rate = kind.rate().value();
    for (const DeviceGaps& device : run.gaps) {
      const FilledGaps filled = FillWithNetwork(kind.sizes, device, set.slack);
      flops += filled.flops.value();
      g.speeds.push_back(filled.flops.value() / ToSeconds(run.step) / rate);
      idle += device.idle;
      work += filled.work;
      fits += filled.fits;
      if (filled.samples == 0) continue;
      g.most_samples = std::max(g.most_samples, filled.samples);
      if (g.least_samples == 0 || filled.samples < g.least_samples) {
        g.least_samples = filled.samples;
      }
    }
    g.gain = flops / devices / run.flops.value();
    g.gpus_worth = static_cast<double>(run.gpus) * flops / devices / ToSeconds(run.step) / rate;
    if (idle > Nanoseconds(0)) {
      g.time_share = work / idle;
      g.memory_share = fits / idle;
      g.retained = flops / ToSeconds(idle) / rate;
    }
    gains.push_back(g);
  }
  return gains;
}

FillGain MeanOf(const std::vector<FillGain>& gains) {
  FillGain mean;
  const double n = static_cast<double>(
      std::count_if(gains.begin(), gains.end(), [](const FillGain& g) { return g.fits(); }));
  for (const FillGain& g : gains) {
    if (!g.fits()) continue;
    mean.gain += g.gain / n;
    mean.time_share += g.time_share / n;
    mean.memory_share += g.memory_share / n;
    mean.retained += g.retained / n;
    mean.gpus_worth += g.gpus_worth / n;
  }
  return mean;
}

}  // namespace pipelab
