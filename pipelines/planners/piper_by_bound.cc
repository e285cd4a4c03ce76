#include <algorithm>
#include <cmath>

#include "glog/logging.h"
#include "pipelines/planners/piper_search.h"
#include "pipelines/planners/plan_costs.h"

namespace pipelab {
namespace {

constexpr double kUnbounded = 1e300;  // as a stage time
constexpr double kExact = 1e-12;      // relative: what sums of doubles differ by

class PiperBoundSearch {
 public:
  PiperBoundSearch(const PiperCosts& costs, const PlanProblem& problem, absl::Time deadline)
      : costs_(costs),
        sets_(costs.sets()),
        problem_(problem),
        deadline_(deadline),
        most_copies_(std::min(problem.devices, problem.micro_batches)) {
    next_copies_.assign(costs.copies().back() + 2, costs.copies().size());
    for (size_t i = costs.copies().size(), d = next_copies_.size() - 1; d-- > 0;) {
      while (i > 0 && costs.copies()[i - 1] >= static_cast<int>(d)) --i;
      next_copies_[d] = i;
    }
    labels_.resize(sets_.size());
  }

  PiperResult Run(double upper) {
    PiperResult best;
    best.value = upper;
    best.lower_bound = costs_.Work(sets_.size() - 1) / static_cast<double>(problem_.devices);
    if (!std::isfinite(upper) && !FindAny(&best)) return best;
    // Halving the gap; where it is small and the best is new, just below the best.
    bool improved = true;
    while (best.lower_bound < best.value * (1 - 2 * kExact)) {
      const double gap = best.value - best.lower_bound;
      const bool just_below = improved && gap < 0.01 * best.value;
      const double bound = just_below ? best.value * (1 - kExact) : best.lower_bound + gap / 2;
      const double before = best.value;
      improved = Feasible(bound);
      if (stopped_) break;
      if (improved) Take(&best);
      if (!improved) best.lower_bound = bound;
      if (improved && best.value >= before) break;  // the last digits
    }
    best.stopped = stopped_;
    return best;
  }

 private:
  struct Label {
    int devices, copies;
    int later, label;  // the set behind the first stage, and its label
    int t, d;
  };

  // The fewest copies that keep the stage within the bound in time and memory; 0: none of at most
  // `most`.
  int FewestCopies(int u, int later, int t, const PiperStage& stage, int64_t behind, double bound,
                   int64_t most) const {
    double least = 1;
    if (stage.time > bound) {
      if (stage.sync >= bound) return 0;
      least = std::ceil((stage.time - stage.sync) / (bound - stage.sync) * (1 - kExact));
      const int64_t largest = std::min<int64_t>(most, costs_.copies().back());
      if (!(least <= static_cast<double>(largest))) return 0;
    }
    for (size_t i = next_copies_[static_cast<size_t>(least)]; i < costs_.copies().size(); ++i) {
      const int d = costs_.copies()[i];
      if (d > most) return 0;
      const double slack = (bound - stage.Time(d)) * d;
      if (slack < 0) {
        if (stage.sync >= stage.time) return 0;
        continue;
      }
      if (costs_.Fits(u, later, t, stage, 1 + (behind + d - 1) / d, slack)) return d;
    }
    return 0;
  }

  int FewestCopiesOfAny(int u, int later, int t, int64_t behind, double bound, int64_t most) const {
    for (int d : costs_.copies()) {
      if (d > most) return 0;
      if (costs_.LeastTime(u, later, t, d, 1 + (behind + d - 1) / d, bound).time <= bound) return d;
    }
    return 0;
  }

  // What the operators before the cut need of devices at least.
  int64_t NeededBefore(int u, double bound) const {
    return static_cast<int64_t>(std::ceil(costs_.WorkAbove(u) / bound * (1 - 1e-9)));
  }

  void Extend(int u, int later, double bound, int64_t most) {
    for (int t = 0; t < static_cast<int>(costs_.degrees().size()); ++t) {
      const int degree = costs_.degrees()[t];
      PiperStage stage;
      if (costs_.uniform() && !costs_.Sum(u, later, t, &stage)) continue;
      costs_.Finish(u, later, t, &stage);
      for (size_t l = 0; l < labels_[later].size(); ++l) {
        const Label& behind = labels_[later][l];
        const int64_t d_most =
            std::min((most - behind.devices) / degree, most_copies_ - behind.copies);
        if (d_most < 1) continue;
        const int d = costs_.uniform()
                          ? FewestCopies(u, later, t, stage, behind.copies, bound, d_most)
                          : FewestCopiesOfAny(u, later, t, behind.copies, bound, d_most);
        if (d == 0) continue;
        Add({behind.devices + d * degree, behind.copies + d, later, static_cast<int>(l), t, d},
            &labels_[u]);
      }
    }
  }

  static void Add(const Label& label, std::vector<Label>* labels) {
    for (const Label& other : *labels) {
      if (other.devices <= label.devices && other.copies <= label.copies) return;
    }
    labels->erase(std::remove_if(labels->begin(), labels->end(),
                                 [&](const Label& other) {
                                   return label.devices <= other.devices &&
                                          label.copies <= other.copies;
                                 }),
                  labels->end());
    labels->push_back(label);
  }

  // False: there is no plan, or no time.
  bool FindAny(PiperResult* best) {
    const double start = best->lower_bound;
    for (double factor = 1.05;; factor *= factor) {
      const double bound = factor < 1e6 && start > 0 ? start * factor : kUnbounded;
      if (Feasible(bound)) {
        Take(best);
        return true;
      }
      best->stopped = stopped_;
      if (stopped_) return false;
      best->lower_bound = bound == kUnbounded ? kInfinity : bound;
      if (bound == kUnbounded) return false;
    }
  }

  // Leaves labels for Take.
  bool Feasible(double bound) {
    labels_[0] = {{0, 0, -1, -1, 0, 0}};
    for (int u = 1; u < sets_.size(); ++u) {
      labels_[u].clear();
      const int64_t most = problem_.devices - NeededBefore(u, bound);
      if (most < 1) continue;
      if (u % 16 == 0 && absl::Now() > deadline_) {
        stopped_ = true;
        return false;
      }
      const double work = costs_.Work(u);
      for (int later = u - 1; later >= 0; --later) {
        if (labels_[later].empty()) continue;
        if (work - costs_.Work(later) > bound * static_cast<double>(most) * (1 + 1e-9)) continue;
        if (!sets_.Includes(u, later)) continue;
        Extend(u, later, bound, most);
      }
    }
    return !labels_.back().empty();
  }

  // The plan of the labels: the one of the fewest devices.
  void Take(PiperResult* best) {
    std::vector<PlanStage> stages;
    int u = sets_.size() - 1, l = 0;
    while (u > 0) {
      const Label& label = labels_[u][l];
      stages.push_back(MakePiperStage(costs_, u, label.later, label.t, label.d,
                                      (label.copies + label.d - 1) / label.d));
      l = label.label;
      u = label.later;
    }
    costs_.Rearrange(&stages);
    const double value = PlanValue(problem_, PlanObjective::kStageTime, stages);
    if (value < best->value) {
      best->value = value;
      best->stages = std::move(stages);
    }
  }

  const PiperCosts& costs_;
  const Downsets& sets_;
  const PlanProblem& problem_;
  const absl::Time deadline_;
  const int64_t most_copies_;
  std::vector<size_t> next_copies_;  // [d] -> index of the first number of copies that is not less
  std::vector<std::vector<Label>> labels_;
  bool stopped_ = false;
};

}  // namespace

PlanStage MakePiperStage(const PiperCosts& costs, int set, int later, int t, int64_t d, int64_t y) {
  PlanStage stage;
  stage.tensor = costs.degrees()[t];
  stage.data = d;
  PiperCosts::Choice choice = costs.LeastTime(set, later, t, d, y, kInfinity);
  CHECK(std::isfinite(choice.time)) << "a stage of a plan does not fit";
  stage.layers = std::move(choice.operators);
  stage.variants = std::move(choice.variants);
  return stage;
}

PiperResult PiperByBound(const PiperCosts& costs, const PlanProblem& problem, double upper,
                         absl::Time deadline) {
  return PiperBoundSearch(costs, problem, deadline).Run(upper);
}

}  // namespace pipelab
