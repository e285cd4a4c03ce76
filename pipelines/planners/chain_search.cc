#include "pipelines/planners/chain_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "pipelines/planners/plan_costs.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostSteps = 6'000'000;  // of a pass: stages put in front of labels
constexpr int64_t kMostDevices = 4096;
constexpr int kWidths[] = {4, 16, std::numeric_limits<int>::max()};

}  // namespace

absl::Status CheckForChainSearch(const PlanProblem& problem, absl::string_view planner) {
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(problem, planner));
  if (problem.objective == PlanObjective::kMaxLoad) {
    return absl::InvalidArgumentError(
        absl::StrCat("--planner=", planner, ": it cannot plan dnn-partitioning inputs"));
  }
  if (problem.devices > kMostDevices) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--planner=", planner, ": --devices=", problem.devices, ": at most ", kMostDevices));
  }
  return absl::OkStatus();
}

ChainSearch::ChainSearch(const PlanProblem& problem, const ChainSearchOptions& options,
                         absl::Time deadline)
    : p_(problem),
      options_(options),
      chain_(problem),
      deadline_(deadline),
      best_(options.better_than) {
  if (!p_.levels.empty()) unit_ = p_.levels[0].devices;
  for (int64_t d = 0; d < p_.devices; ++d) {
    speeds_.push_back((d == 0 ? 0 : speeds_.back()) + Speed(d, 1));
  }
}

double ChainSearch::LowerBound() const {
  return static_cast<double>(p_.micro_batches) * chain_.Work(chain_.size()).time / speeds_.back();
}

void ChainSearch::Run() {
  for (int width : kWidths) {
    stopped_ = false;
    complete_ = Pass(width);
    if (timed_out_) return;
  }
}

bool ChainSearch::Pass(int width) {
  steps_ = kMostSteps;
  labels_.clear();
  waiting_.assign(chain_.size() + 1, {});
  Label none;
  none.behind = BatchTimeFromEnd(p_.micro_batches);
  none.begin = chain_.size();
  none.first = p_.devices;
  Extend(none);
  for (int begin = chain_.size() - 1; begin > 0 && !stopped_; --begin) {
    std::vector<const Label*> all;
    for (const auto& [key, labels] : waiting_[begin]) {
      all.insert(all.end(), labels.begin(), labels.end());
    }
    std::sort(all.begin(), all.end(),
              [](const Label* a, const Label* b) { return a->bound < b->bound; });
    if (static_cast<int64_t>(all.size()) > width) all.resize(width);
    for (const Label* label : all) {
      if (label->bound < best_ && !stopped_) Extend(*label);
    }
  }
  return !stopped_;
}

// Where devices of the next stage to the front may end: right there, or at the end of a whole unit
// of the innermost level (copies then do not span two units); anywhere, where speeds differ.
std::vector<int64_t> ChainSearch::EndsInFrontOf(int64_t device) const {
  std::vector<int64_t> ends = {device};
  if (!p_.device_speeds.empty()) {
    for (int64_t d = device - 1; d > 0; --d) ends.push_back(d);
  } else if (device % unit_ != 0) {
    ends.push_back(device / unit_ * unit_);
  }
  return ends;
}

// Every stage in front of the label.
void ChainSearch::Extend(const Label& next) {
  const double micro_batches = static_cast<double>(p_.micro_batches);
  for (int64_t end : EndsInFrontOf(next.first)) {
    for (int64_t copies = 1; copies <= (options_.copies ? end : std::min<int64_t>(end, 1));
         ++copies) {
      const int64_t first = end - copies;
      BatchTimeFromEnd behind = next.behind;
      double transfer = 0;
      if (next.stages > 0) {
        transfer =
            TransferTime(p_, chain_.CutBytes(next.begin), first, copies, next.first, next.copies);
        if (options_.transfers == TransferKind::kBesideCompute) {
          behind.PutInFront({transfer, transfer, 0});
        } else {
          BatchPassTimes passes = next.front;
          passes.forward += transfer;
          passes.backward += transfer;
          behind.PutInFront(passes);
        }
      }
      for (int begin = next.begin - 1; begin >= 0 && !stopped_; --begin) {
        // No stage is longer than the batch.
        const double time = chain_.Times(begin, next.begin, 0, copies).time;
        if (micro_batches * time / Speed(first, copies) >= best_) break;
        if (begin == 0 || first > 0) AddStage(begin, first, copies, transfer, behind, next);
      }
    }
  }
}

void ChainSearch::AddStage(int begin, int64_t first, int64_t copies, double transfer,
                           const BatchTimeFromEnd& behind, const Label& next) {
  // Some plan, whatever the time limit.
  const bool check_time = (steps_ & 1023) == 0 && !stages_.empty();
  if (--steps_ < 0 || (check_time && absl::Now() > deadline_)) {
    timed_out_ |= steps_ >= 0;
    stopped_ = true;
    return;
  }
  Label label = next;
  label.begin = begin;
  label.first = first;
  label.copies = copies;
  label.next = &next;
  ++label.stages;
  label.mode = 0;
  while (label.mode < chain_.modes() &&
         chain_.Memory(begin, next.begin, label.mode, copies, InFlight(label)) > p_.memory_bytes) {
    ++label.mode;
  }
  if (label.mode == chain_.modes()) return;
  label.behind = behind;
  label.front = StagePasses(p_, chain_.Times(begin, next.begin, label.mode, copies),
                            chain_.Parameters(begin, next.begin, label.mode), first, copies);
  BatchTimeFromEnd all = behind;
  if (options_.transfers == TransferKind::kBesideCompute) {
    label.behind.PutInFront(label.front);
    label.front = BatchPassTimes();
    all = label.behind;
  } else {
    label.front.forward += transfer;
    label.front.backward += transfer;
    all.PutInFront(label.front);
  }
  if (begin == 0) {
    if (all.time() < best_) Finish(label, all.time());
    return;
  }
  label.bound = Bound(label, all);
  if (label.bound < best_) Keep(label);
}

int64_t ChainSearch::InFlight(const Label& label) const {
  return std::min(label.stages * options_.kfkb, p_.micro_batches);
}

double ChainSearch::Speed(int64_t first, int64_t copies) const {
  if (p_.device_speeds.empty()) return 1;
  const auto begin = p_.device_speeds.begin() + first;
  return *std::min_element(begin, begin + copies);
}

double ChainSearch::Bound(const Label& label, const BatchTimeFromEnd& all) const {
  const PlanTimes work = chain_.Work(label.begin);
  const double speed = speeds_[label.first - 1];
  return std::max({all.time() + work.forward / speed, all.pass_time() + work.time / speed,
                   static_cast<double>(p_.micro_batches) * work.time / speed});
}

bool ChainSearch::NotAbove(const Label& a, const Label& b) {
  return a.behind.NotAbove(b.behind) && a.front.forward <= b.front.forward &&
         a.front.backward <= b.front.backward && a.front.sum <= b.front.sum;
}

void ChainSearch::Keep(const Label& label) {
  // What comes in front needs to know the number of stages where memory is limited.
  const int64_t stages = std::isinf(p_.memory_bytes) ? 0 : label.stages;
  std::vector<const Label*>& others =
      waiting_[label.begin][std::make_tuple(label.first, label.copies, stages)];
  for (const Label* other : others) {
    if (NotAbove(*other, label)) return;
  }
  others.erase(std::remove_if(others.begin(), others.end(),
                              [&](const Label* other) { return NotAbove(label, *other); }),
               others.end());
  labels_.push_back(label);
  others.push_back(&labels_.back());
}

void ChainSearch::Finish(const Label& label, double time) {
  best_ = time;
  stages_.clear();
  for (const Label* l = &label; l->stages > 0; l = l->next) {
    PlanStage stage = chain_.Stage(l->begin, l->next->begin, l->mode);
    stage.data = l->copies;
    stage.first_device = l->first;
    stage.micro_batch_size = p_.micro_batch_size;
    stage.in_flight = InFlight(*l);
    stages_.push_back(std::move(stage));
  }
}

}  // namespace pipelab
