// The choice among all that rules make of guides.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/limited_order.h"

namespace pipelab {
namespace {

constexpr GuidedRule kRules[] = {
    {false, false, 4}, {false, false, 2}, {false, false, 0}, {true, false, 4}, {true, false, 2},
    {true, false, 0},  {true, true, 4},   {true, true, 2},   {true, true, 0},
};

// Chooses among orders by their makespan, the first of equals. An order that is beyond the limits
// is made to its end only where it might be shorter than the best that is not.
class Shortest {
 public:
  Shortest(const PassLengths& lengths, const HeldLimits& limits, const OrderLimits& of_order)
      : lengths_(lengths), limits_(limits), of_order_(of_order) {}

  void Offer(const Schedule& complete) {
    ++number_;
    Take(complete, Makespan(complete, lengths_), LimitedOrder::Of(of_order_, complete, lengths_));
  }
  void Offer(const Schedule& guide, const GuidedRule& rule) {
    ++number_;
    GuidedOrder made = RunGuide(lengths_, limits_, rule, guide, least_, of_order_);
    if (made.beyond != Beyond::kNothing) given_up_.push_back({number_, guide, rule, made.beyond});
    if (made.makespan >= least_) return;
    Schedule schedule = guide;
    schedule.order = std::move(made.order);
    Take(schedule, made.makespan, Beyond::kNothing);
  }

  absl::StatusOr<Schedule> Best() && {
    Beyond beyond = best_beyond_;
    if (least_ == kUnknown) beyond = given_up_[0].beyond;
    // The scheme's own guide, the last, needs the most memory and is the shortest as a rule.
    for (auto it = given_up_.rbegin(); beyond == Beyond::kNothing && it != given_up_.rend(); ++it) {
      if (IsShorter(*it)) beyond = it->beyond;
    }
    if (beyond == Beyond::kNothing) return std::move(best_);
    if (beyond == Beyond::kTime) {
      return absl::OutOfRangeError("the order for these times is too long");
    }
    return absl::ResourceExhaustedError("the order for these times does not fit into memory");
  }

 private:
  struct GivenUp {
    int number;
    const Schedule& guide;
    const GuidedRule& rule;
    Beyond beyond;
  };

  void Take(const Schedule& schedule, int64_t makespan, Beyond beyond) {
    if (makespan >= least_) return;
    least_ = makespan;
    best_ = schedule;
    best_beyond_ = beyond;
    number_of_best_ = number_;
  }
  bool IsShorter(const GivenUp& other) const {
    const int64_t limit = other.number < number_of_best_ ? least_ + 1 : least_;
    return RunGuide(lengths_, limits_, other.rule, other.guide, limit).makespan < limit;
  }

  const PassLengths& lengths_;
  const HeldLimits& limits_;
  const OrderLimits& of_order_;
  int number_ = 0;  // of the last that was offered
  Schedule best_;
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
  const bool equal = lengths.AreEqual();  // then patience makes no difference
  const bool recomputes = *std::max_element(lengths.recompute.begin(), lengths.recompute.end()) > 0;
  HeldLimits limits;
  limits.activations = max_activations;
  if (!complete.empty() && recomputes) limits.waiting = HeldFromInputToWeight(complete[0]);
  Shortest shortest(lengths, limits, of_order);
  for (const Schedule& schedule : complete) {
    if (HeldFromInputToWeight(schedule) <= limits.waiting) shortest.Offer(schedule);
  }
  for (const Schedule& guide : guides) {
    if (HeldFromForwardToInput(guide) > max_activations) continue;
    for (const GuidedRule& rule : kRules) {
      if (equal && rule.patience_quarters < 4) continue;
      shortest.Offer(guide, rule);
    }
  }
  return std::move(shortest).Best();
}

}  // namespace pipelab
