#include "pipelines/search/top_steps.h"

#include <algorithm>
#include <utility>

namespace pipelab {
namespace {

// What the ways of a result by layouts have in common: all but V and b.
StepConfig WithoutWay(StepConfig c) {
  c.virtual_stages = c.group_size = 0;
  c.micro_batch_size = c.micro_batches = 1;
  return c;
}

// A layout says what is divided among which devices, and what is computed again.
std::string LayoutOf(const StepConfig& config) {
  StepConfig c = WithoutWay(config);
  c.shards = 0;
  c.cut = CutRule::kBlocks;
  c.exchanges = Exchanges::kWaited;
  c.steady_overlap = false;
  return c.ToString();
}

}  // namespace

void SortByTime(std::vector<RankedStep>* steps) {
  std::stable_sort(steps->begin(), steps->end(), [](const RankedStep& a, const RankedStep& b) {
    return a.step_time < b.step_time;
  });
}

void TakeFigures(const StepPrediction& prediction, RankedStep* step) {
  step->config = prediction.step.config;
  step->step_time = prediction.step_time;
  step->largest_device = prediction.largest_device;
  step->tflops_per_device = prediction.tflops_per_device;
  step->samples_per_second = prediction.samples_per_second();
}

bool TopSteps::Before(const Found& a, const Found& b) {
  return std::make_pair(a.result.step_time, a.rank) < std::make_pair(b.result.step_time, b.rank);
}

std::vector<TopSteps::Found>::const_iterator TopSteps::SameLayout(const std::string& layout) const {
  return std::find_if(best_.begin(), best_.end(),
                      [&](const Found& f) { return f.layout == layout; });
}

Nanoseconds TopSteps::ToBeat() const {
  return static_cast<int>(best_.size()) < top_ ? Nanoseconds(0) : best_.back().result.step_time;
}

bool TopSteps::IsBeyond(Nanoseconds bound, const StepRank& rank) const {
  return std::make_pair(ToBeat(), best_.back().rank) < std::make_pair(bound, rank);
}

bool TopSteps::IsNoWay(const StepConfig& config, Nanoseconds bound) const {
  if (!by_layout_) return false;
  const auto same = SameLayout(LayoutOf(config));
  return same != best_.end() && bound >= same->result.step_time &&
         !(WithoutWay(config) == WithoutWay(same->result.config));
}

bool TopSteps::Keep(RankedStep result, StepRank rank) {
  Found found{std::move(result), std::move(rank), ""};
  if (by_layout_) found.layout = LayoutOf(found.result.config);
  const auto at_same = by_layout_ ? SameLayout(found.layout) : best_.cend();
  if (at_same != best_.cend()) {
    const auto same = best_.begin() + (at_same - best_.cbegin());
    if (Before(found, *same)) std::swap(found, *same);
    // `same` is the faster one, with the ways of both.
    std::vector<RankedStep::Way> ways = std::move(found.result.ways);
    ways.insert(ways.end(), same->result.ways.begin(), same->result.ways.end());
    ways.push_back({found.result.config, found.result.step_time});
    found = std::move(*same);
    found.result.ways = std::move(ways);
    best_.erase(same);
  }
  const auto at = std::upper_bound(best_.begin(), best_.end(), found, Before);
  const bool fastest = at == best_.begin();
  best_.insert(at, std::move(found));
  if (static_cast<int>(best_.size()) > top_) best_.pop_back();
  return fastest;
}

std::vector<RankedStep> TopSteps::Take() {
  std::vector<RankedStep> best;
  for (Found& found : best_) {
    RankedStep& r = best.emplace_back(std::move(found.result));
    const auto other = [&](const RankedStep::Way& way) {
      return !(WithoutWay(way.config) == WithoutWay(r.config));
    };
    r.ways.erase(std::remove_if(r.ways.begin(), r.ways.end(), other), r.ways.end());
  }
  best_.clear();
  return best;
}

}  // namespace pipelab
