// BaPipe's headline (Zhao et al., 2020) with our own planner, simulated: VGG-16, ResNet-50 and
// GNMT-8 on four devices beside data parallelism, and on devices of unequal speed.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/graph_plans/plan_sweep.h"
#include "experiments/report/report.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/zoo/gnmt.h"
#include "models/zoo/resnet.h"
#include "models/zoo/vgg.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace bapipe_comparison_study {

constexpr char kPaper[] = "BaPipe (arXiv 2012.12544), abstract";
constexpr int kDevices = 4;
constexpr double kSpeedUp = 3.2, kMemory = 4;
// What counts as met: a quarter around the speed-up; the weights of four stages, nearly even.
constexpr double kLeastGain = 2.4, kMostGain = 4.0, kLeastMemory = 3.5, kUnequal = 1.3;
// The abstract says "various platforms". One V100 a host: 1 GB/s, 25 Gbit/s Ethernet, EDR.
constexpr double kGigabits[] = {8, 25, 100};
constexpr double kBatches[] = {1, 4};  // times the samples a device of StudyNet

PlanMethod BaPipeMethod() { return {"BaPipe", "bapipe", PlanObjective::kBatchTimeNoOverlap}; }

// Samples a device of image classification at that time, and of GNMT's own training.
absl::StatusOr<std::vector<StudyNet>> Nets() {
  std::vector<StudyNet> nets(3);
  nets[0].name = "VGG-16";
  PIPELAB_ASSIGN_OR_RETURN(nets[0].model, BuildVgg16({}));
  nets[1].name = "ResNet-50";
  PIPELAB_ASSIGN_OR_RETURN(nets[1].model, BuildResNet(ResNet50()));
  nets[2].name = "GNMT-8";
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph gnmt, BuildGnmt(GnmtConfig()));
  nets[2].model = GroupForPlanning(std::move(gnmt));
  nets[0].samples_per_device = nets[1].samples_per_device = 32;
  nets[2].samples_per_device = 64;
  return nets;
}

// Hosts of one V100 of 16 GB each.
absl::StatusOr<ClusterSpec> Hosts(double gigabits) {
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, LoadCluster("--cluster", "p3.16xlarge"));
  ClusterLevel network = cluster.levels.back();
  network.size = kDevices;
  network.sharing = Sharing::kDevice;
  network.connection.bandwidth.value = BytesPerSecond(gigabits * 1e9 / 8);
  cluster.levels = {std::move(network)};
  cluster.title = absl::StrFormat("hosts of one V100 of 16 GB each, %g Gbit/s", gigabits);
  return cluster;
}

double WeightBytes(const PlanProblem& problem, const std::vector<int>& layers) {
  return std::accumulate(layers.begin(), layers.end(), 0.0, [&](double sum, int v) {
    return sum + problem.operators[v].variants.at(1)[0].parameter_bytes;
  });
}

std::vector<int> AllLayers(const PlanProblem& problem) {
  std::vector<int> all(problem.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Data parallelism at every size of micro-batches, selected as a planner's plans are.
absl::StatusOr<PlanSweep> DataParallel(const StudyNet& net, const PlanSweepOptions& options) {
  PlanSweep sweep;
  for (int64_t size = 1; size <= net.samples_per_device * options.batch_factor; size *= 2) {
    PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem,
                             StudyProblem(net, BaPipeMethod(), size, options));
    Plan plan;
    PlanStage& stage = plan.stages.emplace_back();
    stage.layers = AllLayers(problem);
    stage.variants.assign(problem.size(), 0);
    stage.data = kDevices;
    sweep.runs.push_back(RunPlan(net, problem, plan, /*chain=*/true, options));
    sweep.runs.back().micro_batch_size = size;
  }
  return sweep;
}

// One network, network speed and batch.
struct Case {
  std::string net;
  double gigabits = 0, batch_factor = 1;
  int64_t batch = 0;
  PlanRun bapipe, data_parallel;
  double memory = 0;  // weights of all layers over those of the fullest stage

  double gain() const { return bapipe.throughput / data_parallel.throughput; }
};

absl::StatusOr<Case> Compare(const StudyNet& net, double gigabits, double batch_factor) {
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, Hosts(gigabits));
  PlanSweepOptions options;
  options.cluster = &cluster;
  options.devices = kDevices;
  options.batch_factor = batch_factor;
  PIPELAB_ASSIGN_OR_RETURN(const PlanSweep plans, SweepPlans(net, BaPipeMethod(), options));
  PIPELAB_ASSIGN_OR_RETURN(const PlanSweep copies, DataParallel(net, options));
  if (plans.best() == nullptr || copies.best() == nullptr) {
    return absl::InternalError(absl::StrCat(net.name, ": ", plans.WhyNone(), copies.WhyNone()));
  }
  Case c{net.name, gigabits, batch_factor, BatchOf(net, options), *plans.best(), *copies.best(), 0};
  PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem,
                           StudyProblem(net, BaPipeMethod(), c.bapipe.micro_batch_size, options));
  double most = 0;
  for (const PlanStage& stage : c.bapipe.plan.stages) {
    most = std::max(most, WeightBytes(problem, stage.layers));
  }
  c.memory = WeightBytes(problem, AllLayers(problem)) / most;
  return c;
}

// Four devices of which two have half the speed, with the planner's own times.
struct UnequalCase {
  std::string net;
  double even = 0, planned = 0;  // seconds of a batch

  double gain() const { return even / planned; }
};

absl::StatusOr<UnequalCase> CompareUnequal(const StudyNet& net) {
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, Hosts(kGigabits[1]));
  PlanSweepOptions options;
  options.cluster = &cluster;
  options.devices = kDevices;
  UnequalCase c{net.name};
  for (int64_t size = 1; size <= BatchOf(net, options); size *= 2) {
    PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem, StudyProblem(net, BaPipeMethod(), size, options));
    PIPELAB_ASSIGN_OR_RETURN(const Plan equal, MakePlan("bapipe", problem, {}));
    problem.device_speeds = {1, 1, 0.5, 0.5};
    PIPELAB_ASSIGN_OR_RETURN(const Plan unequal, MakePlan("bapipe", problem, {}));
    if (!equal.has_plan() || !unequal.has_plan()) continue;
    const double even = PlanValue(problem, equal.objective, equal.stages);
    c.even = c.even == 0 ? even : std::min(c.even, even);
    c.planned = c.planned == 0 ? unequal.value : std::min(c.planned, unequal.value);
  }
  return c;
}

Table CasesTable(const std::vector<Case>& cases) {
  Table t("throughput", "BaPipe's plans and data parallelism on four V100s, a host each");
  t.AddKey("net");
  t.AddKey("network");
  t.AddKey("batch");
  t.AddColumn({"data_parallel", "data parallel", "", "samples/s", Origin::kSimulated, 1});
  t.AddColumn({"bapipe", "BaPipe", "", "samples/s", Origin::kSimulated, 1});
  t.AddColumn({"gain", "BaPipe over data parallel", "", "", Origin::kComputed, 2});
  t.AddColumn({"micro_batch", "its micro-batch", "", "samples", Origin::kComputed, 0});
  t.AddColumn({"stages", "its stages", "", "", Origin::kComputed, 0});
  t.AddColumn(
      {"weights", "weights of all layers over its fullest stage's", "", "", Origin::kComputed, 2});
  for (const Case& c : cases) {
    t.AddRow({Label(c.net), Label(absl::StrFormat("%g Gbit/s", c.gigabits)),
              Label(static_cast<double>(c.batch)), Simulated(c.data_parallel.throughput),
              Simulated(c.bapipe.throughput), Computed(c.gain()),
              Computed(static_cast<double>(c.bapipe.micro_batch_size)), Computed(c.bapipe.stages),
              Computed(c.memory)});
  }
  return t;
}

Table UnequalTable(const std::vector<UnequalCase>& cases) {
  Table t("unequal", "Devices of speed 1, 1, 0.5 and 0.5: the planner's own time of a batch");
  t.AddKey("net");
  t.AddColumn({"even", "the plan for equal devices", "", "ms", Origin::kComputed, 1});
  t.AddColumn({"planned", "the plan for these", "", "ms", Origin::kComputed, 1});
  t.AddColumn({"gain", "gain", "", "", Origin::kComputed, 2});
  for (const UnequalCase& c : cases) {
    t.AddRow({Label(c.net), Computed(1e3 * c.even), Computed(1e3 * c.planned), Computed(c.gain())});
  }
  return t;
}

std::string CaseName(const Case& c) {
  return absl::StrFormat("%s, batch %d, %g Gbit/s", c.net, c.batch, c.gigabits);
}

// The largest gain at each network and batch.
Claim Headline(const std::vector<Case>& cases) {
  Claim c =
      PaperClaim("bapipe.headline", "throughput over data parallelism, at most", kPaper, "read");
  c.unit = "x";
  Published(&c, kSpeedUp);
  const auto less = [](const Case& a, const Case& b) { return a.gain() < b.gain(); };
  const Case& most = *std::max_element(cases.begin(), cases.end(), less);
  Found(&c, Origin::kSimulated, most.gain(),
        absl::StrFormat("up to %.2fx, %s", most.gain(), CaseName(most)));
  std::vector<RangeValue> range;
  std::string found;
  for (const double gigabits : kGigabits) {
    for (const double factor : kBatches) {
      double gain = 0;
      for (const Case& one : cases) {
        if (one.gigabits == gigabits && one.batch_factor == factor)
          gain = std::max(gain, one.gain());
      }
      range.push_back({absl::StrFormat("%g Gbit/s and %gx the batch", gigabits, factor),
                       gain >= kLeastGain && gain <= kMostGain});
      absl::StrAppendFormat(&found, "%s%.2fx at %s", found.empty() ? "" : ", ", gain,
                            range.back().value);
    }
  }
  MetOverRange(&c, "network and batch", range, "2.4x to 4.0x at each",
               absl::StrCat(found, "; the abstract names neither machines nor baselines"));
  return c;
}

Claim Memory(const std::vector<Case>& cases) {
  Claim c =
      PaperClaim("bapipe.memory", "memory of weights and their state a device", kPaper, "read");
  c.unit = "x";
  Published(&c, kMemory);
  const auto less = [](const Case& a, const Case& b) { return a.memory < b.memory; };
  const auto [least, most] = std::minmax_element(cases.begin(), cases.end(), less);
  Found(&c, Origin::kComputed, most->memory,
        absl::StrFormat("%.2fx (%s) to %.2fx (%s)", least->memory, least->net, most->memory,
                        most->net));
  MetIf(&c, least->memory >= kLeastMemory, "3.5x or more everywhere",
        "four stages of equal time have unequal weights: VGG-16's first dense layer alone has 74 % "
        "of them; \"4x less memory\" may be of a network whose layers are alike");
  return c;
}

Claim Unequal(const std::vector<UnequalCase>& cases) {
  Claim c = OwnClaim("bapipe.unequal",
                     "planning for devices of half the speed, over the plan for equal devices");
  c.unit = "x";
  double least = cases[0].gain();
  std::string found;
  for (const UnequalCase& one : cases) {
    least = std::min(least, one.gain());
    absl::StrAppendFormat(&found, "%s%s %.2fx", found.empty() ? "" : ", ", one.net, one.gain());
  }
  Found(&c, Origin::kComputed, least, found);
  MetIf(&c, least >= kUnequal, "each 1.3x or more",
        "layers do not divide as the speeds do, or transfers and not passes are the limit");
  return c;
}

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StudyNet> nets, Nets());
  std::vector<Case> cases;
  std::vector<UnequalCase> unequal;
  for (const StudyNet& net : nets) {
    for (const double gigabits : kGigabits) {
      for (const double factor : kBatches) {
        PIPELAB_ASSIGN_OR_RETURN(cases.emplace_back(), Compare(net, gigabits, factor));
      }
    }
    PIPELAB_ASSIGN_OR_RETURN(unequal.emplace_back(), CompareUnequal(net));
  }
  Report& report = study->report();
  report.AddTable(CasesTable(cases));
  report.AddTable(UnequalTable(unequal));
  report.AddClaim(Headline(cases));
  report.AddClaim(Memory(cases));
  report.AddClaim(Unequal(unequal));
  return absl::OkStatus();
}

}  // namespace bapipe_comparison_study

int RunBapipeComparisonStudy(int argc, char** argv) {
  StudyInfo info;
  info.name = "bapipe_comparison";
  info.title = "BaPipe's plans beside data parallelism";
  info.summary = "Compares BaPipe's plans of VGG-16, ResNet-50 and GNMT-8 with data parallelism.";
  info.description =
      "Four V100s, a host each: BaPipe's planner and data parallelism at every size of "
      "micro-batches, each simulated for a whole training step, the best of each. The paper's "
      "abstract has the figures; its machines, batches and baselines are not at hand, so networks "
      "of 8 to 100 Gbit/s and two batches are assumed.";
  return RunStudyMain(argc, argv, info, bapipe_comparison_study::Run);
}

}  // namespace pipelab
