#include "pipelines/search/step_bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/types/optional.h"
#include "models/graph/layer_spec.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/search/search_request.h"
#include "pipelines/step/stage_cut.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using ScheduleShape = StepBounds::ScheduleShape;

ScheduleShape ShapeOf(const Schedule& s, bool splits) {
  ScheduleShape shape;
  shape.stages = s.num_stages();
  shape.recompute = s.RecomputedStages();
  shape.held.resize(s.num_devices());
  shape.splits = splits;
  shape.whole = s.num_slices == 1;
  const Placement& p = s.placement;
  shape.replicas = p.num_replicas();
  for (int r = 0; r < p.num_replicas(); ++r) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      for (int d : p.groups[r][stage]) shape.held[d].push_back(stage);
    }
  }
  return shape;
}

bool Recomputes(const ScheduleShape& shape) {
  return std::find(shape.recompute.begin(), shape.recompute.end(), true) != shape.recompute.end();
}

bool Rebuilds(Recompute recompute) {
  return recompute == Recompute::kFull || recompute == Recompute::kBlocks;
}

// The time of one micro-batch on one device. Where units may be rebuilt, the forwards of some come
// again, so that the others may be held in `free` bytes: those first whose area is largest for the
// time. A unit is held at least until the input gradients of all units behind it are there, however
// they are cut into stages.
double TimeOfUnits(const std::vector<UnitTime>& units, const std::vector<double>& kept, double free,
                   bool rebuilds) {
  struct Unit {
    double area = 0, again = 0;
  };
  std::vector<Unit> held;
  double time = 0, area = 0, later = 0;  // nanoseconds, byte-nanoseconds
  for (size_t u = units.size(); u-- > 0;) {
    const UnitTime& cost = units[u];
    const Nanoseconds passes = cost.forward + cost.backward_input + cost.backward_weight;
    time += static_cast<double>(passes.value());
    later += static_cast<double>(cost.backward_input.value());
    // The ends have more than a block, of which a part may be rebuilt: they are taken to hold
    // nothing.
    if (rebuilds && (u == 0 || u + 1 == units.size())) continue;
    held.push_back({kept[u] * later, static_cast<double>(cost.forward.value())});
    area += held.back().area;
  }
  if (free <= 0) return time;
  if (!rebuilds) return std::max(time, area / free);
  std::sort(held.begin(), held.end(),
            [](const Unit& a, const Unit& b) { return a.area * b.again > b.area * a.again; });
  for (const Unit& unit : held) {
    const double missing = area / free - time;
    if (missing <= 0) break;
    // The part of it with which both take equally long.
    const double part = std::min(1.0, missing / (unit.again + unit.area / free));
    area -= part * unit.area;
    time += part * unit.again;
    if (part < 1) break;
  }
  return std::max(time, area / free);
}

// No operation gets a smaller share of a peak than a smaller one of its kind.
bool IsFasterIfLarger(const DeviceSpec& device) {
  const auto rises = [](const EfficiencyCurve& curve) {
    return std::is_sorted(curve.points.begin(), curve.points.end(),
                          [](const auto& a, const auto& b) { return a.share < b.share; });
  };
  const auto all = [&](const auto& curves) {
    return std::all_of(curves.begin(), curves.end(),
                       [&](const auto& curve) { return rises(curve.second.value); });
  };
  return all(device.arithmetic) && all(device.memory_efficiency_of) &&
         rises(device.memory_efficiency.value);
}

}  // namespace

StepBounds::StepBounds(StepCache* cache)
    : cache_(*cache), model_(cache->model()), kept_(cache), activations_(cache) {
  parameters_ = model_.model->graph.num_parameters();
  for (const LayerSpec& layer : model_.model->graph.layers) {
    for (const ParameterSpec& p : layer.parameters) experts_ += p.experts_on(TensorParallel());
  }
  larger_is_faster_ = model_.cluster != nullptr && IsFasterIfLarger(model_.cluster->device);
}

Bytes StepBounds::LeastState(const StepConfig& c) const {
  // Weights, gradients, the optimizer's tensors; of a device, and its part of what copies share.
  const TensorParallel split = c.split();
  const double others = static_cast<double>(parameters_ - experts_) / c.pipeline / c.tensor;
  const double experts = static_cast<double>(experts_) / c.pipeline /
                         static_cast<double>(split.experts * split.expert_degree());
  const double all = others + experts;
  const double part = (others + experts * static_cast<double>(split.expert_copies())) / c.sharing();
  const StateNumbers& n = c.state;
  const auto weights = static_cast<double>(n.weights), gradients = static_cast<double>(n.gradients);
  const auto optimizer = static_cast<double>(n.OptimizerBytes(model_.optimizer_tensors));
  const auto part_weights = static_cast<double>(n.part_weights());
  const auto part_gradients = static_cast<double>(n.part_gradients());
  double state = 0;
  switch (c.sharding) {
    case Sharding::kReplicated:
      state = (weights + gradients + optimizer) * all;
      break;
    case Sharding::kOptimizer:
      state = (weights + gradients) * all + optimizer * part;
      break;
    case Sharding::kGradients:
      state = weights * all + (part_gradients + optimizer) * part;
      break;
    case Sharding::kFully:
      state = (part_weights + part_gradients + optimizer) * part;
      break;
  }
  return Bytes(static_cast<int64_t>(state));
}

const std::vector<StepBounds::UnitEdge>& StepBounds::EdgesOfUnits(CutRule rule) {
  std::vector<UnitEdge>& edges = edges_[rule];
  if (!edges.empty()) return edges;
  const std::vector<int> unit_of = UnitOfLayer(*model_.model, rule);
  const std::vector<LayerSpec>& layers = model_.model->graph.layers;
  std::set<std::tuple<int, int, bool>> known;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const int input : layers[i].inputs) {
      const int from = unit_of[input], to = unit_of[i];
      const bool gradient = !IsDetached(layers[i], input);
      if (from != to && known.insert({from, to, gradient}).second) {
        edges.push_back({from, to, gradient});
      }
    }
  }
  return edges;
}

// Inputs are of earlier units, so in the order of users a stage's own way is known before it is
// asked for; and so it is on the way back from the first stage.
void StepBounds::SetWays(const StepConfig& c, const std::vector<int>& cut, CutCosts* costs) {
  std::vector<int> stage_of;
  for (size_t s = 0; s < cut.size(); ++s)
    stage_of.insert(stage_of.end(), cut[s], static_cast<int>(s));
  for (const UnitEdge& edge : EdgesOfUnits(c.cut)) {
    const int from = stage_of[edge.from], to = stage_of[edge.to];
    if (from >= to) continue;
    const StageLeast& before = costs->stages[from];
    StageLeast& stage = costs->stages[to];
    const UnitTime& cost = before.time;
    stage.before = std::max(stage.before, before.before + cost.forward);
    if (!edge.gradient) continue;
    stage.after = std::max(stage.after, before.after + cost.backward_input + cost.backward_weight);
    stage.after_inputs = std::max(stage.after_inputs, before.after_inputs + cost.backward_input);
  }
}

// A stage keeps what its units do, but for as many of the largest as it rebuilds, from its forward
// until the end of its own backward, in a chain of stages.
absl::Status StepBounds::SetHeld(const StepConfig& c, const std::vector<int>& cut,
                                 CutCosts* costs) {
  if (!kept_.AreChain(c.cut)) return absl::OkStatus();
  if (c.recompute == Recompute::kBlocks) {
    const bool counts_units = c.rebuilt_every == 1 && c.rebuilt_together == 1;
    if (c.rebuilt_blocks == 0 || !counts_units || c.cut == CutRule::kLayers) {
      return absl::OkStatus();  // all may be rebuilt
    }
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double>* units, kept_.Of(c));
  const int rebuilt = c.recompute == Recompute::kBlocks ? c.rebuilt_blocks : 0;
  costs->knows_kept = true;
  std::vector<double> own;
  double later = 0, later_inputs = 0;  // until the backward of the stage behind is over
  auto end = units->end();
  for (size_t s = cut.size(); s-- > 0;) {
    const UnitTime& cost = costs->stages[s].time;
    own.assign(end - cut[s], end);
    end -= cut[s];
    std::sort(own.begin(), own.end());
    own.resize(std::max<size_t>(own.size(), rebuilt) - rebuilt);
    const double kept = std::accumulate(own.begin(), own.end(), 0.0);
    const auto inputs = static_cast<double>(cost.backward_input.value());
    const double whole = inputs + static_cast<double>(cost.backward_weight.value());
    const auto forward = static_cast<double>(cost.forward.value());
    costs->stages[s].kept = kept;
    costs->held += kept * (later + whole);
    costs->held_for_inputs += kept * (later_inputs + inputs);
    later += forward + whole;
    later_inputs += forward + inputs;
  }
  return absl::OkStatus();
}

absl::StatusOr<const StepBounds::CutCosts*> StepBounds::CostsOfStages(const StepConfig& c,
                                                                      int stages) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* cut, cache_.UnitsOf(c, stages));
  const auto key = std::make_tuple(StepCache::SizeOf(c), c.recompute, c.rebuilt(), cut);
  auto found = stages_.find(key);
  if (found != stages_.end()) return &found->second;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<UnitTime>* groups, cache_.UnitTimesOf(c));
  CutCosts costs;
  costs.stages.resize(stages);
  size_t group = 0;
  for (int s = 0; s < stages; ++s) {
    UnitTime& sum = costs.stages[s].time;
    int rebuilt = 0;
    for (int i = 0; i < (*cut)[s]; ++i, ++group) {
      const Nanoseconds again = (*groups)[group].recompute;
      // Further tokens' blocks are in the last unit, which may be rebuilt in part.
      const bool all =
          c.rebuilt_blocks == 0 || (rebuilt < c.rebuilt_blocks && group + 1 < groups->size());
      // Every few-th block is some of them: the bound leaves them out.
      if (c.recompute == Recompute::kBlocks && all && c.rebuilt_every == 1) {
        sum.backward_input += again;
      }
      rebuilt += again > Nanoseconds(0);
      sum.forward += (*groups)[group].forward;
      sum.backward_input += (*groups)[group].backward_input;
      sum.backward_weight += (*groups)[group].backward_weight;
      sum.recompute += again;
    }
  }
  SetWays(c, *cut, &costs);
  PIPELAB_RETURN_IF_ERROR(SetHeld(c, *cut, &costs));
  return &stages_.emplace(key, std::move(costs)).first->second;
}

absl::StatusOr<const ScheduleShape*> StepBounds::Shape(const StepConfig& c) {
  const auto key = std::make_tuple(c.scheme, c.pipeline, c.virtual_stages, c.replicas, c.recompute);
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, cache_.PlacementOf(c));
    found = shapes_.emplace(key, ShapeOf(*schedule, cache_.SplitsBackwards(c, *schedule))).first;
    found->second.keeps = !cache_.HasSchedule(c.scheme) && IsBounded(c.scheme);
  }
  return &found->second;
}

absl::StatusOr<int> StepBounds::MostUnits(const StepConfig& c) {
  PIPELAB_ASSIGN_OR_RETURN(const ScheduleShape* shape, Shape(c));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* units, cache_.UnitsOf(c, shape->stages));
  return *std::max_element(units->begin(), units->end());
}

absl::StatusOr<bool> StepBounds::IsCutByAnother(StepConfig c) {
  const CutRule own = c.cut;
  if (own == CutRule::kBlocks) return false;
  PIPELAB_ASSIGN_OR_RETURN(const ScheduleShape* shape, Shape(c));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* units, cache_.UnitsOf(c, shape->stages));
  for (const CutRule other : {CutRule::kBlocks, CutRule::kMemory}) {
    if (other == own) break;
    c.cut = other;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* by_other, cache_.UnitsOf(c, shape->stages));
    if (by_other == units) return true;
  }
  return false;
}

absl::Status StepBounds::ForEachExchange(const StepConfig& grid,
                                         const std::vector<Exchanges>& exchanges,
                                         absl::FunctionRef<absl::Status(const StepConfig&)> look) {
  // So many that the share of micro-batches which hide exchanges is as large as can be.
  constexpr int kManyMicroBatches = 1 << 24;
  const bool may_hide = grid.experts > 1 && exchanges.size() > 1;
  const bool may_delay =
      std::find(exchanges.begin(), exchanges.end(), Exchanges::kBesideDelayed) != exchanges.end();
  for (const Exchanges kind : exchanges) {
    StepConfig c = grid;
    c.exchanges = kind;
    // What hides makes no step longer, and what is delayed hides the most (exchange_overlap.h).
    if (kind == Exchanges::kWaited ? may_hide : grid.experts == 1) continue;
    if (kind == Exchanges::kBeside && may_delay) continue;
    if (kind != Exchanges::kWaited) {
      c.scheme = "interleaved";
      if (c.ranks != RankOrder::kTensorPipelineData) c.pipeline = 1;  // one share for all
      c.virtual_stages = 1;
      c.micro_batches = kManyMicroBatches;
    }
    PIPELAB_RETURN_IF_ERROR(look(c));
  }
  return absl::OkStatus();
}

absl::StatusOr<Nanoseconds> StepBounds::LeastWork(const StepConfig& grid,
                                                  const std::vector<Exchanges>& exchanges) {
  absl::optional<double> least;
  PIPELAB_RETURN_IF_ERROR(ForEachExchange(grid, exchanges, [&](const StepConfig& c) {
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds work, cache_.WorkOf(c));
    const double time = static_cast<double>(work.value()) * grid.micro_batches / grid.pipeline;
    least = std::min(least.value_or(time), time);
    return absl::OkStatus();
  }));
  return Nanoseconds(static_cast<int64_t>(least.value_or(0)));
}

// A pass of several micro-batches' samples takes no longer than one pass of each: what is rounded
// up to whole rows or tiles is less, and efficiencies do not fall with the size. So all of these
// sizes are bounded by a micro-batch that is a multiple of each.
absl::StatusOr<Nanoseconds> StepBounds::LeastWorkOfSizes(const StepConfig& division,
                                                         const std::vector<int64_t>& sizes,
                                                         int64_t samples,
                                                         const std::vector<Exchanges>& exchanges) {
  constexpr double kRounding = 100;  // nanoseconds of a layer, of all its operations and passes
  if (!larger_is_faster_) return Nanoseconds(0);
  StepConfig c = division;
  c.micro_batch_size = 1;
  for (const int64_t size : sizes) c.micro_batch_size = std::lcm(c.micro_batch_size, size);
  c.micro_batches = 1;
  PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds work, LeastWork(c, exchanges));
  const auto layers = static_cast<double>(model_.model->graph.layers.size());
  const double time = static_cast<double>(work.value()) / static_cast<double>(c.micro_batch_size) -
                      kRounding * layers / c.pipeline;
  return Nanoseconds(static_cast<int64_t>(std::max(0.0, time * static_cast<double>(samples))));
}

absl::Status StepBounds::ForEachGraph(StepConfig c, const std::vector<Recompute>& recompute,
                                      absl::FunctionRef<absl::Status(const StepConfig&)> look) {
  c.recompute = Recompute::kNone;
  PIPELAB_RETURN_IF_ERROR(look(c));
  c.recompute = Recompute::kSelective;
  const bool may_select =
      std::find(recompute.begin(), recompute.end(), c.recompute) != recompute.end();
  const absl::Status status = may_select ? look(c) : absl::OkStatus();
  return absl::IsInvalidArgument(status) ? absl::OkStatus() : status;  // the model has no such way
}

// A unit has what its layers keep when its own backward begins, if not before.
absl::StatusOr<Bytes> StepBounds::LeastKeptOfGrid(const StepConfig& grid,
                                                  const std::vector<Recompute>& recompute) {
  absl::optional<double> least;
  PIPELAB_RETURN_IF_ERROR(ForEachGraph(grid, recompute, [&](const StepConfig& c) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<double>* kept, kept_.Of(c));
    const double most = *std::max_element(kept->begin(), kept->end());
    least = std::min(least.value_or(most), most);
    return absl::OkStatus();
  }));
  return Bytes(static_cast<int64_t>(least.value_or(0)));
}

// When the loss of a micro-batch is there, all that is not rebuilt of its units is kept.
absl::StatusOr<StepLeast> StepBounds::LeastOfGrid(const StepConfig& grid,
                                                  const std::vector<Exchanges>& exchanges,
                                                  const std::vector<Recompute>& recompute,
                                                  absl::optional<Bytes> free) {
  StepLeast least;
  PIPELAB_ASSIGN_OR_RETURN(least.time, LeastWork(grid, exchanges));
  if (!free.has_value() || !kept_.AreChain(grid.cut)) return least;
  // Exchanges beside another micro-batch rebuild nothing, but ForEachExchange has them for those
  // that are waited for, too.
  const bool rebuilds =
      std::find(exchanges.begin(), exchanges.end(), Exchanges::kWaited) != exchanges.end() &&
      std::any_of(recompute.begin(), recompute.end(), &Rebuilds);
  absl::optional<double> time, memory;
  const auto look = [&](const StepConfig& c) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<double>* kept, kept_.Of(c));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<UnitTime>* units, cache_.UnitTimesOf(c));
    const double all = std::accumulate(kept->begin(), kept->end(), 0.0) / grid.pipeline;
    const double own_memory = rebuilds ? 0 : all;
    const double own = TimeOfUnits(*units, *kept, static_cast<double>(free->value()), rebuilds) *
                       grid.micro_batches / grid.pipeline;
    time = std::min(time.value_or(own), own);
    memory = std::min(memory.value_or(own_memory), own_memory);
    return absl::OkStatus();
  };
  PIPELAB_RETURN_IF_ERROR(ForEachExchange(
      grid, exchanges, [&](const StepConfig& c) { return ForEachGraph(c, recompute, look); }));
  least.time = std::max(least.time, Nanoseconds(static_cast<int64_t>(time.value_or(0))));
  least.memory = Bytes(static_cast<int64_t>(memory.value_or(0)));
  return least;
}

// When the loss of a micro-batch is there all its stages are kept; and where a closed form says how
// many activations a device holds, as many as that. Of split backwards less may be kept by then.
Bytes StepBounds::LeastKept(const StepConfig& c, const ScheduleShape& shape,
                            const CutCosts& costs) {
  if (!costs.knows_kept) return Bytes(0);
  double all = 0;
  for (const StageLeast& stage : costs.stages) all += stage.kept;
  double least = all / c.pipeline;
  const std::vector<int64_t>& activations = activations_.Of(c);
  const double most = std::ceil(static_cast<double>(c.micro_batches) / shape.replicas);
  for (size_t d = 0; d < activations.size() && !shape.splits; ++d) {
    std::vector<double> kept;
    for (const int s : shape.held[d]) kept.push_back(costs.stages[s].kept);
    least = std::max(least, LeastBytes(activations[d], std::move(kept), most));
  }
  return Bytes(static_cast<int64_t>(least));
}

absl::StatusOr<StepLeast> StepBounds::Least(const StepConfig& c, absl::optional<Bytes> free) {
  PIPELAB_ASSIGN_OR_RETURN(const ScheduleShape* shape, Shape(c));
  if (!shape->whole) return StepLeast();
  if (!c.layout.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const bool whole_units, cache_.LayoutHasWholeUnits(c));
    if (!whole_units) return StepLeast();
  }
  PIPELAB_ASSIGN_OR_RETURN(const CutCosts* costs, CostsOfStages(c, shape->stages));
  double least = 0;
  // Replicas share them as evenly as can be.
  const int passes = c.micro_batches / shape->replicas;
  const double times = passes;
  const auto after = [&](int s) {
    return shape->splits ? costs->stages[s].after_inputs : costs->stages[s].after;
  };
  for (const std::vector<int>& held : shape->held) {
    if (held.empty()) continue;
    double compute = 0, weights = 0;
    Nanoseconds begin = costs->stages[held[0]].before, end = after(held[0]);
    for (const int s : held) {
      const UnitTime& stage = costs->stages[s].time;
      Nanoseconds time = stage.forward + stage.backward_input + stage.backward_weight;
      if (shape->recompute[s]) time += stage.recompute;
      compute += static_cast<double>(time.value()) * times;
      weights += static_cast<double>(stage.backward_weight.value()) * times;
      begin = std::min(begin, costs->stages[s].before);
      end = std::min(end, after(s));
    }
    compute += static_cast<double>(begin.value());
    // Weight gradients of their own may run after the last input gradient.
    const double later = shape->splits ? weights : 0;
    least = std::max({least, compute, compute - later + static_cast<double>(end.value())});
  }
  if (!shape->keeps || Recomputes(*shape))
    return StepLeast{Nanoseconds(static_cast<int64_t>(least)), Bytes(0)};
  if (free.has_value() && *free > Bytes(0)) {
    const double held = shape->splits ? costs->held_for_inputs : costs->held;
    least = std::max(
        least, held * passes * shape->replicas / (static_cast<double>(free->value()) * c.pipeline));
  }
  return StepLeast{Nanoseconds(static_cast<int64_t>(least)), LeastKept(c, *shape, *costs)};
}

}  // namespace pipelab
