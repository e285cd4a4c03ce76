// The choice among all that rules make of guides.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/guided_run.h"
#include "pipelines/schedules/limited_order.h"

namespace pipelab {
namespace {

// Ways to run ahead of the guide, each with every patience.
constexpr GuidedRule kWays[] = {{false, false}, {true, false}, {true, true}};
constexpr int kPatienceQuarters[] = {4, 2, 0};

// Chooses among orders by their makespan, the first of equals. An order that is beyond the limits
// is made to its end only where it might be shorter than the best that is not.
class Shortest {
 public:
  Shortest(const PassLengths& lengths, const HeldLimits& limits, const OrderLimits& of_order)
      : lengths_(lengths), limits_(limits), of_order_(of_order) {}

  void Offer(const Schedule& complete) {
    ++number_;
    const int64_t makespan = Makespan(complete, lengths_);
    if (makespan >= least_) return;
    Take(complete, complete.order, makespan, BeyondLimits(of_order_, complete, lengths_));
  }
  // What all rules make of it. The guide must outlive it.
  void Offer(const Guide& guide) {
    for (GuidedRule rule : kWays) {
      std::vector<Tried> tried;
      for (const int quarters : kPatienceQuarters) {
        rule.patience_quarters = quarters;
        Offer(guide, rule, &tried);
      }
    }
  }

  absl::StatusOr<Schedule> Best() && {
    Beyond beyond = best_beyond_;
    if (least_ == kUnknown) beyond = given_up_[0].beyond;
    // The scheme's own guide, the last, needs the most memory and is the shortest as a rule.
    for (auto it = given_up_.rbegin(); beyond == Beyond::kNothing && it != given_up_.rend(); ++it) {
      if (IsShorter(*it)) beyond = it->beyond;
    }
    if (beyond == Beyond::kTime) {
      return absl::OutOfRangeError("the order for these times is too long");
    }
    if (beyond == Beyond::kMemory) {
      return absl::ResourceExhaustedError("the order for these times does not fit into memory");
    }
    Schedule best = *best_;
    best.order = std::move(order_);
    return best;
  }

 private:
  struct GivenUp {
    int number;
    const Guide& guide;
    GuidedRule rule;
    Beyond beyond;
  };
  struct Tried {
    PatienceRange patience;
    Beyond beyond;
  };
  using Order = std::vector<std::vector<Action>>;

  // `tried`: the same rule with other patience.
  void Offer(const Guide& guide, const GuidedRule& rule, std::vector<Tried>* tried) {
    ++number_;
    for (const Tried& other : *tried) {
      if (!other.patience.Has(rule.patience_quarters)) continue;
      // It would give up there, too, and might then have gone on in another way.
      if (other.beyond != Beyond::kNothing) {
        given_up_.push_back({number_, guide, rule, other.beyond});
      }
      return;
    }
    GuidedOrder made = RunGuide(guide, limits_, rule, least_, of_order_);
    tried->push_back({made.patience, made.beyond});
    if (made.beyond != Beyond::kNothing) given_up_.push_back({number_, guide, rule, made.beyond});
    if (made.makespan >= least_) return;
    Take(guide.schedule, std::move(made.order), made.makespan, Beyond::kNothing);
  }
  void Take(const Schedule& schedule, Order order, int64_t makespan, Beyond beyond) {
    least_ = makespan;
    best_ = &schedule;
    order_ = std::move(order);
    best_beyond_ = beyond;
    number_of_best_ = number_;
  }
  bool IsShorter(const GivenUp& other) const {
    const int64_t limit = other.number < number_of_best_ ? least_ + 1 : least_;
    return RunGuide(other.guide, limits_, other.rule, limit).makespan < limit;
  }

  const PassLengths& lengths_;
  const HeldLimits& limits_;
  const OrderLimits& of_order_;
  int number_ = 0;  // of the last that was offered
  const Schedule* best_ = nullptr;
  Order order_;  // its own
  int64_t least_ = kUnknown;
  Beyond best_beyond_ = Beyond::kNothing;
  int number_of_best_ = 0;
  std::vector<GivenUp> given_up_;
};

}  // namespace

absl::StatusOr<Schedule> BestOrder(const PassLengths& lengths, int max_activations,
                                   const std::vector<Schedule>& complete,
                                   const std::vector<Schedule>& guides,
                                   const OrderLimits& of_order) {
  const bool recomputes = *std::max_element(lengths.recompute.begin(), lengths.recompute.end()) > 0;
  HeldLimits limits;
  limits.activations = max_activations;
  if (!complete.empty() && recomputes) limits.waiting = HeldFromInputToWeight(complete[0]);
  Shortest shortest(lengths, limits, of_order);
  for (const Schedule& schedule : complete) {
    if (HeldFromInputToWeight(schedule) <= limits.waiting) shortest.Offer(schedule);
  }
  std::deque<Guide> runnable;
  for (const Schedule& guide : guides) {
    if (HeldFromForwardToInput(guide) > max_activations) continue;
    runnable.emplace_back(guide, lengths);
    if (!runnable.back().IsCountable()) {
      return absl::InvalidArgumentError(
          absl::StrCat("passes of ", lengths.forward[0], " ns and the like: the order of all ",
                       guide.num_micro_batches, " micro-batches takes too long to be counted"));
    }
    shortest.Offer(runnable.back());
  }
  return std::move(shortest).Best();
}

}  // namespace pipelab
