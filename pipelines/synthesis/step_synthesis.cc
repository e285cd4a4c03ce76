#include "pipelines/synthesis/step_synthesis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/order_memory.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/placements.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kName[] = "synthesized";
constexpr int kFineStages[] = {4, 8};  // a device, where runs of them are balanced
constexpr int kMostRuns = 3;           // a device

// Some valid order, to price the placement with.
Schedule AnyOrder(const StepConfig& c, const std::vector<int>& device_of_stage) {
  Schedule schedule;
  schedule.name = kName;
  const int stages = static_cast<int>(device_of_stage.size());
  schedule.stages = StageGraph::Chain(stages);
  schedule.placement = Placement::Single(device_of_stage, c.pipeline, c.micro_batches);
  schedule.num_micro_batches = c.micro_batches;
  schedule.order.resize(c.pipeline);
  for (int s = 0; s < stages; ++s) {
    for (int m = 0; m < c.micro_batches; ++m) {
      schedule.order[device_of_stage[s]].push_back(Forward(s, m));
    }
  }
  for (int s = stages - 1; s >= 0; --s) {
    for (int m = 0; m < c.micro_batches; ++m) {
      schedule.order[device_of_stage[s]].push_back(Backward(s, m));
    }
  }
  if (c.recompute == Recompute::kFull) InsertRecompute(&schedule);
  return schedule;
}

absl::StatusOr<Step> StepOf(StepCache* cache, StepConfig config, const Schedule& schedule,
                            const std::vector<double>& speeds) {
  cache->AddSchedule(kName, schedule);
  config.scheme = kName;
  config.virtual_stages = 0;
  PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(cache, config));
  for (const double speed : speeds) {
    for (int i = 0; i < step.members; ++i) step.costs.device_speed.push_back(speed);
  }
  return step;
}

// Between neighbours on two devices, with nothing else on the way.
int64_t HopOf(const CostTable& costs, int edge, int from, int to, int members) {
  const PathCost way = costs.PathBetween(from * members, to * members);
  const Bytes bytes(costs.edge_bytes[edge].value() / members);
  const int64_t parts = costs.PartsOfMessage(bytes.value());
  return (way.latency + way.TransferTime(Bytes(bytes.value() / parts))).value();
}

}  // namespace

absl::StatusOr<SynthesisProblem> ProblemOfCosts(const CostTable& costs, const StageGraph& stages,
                                                std::vector<int> device_of_stage, int devices,
                                                int micro_batches, int members, bool recompute,
                                                bool split_backward) {
  SynthesisProblem p;
  p.devices = devices;
  p.micro_batches = micro_batches;
  p.device_of_stage = std::move(device_of_stage);
  p.split_backward = split_backward;
  p.recompute = recompute;
  if (stages.num_stages() != p.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("synthesize: times of ", stages.num_stages(),
                                                   " stages; the placement has ", p.stages()));
  }
  for (int s = 0; s < p.stages(); ++s) {
    const double speed =
        costs.device_speed.empty() ? 1 : costs.device_speed[p.device_of_stage[s] * members];
    const auto own = [speed](Nanoseconds time) {
      return static_cast<int64_t>(std::llround(static_cast<double>(time.value()) / speed));
    };
    const StageCost& cost = costs.stages[s];
    p.lengths.forward.push_back(own(cost.forward));
    p.lengths.recompute.push_back(recompute ? own(cost.recompute) : 0);
    p.lengths.backward_input.push_back(own(cost.backward_input));
    p.lengths.backward_weight.push_back(own(cost.backward_weight));
  }
  p.lengths.hop.assign(p.stages(), 0);
  // One time for each pair of devices, the least: what else there is only takes longer.
  std::map<std::pair<int, int>, int64_t> hops;
  std::vector<bool> feeds_next(p.stages(), false);
  for (size_t e = 0; e < stages.edges.size(); ++e) {
    const auto& [from, to, lag, carries] = stages.edges[e];
    if (to != from + 1) continue;
    feeds_next[from] = true;
    const int a = p.device_of_stage[from], b = p.device_of_stage[to];
    if (a == b) continue;
    const int64_t hop = std::min(HopOf(costs, static_cast<int>(e), a, b, members),
                                 HopOf(costs, static_cast<int>(e), b, a, members));
    const auto [found, is_new] = hops.insert({std::minmax(a, b), hop});
    if (!is_new) found->second = std::min(found->second, hop);
  }
  for (int s = 0; s + 1 < p.stages(); ++s) {
    if (!feeds_next[s]) {
      return absl::InvalidArgumentError(
          absl::StrCat("synthesize: stage ", s, " feeds no next stage; stages must be a chain"));
    }
    const auto found = hops.find(std::minmax(p.device_of_stage[s], p.device_of_stage[s + 1]));
    if (found != hops.end()) p.lengths.hop[s] = found->second;
  }
  p.limits = MemoryOfStages(stages, costs, recompute, !split_backward);
  return p;
}

absl::StatusOr<SynthesisProblem> ProblemOfStep(StepCache* cache, const StepConfig& config,
                                               const std::vector<int>& device_of_stage,
                                               bool split_backward,
                                               const StepSynthesisOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(
      const Step step, StepOf(cache, config, AnyOrder(config, device_of_stage), options.speeds));
  PIPELAB_ASSIGN_OR_RETURN(SynthesisProblem p,
                           ProblemOfCosts(step.costs, step.program.schedule.stages, device_of_stage,
                                          config.pipeline, config.micro_batches, step.members,
                                          config.recompute == Recompute::kFull, split_backward));
  const Bytes memory = options.memory == Bytes(0) ? step.device_memory : options.memory;
  if (memory == Bytes(0)) return p;
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, SimulateTotals(step.program, step.costs));
  for (int d = 0; d < config.pipeline; ++d) {
    p.limits.free.push_back(memory - trace.devices[d * step.members].peak_state);
  }
  return p;
}

absl::StatusOr<StepPrediction> PredictOrder(StepCache* cache, const StepConfig& config,
                                            const Schedule& schedule,
                                            const std::vector<double>& speeds) {
  PIPELAB_ASSIGN_OR_RETURN(Step step, StepOf(cache, config, schedule, speeds));
  return Predict(std::move(step));
}

namespace {

class StepSynthesizer {
 public:
  StepSynthesizer(StepCache* cache, const StepConfig& config, const StepSynthesisOptions& options)
      : cache_(cache), config_(config), options_(options), begin_(absl::Now()) {}

  absl::StatusOr<StepSynthesis> Run() {
    if (!options_.speeds.empty() && static_cast<int>(options_.speeds.size()) != config_.pipeline) {
      return absl::InvalidArgumentError(absl::StrCat(
          "synthesize: speeds of ", options_.speeds.size(), " devices; P is ", config_.pipeline));
    }
    if (options_.memory < Bytes(0)) {
      return absl::InvalidArgumentError("synthesize: memory must be above 0");
    }
    PIPELAB_RETURN_IF_ERROR(FindPlacements());
    // A quick look at each; then the best for what is left.
    absl::Status status = absl::OkStatus();
    for (size_t i = 0; i < problems_.size(); ++i) {
      SynthesisOptions quick = options_.search;
      quick.time_limit = Left() / (1.0 + static_cast<double>(problems_.size() - i));
      quick.rounds = std::min(quick.rounds, 2);
      quick.widest = std::min(quick.widest, 8);
      quick.exact_nodes = std::min<int64_t>(quick.exact_nodes, 20000);
      const absl::Status tried = Try(i, quick);
      if (!tried.ok()) {
        result_.refused.push_back(absl::StrCat(problems_[i].first, ": ", tried.message()));
        if (status.ok()) status = tried;
      }
      if (problems_[i].second.split_backward && !problems_[i].second.limits.free.empty()) {
        AddWhole(i);
      }
    }
    PIPELAB_RETURN_IF_ERROR(FindCatalogue());
    if (result_.placed.empty() && !KeepCatalogue()) return status;
    Sort();
    for (size_t i = 0; i < problems_.size(); ++i) {
      if (problems_[i].first != result_.placed[0].placement) continue;
      SynthesisOptions rest = options_.search;
      rest.time_limit = Left();
      if (Left() > absl::ZeroDuration()) Try(i, rest).IgnoreError();
      break;
    }
    Sort();
    KeepCatalogue();
    return std::move(result_);
  }

 private:
  absl::Duration Left() const {
    return std::max(absl::ZeroDuration(), begin_ + options_.search.time_limit - absl::Now());
  }
  void Sort() {
    std::stable_sort(result_.placed.begin(), result_.placed.end(),
                     [](const auto& a, const auto& b) {
                       return a.prediction.step_time < b.prediction.step_time;
                     });
  }

  absl::Status FindPlacements() {
    const int P = config_.pipeline;
    std::vector<std::pair<std::string, std::vector<int>>> placements;
    for (int V = 1; V <= std::max(1, options_.most_virtual_stages); ++V) {
      placements.push_back({absl::StrCat("looped V=", V), LoopedDevices(P, V)});
      if (V > 1 && options_.placement) {
        placements.push_back({absl::StrCat("zigzag V=", V), ZigZagDevices(P, V)});
      }
    }
    absl::Status status = absl::OkStatus();
    for (const auto& [name, devices] : placements) Add(name, devices, &status);
    if (options_.placement && P > 1) AddBalanced();
    return problems_.empty() ? status : absl::OkStatus();
  }

  void Add(const std::string& name, const std::vector<int>& devices, absl::Status* status) {
    const bool split = options_.split_backward;
    absl::StatusOr<SynthesisProblem> p = ProblemOfStep(cache_, config_, devices, split, options_);
    if (p.ok()) {
      problems_.push_back({name, *std::move(p)});
      return;
    }
    result_.refused.push_back(absl::StrCat(name, ": ", p.status().message()));
    if (status->ok()) *status = p.status();
  }
  // What is left between I and W takes memory that whole backwards do not.
  void AddWhole(size_t i) {
    absl::StatusOr<SynthesisProblem> p = ProblemOfStep(
        cache_, config_, problems_[i].second.device_of_stage, /*split_backward=*/false, options_);
    if (!p.ok()) return;
    problems_.push_back({absl::StrCat(problems_[i].first, ", whole backwards"), *std::move(p)});
  }

  // Runs of finer stages.
  void AddBalanced() {
    const int P = config_.pipeline;
    StepSynthesisOptions full_speed = options_;
    full_speed.speeds.clear();
    std::vector<double> speeds = options_.speeds;
    speeds.resize(P, 1);
    for (const int per_device : kFineStages) {
      const absl::StatusOr<SynthesisProblem> fine =
          ProblemOfStep(cache_, config_, LoopedDevices(P, per_device), true, full_speed);
      if (!fine.ok()) return;  // fewer blocks than that
      std::vector<int64_t> work(fine->stages(), 0);
      for (int s = 0; s < fine->stages(); ++s) {
        for (int kind = 0; kind < 3; ++kind) work[s] += fine->Length(SymbolOf(s, kind));
      }
      absl::Status ignored = absl::OkStatus();
      for (int runs = 1; runs <= std::min(kMostRuns, options_.most_virtual_stages); ++runs) {
        Add(absl::StrCat(runs, runs == 1 ? " run" : " runs", " of ", P * per_device, " stages"),
            BalancedDevices(work, speeds, ZigZagDevices(P, runs)), &ignored);
      }
    }
  }

  absl::Status Try(size_t i, const SynthesisOptions& search) {
    const auto& [name, problem] = problems_[i];
    SynthesisProblem p = problem;
    const Bytes memory = options_.memory == Bytes(0) ? Bytes(0) : options_.memory;
    for (int again = 0; again < 8; ++again) {
      PIPELAB_ASSIGN_OR_RETURN(Synthesis found, Synthesize(p, search));
      PIPELAB_ASSIGN_OR_RETURN(
          StepPrediction prediction,
          PredictOrder(cache_, config_, ScheduleOf(p, found.proof.words), options_.speeds));
      const Bytes most = memory == Bytes(0) ? prediction.step.device_memory : memory;
      bool fits = true;
      for (int d = 0; d < p.devices && most > Bytes(0); ++d) {
        const Bytes over = prediction.devices[d].memory - most;
        if (over <= Bytes(0)) continue;
        fits = false;
        p.limits.free[d] = p.limits.free[d] - over;
      }
      if (fits) {
        Keep({name, std::move(p), std::move(found), std::move(prediction)});
        return absl::OkStatus();
      }
    }
    return absl::ResourceExhaustedError("messages in flight leave too little memory");
  }

  void Keep(PlacedSynthesis placed) {
    for (PlacedSynthesis& other : result_.placed) {
      if (other.placement != placed.placement) continue;
      if (placed.prediction.step_time < other.prediction.step_time) other = std::move(placed);
      return;
    }
    result_.placed.push_back(std::move(placed));
  }

  // The best of the catalogue itself, where nothing shorter was found: where messages take memory,
  // it may fit and the search's limits be too careful.
  bool KeepCatalogue() {
    if (result_.catalogue.scheme.empty()) return false;
    const StepPrediction& known = result_.catalogue.prediction;
    if (!result_.placed.empty() && result_.placed[0].prediction.step_time <= known.step_time) {
      return true;
    }
    const Schedule& schedule = known.step.program.schedule;
    std::vector<int> devices;
    for (const std::vector<int>& group : schedule.placement.groups[0]) {
      devices.push_back(group[0] / known.step.members);
    }
    bool whole = true;
    for (const auto& list : schedule.order) {
      for (const Action& a : list) whole = whole && a.kind != ActionKind::kBackwardInput;
    }
    const absl::StatusOr<SynthesisProblem> p =
        ProblemOfStep(cache_, config_, devices, !whole, options_);
    if (!p.ok()) return false;
    Schedule one = AnyOrder(config_, devices);
    for (int d = 0; d < config_.pipeline; ++d)
      one.order[d] = schedule.order[d * known.step.members];
    const absl::StatusOr<OrderWords> words = WordsOf(*p, one);
    if (!words.ok()) return false;
    for (int d = 0; d < p->devices; ++d) {
      if (!IsWordOf(*p, d, (*words)[d])) return false;
    }
    absl::StatusOr<StepPrediction> prediction =
        PredictOrder(cache_, config_, ScheduleOf(*p, *words), options_.speeds);
    const Bytes most = options_.memory == Bytes(0) ? known.step.device_memory : options_.memory;
    if (!prediction.ok() || (most > Bytes(0) && prediction->largest_device > most)) return false;
    Synthesis found;
    found.proof.words = *words;
    found.proof.makespan = WordEvaluator(*p).Makespan(*words);
    found.proof.bound = BestBound(*p);
    found.found_by = result_.catalogue.scheme;
    result_.placed.insert(result_.placed.begin(),
                          {"as the catalogue", *p, std::move(found), *std::move(prediction)});
    return true;
  }

  // Schemes of one replica and synchronous training, in all their variants.
  absl::Status FindCatalogue() {
    constexpr uint32_t kOther =
        kTokenSlices | kStageGraph | kForwardOnly | kNoGradients | kReplicas;
    for (const Scheme& scheme : Catalog()) {
      if (!TrainsAsSerial(scheme) || (scheme.options & kOther) != 0) continue;
      StepConfig config = config_;
      config.scheme = std::string(scheme.name);
      config.virtual_stages = config.group_size = config.replicas = 0;
      VariantLimits limits;
      limits.max_stages = config_.pipeline * 4;
      for (const SchemeParams& params : Variants(scheme, SchemeSizes(config), limits)) {
        config.virtual_stages = params.virtual_stages;
        config.group_size = params.group_size;
        TryScheme(config);
      }
    }
    return absl::OkStatus();
  }

  void TryScheme(const StepConfig& config) {
    absl::StatusOr<Step> step = BuildStep(cache_, config);
    if (!step.ok()) return;  // the model has fewer blocks
    if (step->program.schedule.placement.num_replicas() != 1) return;
    for (const double speed : options_.speeds) {
      for (int i = 0; i < step->members; ++i) step->costs.device_speed.push_back(speed);
    }
    absl::StatusOr<StepPrediction> p = Predict(*std::move(step));
    if (!p.ok()) return;
    const Bytes most = options_.memory == Bytes(0) ? p->step.device_memory : options_.memory;
    if (most > Bytes(0) && p->largest_device > most) return;
    if (!result_.catalogue.scheme.empty() &&
        p->step_time >= result_.catalogue.prediction.step_time) {
      return;
    }
    result_.catalogue = {config.ToString(), *std::move(p)};
  }

  StepCache* const cache_;
  const StepConfig& config_;
  const StepSynthesisOptions& options_;
  const absl::Time begin_;
  std::vector<std::pair<std::string, SynthesisProblem>> problems_;
  StepSynthesis result_;
};

}  // namespace

absl::StatusOr<StepSynthesis> SynthesizeStep(StepCache* cache, const StepConfig& config,
                                             const StepSynthesisOptions& options) {
  return StepSynthesizer(cache, config, options).Run();
}

}  // namespace pipelab
