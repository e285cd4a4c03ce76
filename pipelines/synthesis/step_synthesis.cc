#include "pipelines/synthesis/step_synthesis.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/placements.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kFineStages[] = {4, 8};  // a device, where runs of them are balanced
constexpr int kMostRuns = 3;           // a device
// A quick look takes at most such a part of the time that is left; most end long before.
constexpr double kQuickParts = 8;

class StepSynthesizer {
 public:
  StepSynthesizer(StepCache* cache, const StepConfig& config, const StepSynthesisOptions& options)
      : cache_(cache), config_(config), options_(options), begin_(absl::Now()) {}

  absl::StatusOr<StepSynthesis> Run() {
    if (!options_.limits.speeds.empty() &&
        static_cast<int>(options_.limits.speeds.size()) != config_.pipeline) {
      return absl::InvalidArgumentError(absl::StrCat("synthesize: speeds of ",
                                                     options_.limits.speeds.size(),
                                                     " devices; P is ", config_.pipeline));
    }
    if (options_.limits.memory < Bytes(0)) {
      return absl::InvalidArgumentError("synthesize: memory must be above 0");
    }
    PIPELAB_RETURN_IF_ERROR(FindPlacements());
    AddRecomputedAndOffloaded();
    SortByBound();
    // A quick look at each; then the best for what is left.
    absl::Status status = absl::OkStatus();
    for (size_t i = 0; i < problems_.size(); ++i) {
      SynthesisOptions quick = options_.search;
      quick.time_limit =
          Left() / std::min(kQuickParts, 1.0 + static_cast<double>(problems_.size() - i));
      quick.rounds = std::min(quick.rounds, 2);
      quick.widest = std::min(quick.widest, 8);
      quick.exact_nodes = std::min<int64_t>(quick.exact_nodes, 20000);
      const absl::Status tried = IsTooLong(i) ? absl::OkStatus() : Try(i, quick);
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
  // What a device may hold; 0: no limit.
  Bytes Most(const Step& step) const {
    return options_.limits.memory == Bytes(0) ? step.device_memory : options_.limits.memory;
  }
  // Which stages the configuration has recomputed.
  std::vector<bool> Configured(const std::vector<int>& devices) const {
    return std::vector<bool>(devices.size(), config_.recompute == Recompute::kFull);
  }
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

  // With each number of token slices.
  void Add(const std::string& placement, const std::vector<int>& devices, absl::Status* status) {
    for (int slices = 1; slices <= options_.most_slices; slices *= 2) {
      const std::string name =
          slices == 1 ? placement : absl::StrCat(placement, ", ", slices, " slices");
      absl::StatusOr<SynthesisProblem> p =
          ProblemOfStep(cache_, config_, devices, Configured(devices), options_.split_backward,
                        options_.limits, slices);
      if (p.ok()) {
        problems_.push_back({name, *std::move(p)});
        continue;
      }
      result_.refused.push_back(absl::StrCat(name, ": ", p.status().message()));
      if (status->ok()) *status = p.status();
    }
  }
  // What is left between I and W takes memory that whole backwards do not.
  void AddWhole(size_t i) {
    const SynthesisProblem split = problems_[i].second;
    absl::StatusOr<SynthesisProblem> p =
        ProblemOfStep(cache_, config_, split.device_of_stage, split.recomputed,
                      /*split_backward=*/false, options_.limits, split.slices);
    if (!p.ok()) return;
    p->may_offload = split.may_offload;
    problems_.push_back({absl::StrCat(problems_[i].first, ", whole backwards"), *std::move(p)});
  }

  // Where a pipeline that never waits, or one with a micro-batch more in flight, holds more than
  // there is room for: with those stages recomputed, or at the host, that make room.
  void AddRecomputedAndOffloaded() {
    const size_t placements = problems_.size();
    for (size_t i = 0; i < placements; ++i) {
      const auto [name, none] = problems_[i];
      if (options_.recompute && config_.recompute == Recompute::kNone) AddRecomputed(name, none);
      const bool keeps =
          std::find(none.recomputed.begin(), none.recomputed.end(), true) == none.recomputed.end();
      if (options_.offload && keeps && !none.host_copy.empty() && !none.limits.free.empty()) {
        AddOffloaded(name, none);
      }
    }
  }

  void AddRecomputed(const std::string& name, const SynthesisProblem& none) {
    const auto problem = [&](const std::vector<bool>& stages) {
      return ProblemOfStep(cache_, config_, none.device_of_stage, stages, options_.split_backward,
                           options_.limits, none.slices);
    };
    const auto all = problem(std::vector<bool>(none.stages(), true));
    if (all.ok()) AddThoseThatMakeRoom(name, "recomputed", none, *all, problem);
  }

  // Those that make room; and where some must, those of the catalogue's schemes on this placement.
  void AddOffloaded(const std::string& name, const SynthesisProblem& none) {
    const size_t before = problems_.size();
    const auto problem = [&none](std::vector<bool> stages) {
      SynthesisProblem p = none;
      p.may_offload = std::move(stages);
      return absl::StatusOr<SynthesisProblem>(std::move(p));
    };
    AddThoseThatMakeRoom(name, "stages may offload", none, WithoutHeld(none), problem);
    if (problems_.size() == before) return;
    for (const std::vector<bool>& stages : OffloadedInCatalogue(none)) {
      bool known = false;
      for (size_t i = before; i < problems_.size(); ++i) {
        known = known || problems_[i].second.may_offload == stages;
      }
      if (known) continue;
      problems_.push_back({absl::StrCat(name, ", ", std::count(stages.begin(), stages.end(), true),
                                        " stages may offload as in the catalogue"),
                           *problem(stages)});
    }
  }

  template <typename Make>
  void AddThoseThatMakeRoom(const std::string& name, absl::string_view how,
                            const SynthesisProblem& none, const SynthesisProblem& all, Make make) {
    int64_t before = 0;
    for (const int more : {0, 1}) {
      const std::vector<bool> some = StagesThatMakeRoom(none, all, more);
      const int64_t count = std::count(some.begin(), some.end(), true);
      if (count == before) continue;
      before = count;
      absl::StatusOr<SynthesisProblem> p = make(some);
      if (p.ok()) problems_.push_back({absl::StrCat(name, ", ", count, " ", how), *std::move(p)});
    }
  }

  // Runs of finer stages.
  void AddBalanced() {
    const int P = config_.pipeline;
    StepLimits full_speed = options_.limits;
    full_speed.speeds.clear();
    std::vector<double> speeds = options_.limits.speeds;
    speeds.resize(P, 1);
    for (const int per_device : kFineStages) {
      const absl::StatusOr<SynthesisProblem> fine =
          ProblemOfStep(cache_, config_, LoopedDevices(P, per_device), {}, true, full_speed);
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

  // The bound of the problem's passes; 0 where it has no order.
  static Nanoseconds BoundOf(const SynthesisProblem& problem) {
    return Nanoseconds(CheckProblem(problem).ok() ? BestBound(problem).value : 0);
  }
  // The most promising first, so that they have time where time is short.
  void SortByBound() {
    std::vector<std::pair<Nanoseconds, size_t>> order;
    for (const auto& [name, problem] : problems_) order.push_back({BoundOf(problem), order.size()});
    std::stable_sort(order.begin(), order.end());
    std::vector<std::pair<std::string, SynthesisProblem>> sorted;
    for (const auto& [bound, i] : order) {
      sorted.push_back(std::move(problems_[i]));
      bounds_.push_back(bound);
    }
    problems_ = std::move(sorted);
  }
  // Whether no order of its passes is shorter than a step that was found.
  bool IsTooLong(size_t i) {
    const auto& [name, problem] = problems_[i];
    if (result_.placed.empty()) return false;
    Nanoseconds least = result_.placed[0].prediction.step_time;
    for (const PlacedSynthesis& placed : result_.placed) {
      least = std::min(least, placed.prediction.step_time);
    }
    const Nanoseconds bound = i < bounds_.size() ? bounds_[i] : BoundOf(problem);
    if (bound < least) return false;
    result_.refused.push_back(absl::StrFormat("%s: no order takes less than %.4f ms", name,
                                              static_cast<double>(bound.value()) * 1e-6));
    return true;
  }

  absl::Status Try(size_t i, const SynthesisOptions& search) {
    const auto& [name, problem] = problems_[i];
    SynthesisProblem p = problem;
    for (int again = 0; again < 8; ++again) {
      PIPELAB_ASSIGN_OR_RETURN(Synthesis found, Synthesize(p, search));
      PIPELAB_ASSIGN_OR_RETURN(
          StepPrediction prediction,
          PredictOrder(cache_, config_, ScheduleOf(p, found.proof.words), options_.limits.speeds));
      const Bytes most = Most(prediction.step);
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
    std::vector<bool> may_offload;
    for (const auto& list : schedule.order) {
      for (const Action& a : list) {
        whole = whole && a.kind != ActionKind::kBackwardInput;
        if (a.kind != ActionKind::kOffload) continue;
        may_offload.resize(devices.size(), false);
        may_offload[a.stage] = true;
      }
    }
    absl::StatusOr<SynthesisProblem> p =
        ProblemOfStep(cache_, config_, devices, schedule.RecomputedStages(), !whole,
                      options_.limits, schedule.num_slices);
    if (!p.ok()) return false;
    p->may_offload = std::move(may_offload);
    if (!CheckProblem(*p).ok()) return false;  // no way to the host
    Schedule one = ScheduleOf(*p, OrderWords(config_.pipeline));
    for (int d = 0; d < config_.pipeline; ++d) {
      one.order[d] = schedule.order[d * known.step.members];
    }
    const absl::StatusOr<OrderWords> words = WordsOf(*p, one);
    if (!words.ok()) return false;
    for (int d = 0; d < p->devices; ++d) {
      if (!IsWordOf(*p, d, (*words)[d])) return false;
    }
    absl::StatusOr<StepPrediction> prediction =
        PredictOrder(cache_, config_, ScheduleOf(*p, *words), options_.limits.speeds);
    const Bytes most = Most(known.step);
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
    constexpr uint32_t kOther = kStageGraph | kForwardOnly | kNoGradients | kReplicas;
    for (const Scheme& scheme : Catalog()) {
      if (!TrainsAsSerial(scheme) || (scheme.options & kOther) != 0) continue;
      const bool sliced = (scheme.options & kTokenSlices) != 0;
      for (int slices = sliced ? 2 : 1; slices <= (sliced ? options_.most_slices : 1);
           slices *= 2) {
        TryVariants(scheme, sliced ? slices : 0);
      }
    }
    return absl::OkStatus();
  }

  void TryVariants(const Scheme& scheme, int slices) {
    StepConfig config = config_;
    config.scheme = std::string(scheme.name);
    config.virtual_stages = config.group_size = config.replicas = 0;
    config.slices = slices;
    VariantLimits limits;
    limits.max_stages = config_.pipeline * 4;
    for (const SchemeParams& params : Variants(scheme, SchemeSizes(config), limits)) {
      config.virtual_stages = params.virtual_stages;
      config.group_size = params.group_size;
      config.recompute = config_.recompute;
      TryScheme(config);
      if (!options_.recompute || config_.recompute != Recompute::kNone) continue;
      config.recompute = Recompute::kFull;
      TryScheme(config);
    }
  }

  void TryScheme(const StepConfig& config) {
    absl::StatusOr<Step> step = BuildStep(cache_, config);
    if (!step.ok()) return;  // the model has fewer blocks
    if (step->program.schedule.placement.num_replicas() != 1) return;
    for (const double speed : options_.limits.speeds) {
      for (int i = 0; i < step->members; ++i) step->costs.device_speed.push_back(speed);
    }
    absl::StatusOr<StepPrediction> p = Predict(*std::move(step));
    if (!p.ok()) return;
    const Bytes most = Most(p->step);
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
  std::vector<Nanoseconds> bounds_;  // of the first problems
  StepSynthesis result_;
};

}  // namespace

absl::StatusOr<StepSynthesis> SynthesizeStep(StepCache* cache, const StepConfig& config,
                                             const StepSynthesisOptions& options) {
  return StepSynthesizer(cache, config, options).Run();
}

}  // namespace pipelab
