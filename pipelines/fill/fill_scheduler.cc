#include "pipelines/fill/fill_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr NamedFillPolicy kPolicies[] = {
    {"most_work", MostWork}, {"shortest_first", ShortestFirst}, {"deadline", DeadlineFirst}};

absl::Status CheckRequests(const std::vector<FillRequest>& requests,
                           const std::vector<std::vector<double>>& rates) {
  for (const FillRequest& r : requests) {
    const auto wrong = [&r](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat("fill job ", r.name, ": ", what));
    };
    if (!(r.work_s > 0) || !std::isfinite(r.work_s) || !std::isfinite(r.arrival_s)) {
      return wrong(absl::StrCat("work of ", r.work_s, " s from ", r.arrival_s,
                                " s on: must be numbers, and some work"));
    }
    bool served = false;
    for (const std::vector<double>& device : rates) {
      if (r.kind < 0 || r.kind >= static_cast<int>(device.size())) {
        return wrong(absl::StrCat("there are ", device.size(), " kinds, and not its ", r.kind));
      }
      served |= device[r.kind] > 0;
    }
    if (!served) return wrong("it fits into no gap of any device");
  }
  return absl::OkStatus();
}

class FillQueue {
 public:
  FillQueue(const std::vector<FillRequest>& requests, const std::vector<std::vector<double>>& rates,
            FillPolicy before)
      : requests_(requests), rates_(rates), before_(before), free_at_(rates.size(), 0) {
    arrivals_.resize(requests.size());
    std::iota(arrivals_.begin(), arrivals_.end(), 0);
    std::stable_sort(arrivals_.begin(), arrivals_.end(),
                     [&](int a, int b) { return requests_[a].arrival_s < requests_[b].arrival_s; });
    outcome_.placements.resize(requests.size());
  }

  FillOutcome Run() {
    while (next_ < arrivals_.size() || !waiting_.empty()) {
      now_ = NextEvent();
      for (; next_ < arrivals_.size() && requests_[arrivals_[next_]].arrival_s <= now_; ++next_) {
        waiting_.push_back(arrivals_[next_]);
      }
      for (size_t device = 0; device < free_at_.size(); ++device) {
        if (free_at_[device] <= now_) Take(static_cast<int>(device));
      }
    }
    Summarise();
    return std::move(outcome_);
  }

 private:
  // The next arrival, or the next end of a device's job if somebody waits; later than the last one.
  double NextEvent() const {
    double event = std::numeric_limits<double>::infinity();
    if (next_ < arrivals_.size()) event = requests_[arrivals_[next_]].arrival_s;
    if (waiting_.empty()) return event;
    for (const double free : free_at_) {
      if (free > now_) event = std::min(event, free);
    }
    return event;
  }

  void Take(int device) {
    auto best = waiting_.end();
    FillOffer best_offer;
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      const FillRequest& request = requests_[*it];
      const double rate = rates_[device][request.kind];
      if (!(rate > 0)) continue;
      const FillOffer offer{&request, rate, request.work_s / rate};
      if (best != waiting_.end() && !before_(offer, best_offer)) continue;
      best = it;
      best_offer = offer;
    }
    if (best == waiting_.end()) return;
    free_at_[device] = now_ + best_offer.takes_s;
    outcome_.placements[*best] = {device, now_, free_at_[device]};
    waiting_.erase(best);
  }

  void Summarise() {
    double busy = 0;
    for (size_t r = 0; r < requests_.size(); ++r) {
      const FillPlacement& p = outcome_.placements[r];
      outcome_.end_s = std::max(outcome_.end_s, p.end_s);
      outcome_.work_s += requests_[r].work_s;
      outcome_.mean_wait_s += p.end_s - requests_[r].arrival_s;
      outcome_.missed_deadlines += p.end_s > requests_[r].deadline_s;
      busy += p.end_s - p.begin_s;
    }
    if (requests_.empty()) return;
    outcome_.mean_wait_s /= static_cast<double>(requests_.size());
    outcome_.busy_share = busy / outcome_.end_s / static_cast<double>(rates_.size());
  }

  const std::vector<FillRequest>& requests_;
  const std::vector<std::vector<double>>& rates_;
  const FillPolicy before_;
  std::vector<int> arrivals_;    // requests in the order in which they come
  size_t next_ = 0;              // of arrivals_
  std::vector<int> waiting_;     // in the order in which they came
  std::vector<double> free_at_;  // [device]
  double now_ = -std::numeric_limits<double>::infinity();
  FillOutcome outcome_;
};

}  // namespace

bool MostWork(const FillOffer& a, const FillOffer& b) { return a.rate > b.rate; }

bool ShortestFirst(const FillOffer& a, const FillOffer& b) { return a.takes_s < b.takes_s; }

bool DeadlineFirst(const FillOffer& a, const FillOffer& b) {
  return a.request->deadline_s < b.request->deadline_s;
}

absl::Span<const NamedFillPolicy> FillPolicies() { return kPolicies; }

absl::StatusOr<FillOutcome> ScheduleFill(const std::vector<FillRequest>& requests,
                                         const std::vector<std::vector<double>>& rates,
                                         FillPolicy before) {
  PIPELAB_RETURN_IF_ERROR(CheckRequests(requests, rates));
  return FillQueue(requests, rates, before).Run();
}

std::vector<FillRequest> GenerateFillRequests(uint64_t seed, const FillRequestOptions& options) {
  const CounterRng gaps(seed, "fill/arrivals"), sizes(seed, "fill/work"),
      patiences(seed, "fill/deadlines"), kinds(seed, "fill/kinds");
  // 1 - P(X < x) = (x^-a - most^-a) / (least^-a - most^-a), solved for x.
  const double low = std::pow(options.most_work_s, -options.shape);
  const double high = std::pow(options.least_work_s, -options.shape);
  std::vector<FillRequest> requests;
  double now = 0;
  for (int64_t n = 0; n < options.count; ++n) {
    FillRequest r;
    r.name = absl::StrCat("job", n);
    r.kind = static_cast<int>(kinds.Below(n, options.kinds));
    now -= options.mean_gap_s * std::log1p(-static_cast<double>(gaps.Uniform(n)));
    r.arrival_s = now;
    const double above = 1 - static_cast<double>(sizes.Uniform(n));
    r.work_s = std::pow(low + above * (high - low), -1 / options.shape);
    const double patience =
        options.least_patience + (options.most_patience - options.least_patience) *
                                     static_cast<double>(patiences.Uniform(n));
    r.deadline_s = now + patience * r.work_s;
    requests.push_back(r);
  }
  return requests;
}

}  // namespace pipelab
