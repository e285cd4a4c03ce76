#include "pipelines/planners/chain_costs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "pipelines/planners/plan_costs.h"

namespace pipelab {

ChainCosts::ChainCosts(const PlanProblem& problem)
    : problem_(problem), order_(TopologicalOrder(problem)), variants_(2), work_(1) {
  for (int v : order_) {
    const PlanOperator& o = problem.operators[v];
    const std::vector<PlanVariant>& variants = o.variants.at(1);
    const int plain = PlainVariantOf(o);
    int again = plain;
    for (int i = 0; i < static_cast<int>(variants.size()); ++i) {
      if (variants[i].recompute) again = i;
    }
    variants_[0].push_back(plain);
    variants_[1].push_back(again);
    if (again != plain) modes_ = 2;
  }
  times_.resize(modes_);
  parameters_.assign(modes_, {0});
  in_flight_ = fixed_ = parameters_;
  for (int mode = 0; mode < modes_; ++mode) {
    for (int i = 0; i < size(); ++i) {
      parameters_[mode].push_back(parameters_[mode].back() + Variant(i, mode).parameter_bytes);
      in_flight_[mode].push_back(in_flight_[mode].back() + Variant(i, mode).in_flight_bytes);
      fixed_[mode].push_back(fixed_[mode].back() + Variant(i, mode).fixed_bytes);
    }
    for (int64_t copies = 1; copies <= problem.devices; ++copies) {
      std::vector<PlanTimes> sums(1);
      const double samples =
          static_cast<double>(problem.micro_batch_size) / static_cast<double>(copies);
      for (int i = 0; i < size(); ++i) {
        const PlanTimes t = copies == 1
                                ? PlanTimes{Variant(i, mode).forward_time, Variant(i, mode).time}
                                : TimesOfSamples(problem, Variant(i, mode), samples);
        sums.push_back({sums.back().forward + t.forward, sums.back().time + t.time});
      }
      times_[mode].push_back(std::move(sums));
    }
  }
  for (int i = 0; i < size(); ++i) {
    PlanTimes least = {std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::infinity()};
    for (int mode = 0; mode < modes_; ++mode) {
      for (int64_t copies = 1; copies <= problem.devices; ++copies) {
        const PlanTimes t = Times(i, i + 1, mode, copies);
        least.forward = std::min(least.forward, t.forward * static_cast<double>(copies));
        least.time = std::min(least.time, t.time * static_cast<double>(copies));
      }
    }
    work_.push_back({work_.back().forward + least.forward, work_.back().time + least.time});
  }
  std::vector<int> place(size());
  for (int i = 0; i < size(); ++i) place[order_[i]] = i;
  cut_bytes_.resize(size() + 1);
  for (int i = 0; i < size(); ++i) {
    const PlanOperator& o = problem.operators[order_[i]];
    int last = i;
    for (int e : o.out_edges) last = std::max(last, place[problem.edges[e].to]);
    for (int cut = i + 1; cut <= last; ++cut) cut_bytes_[cut] += o.output_bytes;
  }
}

const PlanVariant& ChainCosts::Variant(int place, int mode) const {
  return problem_.operators[order_[place]].variants.at(1)[variants_[mode][place]];
}

PlanTimes ChainCosts::Times(int begin, int end, int mode, int64_t copies) const {
  const std::vector<PlanTimes>& sums = times_[mode][copies - 1];
  return {sums[end].forward - sums[begin].forward, sums[end].time - sums[begin].time};
}

double ChainCosts::Memory(int begin, int end, int mode, int64_t copies, int64_t in_flight) const {
  return (in_flight_[mode][end] - in_flight_[mode][begin]) * static_cast<double>(in_flight) /
             static_cast<double>(copies) +
         fixed_[mode][end] - fixed_[mode][begin];
}

PlanStage ChainCosts::Stage(int begin, int end, int mode) const {
  std::vector<std::pair<int, int>> variants;
  for (int i = begin; i < end; ++i) variants.emplace_back(order_[i], variants_[mode][i]);
  std::sort(variants.begin(), variants.end());
  PlanStage stage;
  for (const auto& [op, variant] : variants) {
    stage.layers.push_back(op);
    stage.variants.push_back(variant);
  }
  return stage;
}

}  // namespace pipelab
