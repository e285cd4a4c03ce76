#include "pipelines/search/search.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "pipelines/search/method_groups.h"
#include "pipelines/search/moved_blocks.h"
#include "pipelines/search/order_bound.h"
#include "pipelines/search/placement_bound.h"
#include "pipelines/search/search_request.h"
#include "pipelines/search/search_space.h"
#include "pipelines/search/step_bounds.h"
#include "pipelines/search/top_steps.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Each closer than the one before, and more work.
enum class BoundOf { kCompute, kPlacement, kOrder };

struct Candidate {
  int method = 0;
  absl::optional<Exchanges> exchanges;  // of a grid's schedules; none: any
  size_t node = 0;                      // its number
  Nanoseconds first, bound;             // of compute; the best known
  BoundOf bound_of = BoundOf::kCompute;
};

// For a heap whose top is the least.
bool After(const Candidate& a, const Candidate& b) {
  return std::tie(b.bound, b.method, b.first, b.node) <
         std::tie(a.bound, a.method, a.first, a.node);
}

// The bounds of one model: the user's, or that with its vocabulary divided for some pipelines.
struct Bounds {
  explicit Bounds(StepCache* cache) : of_any(cache), of_placement(cache), of_order(cache) {}

  StepBounds of_any;
  PlacementBound of_placement;
  OrderBound of_order;
};

// By all methods.
class Shared {
 public:
  explicit Shared(StepCache* cache) : cache_(*cache) {}

  StepCache& cache() { return cache_; }
  // The bounds of the model that the configuration cuts. InvalidArgument: StepCache::CacheOf.
  absl::StatusOr<Bounds*> BoundsOf(const StepConfig& c) {
    PIPELAB_ASSIGN_OR_RETURN(StepCache * cut, cache_.CacheOf(c));
    return &bounds_.try_emplace(cut, cut).first->second;
  }

 private:
  StepCache& cache_;
  std::map<StepCache*, Bounds> bounds_;
};

// The best of some methods.
class BestFirst {
 public:
  BestFirst(const SearchRequest& search, Shared* shared, SearchRefusals* refusals)
      : model_(shared->cache().model()),
        search_(search),
        shared_(*shared),
        refusals_(*refusals),
        memory_(MemoryFor(model_, search)),
        recomputes_(RecomputesOf(search)),
        groups_(search, &shared->cache()),
        best_(search.top, search.by_layout) {}

  // Adds search.methods[method].
  void Add(int method) {
    spaces_.try_emplace(method, model_, search_, search_.methods[method], &refusals_);
    groups_.Add(method);
  }

  absl::StatusOr<std::vector<RankedStep>> Run() {
    for (const int method : groups_.firsts()) {
      PIPELAB_RETURN_IF_ERROR(spaces_.at(method).ForEachDivision(
          [&](const SearchNode& division) { return AddDivision(method, division); }));
    }
    while (!candidates_.empty() && !Stopped()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), After);
      const Candidate candidate = candidates_.back();
      candidates_.pop_back();
      const Nanoseconds time = ToBeat();
      if (time > Nanoseconds(0) && candidate.bound > time) break;  // and so is the rest
      PIPELAB_RETURN_IF_ERROR(Open(candidate));
    }
    return best_.Take();
  }

  bool Stopped() const { return search_.stop && search_.stop(); }

 private:
  const StepConfig& ConfigOf(const Candidate& c) const { return nodes_[c.node].config; }
  StepRank RankOf(const Candidate& c) const { return {c.method, c.first, nodes_[c.node].path}; }

  void PushAgain(const Candidate& candidate) {
    candidates_.push_back(candidate);
    std::push_heap(candidates_.begin(), candidates_.end(), After);
  }

  // `first`: its bound of compute.
  void Push(int method, const SearchNode& node, Nanoseconds first, Nanoseconds bound) {
    PushAgain({method, absl::nullopt, nodes_.size(), first, bound});
    nodes_.push_back(node);
  }

  // The division has the bound of all sizes of micro-batches that fit.
  absl::Status AddDivision(int method, const SearchNode& division) {
    if (Stopped()) return absl::OkStatus();
    if (search_.simulate_all) {
      Push(method, division, Nanoseconds(0), Nanoseconds(0));
      return absl::OkStatus();
    }
    StepConfig c = division.config;
    PIPELAB_ASSIGN_OR_RETURN(Bounds * bounds, shared_.BoundsOf(c));
    std::vector<int64_t> sizes = spaces_.at(method).MicroBatchSizes(c);
    // The more samples, the more they keep.
    absl::Status status;
    const auto beyond = absl::c_partition_point(sizes, [&](int64_t b) {
      c.micro_batch_size = b;
      const absl::StatusOr<Bytes> needed = NeededBy(method, c, bounds);
      if (!needed.ok()) status = needed.status();
      return needed.ok() && *needed <= memory_;
    });
    if (!status.ok()) return RefuseScheme(c, status);
    if (beyond == sizes.begin()) {
      c.micro_batch_size = sizes[0];
      return RefuseGrid(method, c, bounds);
    }
    sizes.erase(beyond, sizes.end());
    const int64_t samples = search_.batch / c.data;
    const absl::StatusOr<Nanoseconds> bound =
        bounds->of_any.LeastWorkOfSizes(c, sizes, samples, search_.exchanges);
    if (!bound.ok()) return RefuseScheme(c, bound.status());
    Push(method, division, *bound, *bound);
    return absl::OkStatus();
  }

  // A grid's state, and what its micro-batches keep, at least.
  absl::StatusOr<Bytes> NeededBy(int method, const StepConfig& grid, Bounds* bounds) const {
    const Bytes state = groups_.LeastSharded(method, grid, bounds->of_any).state;
    if (state > memory_ || !groups_.AreBounded(method)) return state;
    PIPELAB_ASSIGN_OR_RETURN(const Bytes kept, bounds->of_any.LeastKeptOfGrid(grid, recomputes_));
    return state + kept;
  }

  absl::Status RefuseGrid(int method, const StepConfig& grid, Bounds* bounds) {
    PIPELAB_ASSIGN_OR_RETURN(const Bytes needed, NeededBy(method, grid, bounds));
    ++refusals_.considered;
    RefuseMemory(groups_.LeastSharded(method, grid, bounds->of_any).config, needed);
    return absl::OkStatus();
  }

  absl::Status AddGrid(int method, const SearchNode& grid) {
    if (Stopped()) return absl::OkStatus();
    if (search_.simulate_all) {
      Push(method, grid, Nanoseconds(0), Nanoseconds(0));
      return absl::OkStatus();
    }
    PIPELAB_ASSIGN_OR_RETURN(Bounds * bounds, shared_.BoundsOf(grid.config));
    const absl::StatusOr<Bytes> needed = NeededBy(method, grid.config, bounds);
    if (!needed.ok()) return RefuseScheme(grid.config, needed.status());
    if (*needed > memory_) return RefuseGrid(method, grid.config, bounds);
    const absl::StatusOr<Nanoseconds> bound =
        bounds->of_any.LeastWork(grid.config, search_.exchanges);
    if (!bound.ok()) return RefuseScheme(grid.config, bound.status());
    Push(method, grid, *bound, *bound);
    return absl::OkStatus();
  }

  absl::Status Open(const Candidate& candidate) {
    if (nodes_[candidate.node].level == SearchNode::Level::kWhole) {
      if (Beyond(candidate) || NoWay(candidate)) return absl::OkStatus();
      const bool simulate = candidate.bound_of == BoundOf::kOrder || search_.simulate_all;
      return simulate ? Simulate(candidate) : BoundCloser(candidate);
    }
    const SearchNode& node = nodes_[candidate.node];  // stays where it is when others are added
    if (node.level == SearchNode::Level::kDivision) {
      return spaces_.at(candidate.method).ForEachChild(node, [&](const SearchNode& grid) {
        return AddGrid(candidate.method, grid);
      });
    }
    if (node.level == SearchNode::Level::kGrid) {
      if (candidate.bound_of == BoundOf::kCompute && !search_.simulate_all) {
        return PushInMemory(candidate, search_.exchanges);
      }
      const bool divides = node.config.experts > 1 && search_.exchanges.size() > 1;
      if (divides && !candidate.exchanges.has_value() && !search_.simulate_all) {
        return DivideGrid(candidate);
      }
      for (const int method : groups_.With(candidate.method)) {
        PIPELAB_RETURN_IF_ERROR(spaces_.at(method).ForEachChild(
            node, [&](const SearchNode& schedule) { return AddSchedule(method, schedule); },
            candidate.exchanges));
      }
      return absl::OkStatus();
    }
    if (candidate.bound_of == BoundOf::kCompute) {
      PIPELAB_RETURN_IF_ERROR(AddOneMoreRebuilt(candidate.method, node));
      PIPELAB_RETURN_IF_ERROR(
          spaces_.at(candidate.method).WithLargerGroups(node, [&](const SearchNode& next) {
            return AddSchedule(candidate.method, next);
          }));
      if (!search_.simulate_all) return BoundCloser(candidate);
    }
    return spaces_.at(candidate.method).ForEachChild(node, [&](const SearchNode& whole) {
      return AddWhole(candidate.method, whole, candidate);
    });
  }

  // By how its schedules exchange rows.
  absl::Status DivideGrid(Candidate candidate) {
    for (const Exchanges exchanges : search_.exchanges) {
      candidate.exchanges = exchanges;
      PIPELAB_RETURN_IF_ERROR(PushInMemory(candidate, {exchanges}));
    }
    return absl::OkStatus();
  }

  // The grid's schedules with these exchanges are bounded by what micro-batches keep.
  absl::Status PushInMemory(Candidate candidate, const std::vector<Exchanges>& exchanges) {
    candidate.bound_of = BoundOf::kPlacement;
    const StepConfig& c = ConfigOf(candidate);
    PIPELAB_ASSIGN_OR_RETURN(Bounds * bounds, shared_.BoundsOf(c));
    const ShardedState sharded = groups_.LeastSharded(candidate.method, c, bounds->of_any);
    absl::optional<Bytes> free;
    if (groups_.AreBounded(candidate.method)) free = memory_ - sharded.state;
    const absl::StatusOr<StepLeast> least =
        bounds->of_any.LeastOfGrid(c, exchanges, recomputes_, free);
    if (!least.ok()) return RefuseScheme(c, least.status());
    if (free.has_value() && least->memory > *free) {
      ++refusals_.considered;
      RefuseMemory(sharded.config, sharded.state + least->memory);
      return absl::OkStatus();
    }
    candidate.bound = std::max(candidate.bound, least->time);
    PushAgain(candidate);
    return absl::OkStatus();
  }

  absl::Status AddOneMoreRebuilt(int method, const SearchNode& schedule) {
    const StepConfig& c = schedule.config;
    if (c.rebuilt_blocks == 0) return absl::OkStatus();
    // Those with larger groups are larger groups of those with more rebuilt.
    if (c.group_size >= c.pipeline && !search_.fixed.has("group")) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(Bounds * bounds, shared_.BoundsOf(c));
    PIPELAB_ASSIGN_OR_RETURN(const int most, bounds->of_any.MostUnits(c));
    return spaces_.at(method).WithOneMoreRebuilt(
        schedule, most, [&](const SearchNode& next) { return AddSchedule(method, next); });
  }

  absl::Status AddSchedule(int method, const SearchNode& schedule) {
    const absl::StatusOr<Bounds*> bounds = shared_.BoundsOf(schedule.config);
    if (!bounds.ok()) return RefuseScheme(schedule.config, bounds.status());
    StepBounds& of_any = (*bounds)->of_any;
    if (!search_.fixed.has("cut")) {
      const absl::StatusOr<bool> known = of_any.IsCutByAnother(schedule.config);
      if (!known.ok()) return RefuseScheme(schedule.config, known.status());
      if (*known) return absl::OkStatus();
    }
    const ShardedState sharded =
        LeastSharded(search_.methods[method].shardings, schedule.config, of_any);
    absl::optional<Bytes> free;
    if (!search_.simulate_all) free = memory_ - sharded.state;
    const absl::StatusOr<StepLeast> least = of_any.Least(schedule.config, free);
    if (!least.ok()) return RefuseScheme(schedule.config, least.status());
    if (free.has_value() && least->memory > *free) {
      ++refusals_.considered;
      RefuseMemory(sharded.config, sharded.state + least->memory);
      return AddOneMoreRebuilt(method, schedule);
    }
    Push(method, schedule, least->time, least->time);
    return absl::OkStatus();
  }

  absl::Status AddWhole(int method, const SearchNode& whole, const Candidate& schedule) {
    if (!search_.simulate_all) {
      PIPELAB_ASSIGN_OR_RETURN(Bounds * bounds, shared_.BoundsOf(whole.config));
      const Bytes state = bounds->of_any.LeastState(whole.config);
      if (state > memory_) {
        RefuseMemory(whole.config, state);
        return absl::OkStatus();
      }
    }
    Push(method, whole, schedule.first, schedule.bound);
    return absl::OkStatus();
  }

  bool Beyond(const Candidate& c) const {
    return ToBeat() > Nanoseconds(0) && best_.IsBeyond(c.bound, RankOf(c));
  }

  bool NoWay(const Candidate& c) const {
    return !search_.simulate_all && best_.IsNoWay(ConfigOf(c), c.bound);
  }

  Nanoseconds ToBeat() const { return search_.simulate_all ? Nanoseconds(0) : best_.ToBeat(); }

  // Gives it the next bound, unless that needs more memory than there is.
  absl::Status BoundCloser(Candidate candidate) {
    const StepConfig& c = ConfigOf(candidate);
    const bool whole = nodes_[candidate.node].level == SearchNode::Level::kWhole;
    const bool of_order = candidate.bound_of == BoundOf::kPlacement;
    PIPELAB_ASSIGN_OR_RETURN(Bounds * bounds, shared_.BoundsOf(c));
    const absl::StatusOr<StepLeast> least =
        of_order ? BoundOfOrder(c, bounds)
        : whole  ? bounds->of_placement.Of(c, memory_)
                 : bounds->of_placement.OfAnySharding(
                       LeastSharded(search_.methods[candidate.method].shardings, c, bounds->of_any)
                           .config,
                       memory_);
    if (!least.ok()) return RefuseScheme(c, least.status());
    if (least->memory > memory_) {
      RefuseMemory(c, least->memory);
      return absl::OkStatus();
    }
    candidate.bound = std::max(candidate.bound, least->time);
    candidate.bound_of = of_order ? BoundOf::kOrder : BoundOf::kPlacement;
    // A time to beat ends the making of other orders early.
    const bool first = ToBeat() == Nanoseconds(0) || candidate.bound < ToBeat();
    if (of_order && first && StepCache::ChoosesOrder(c)) return Simulate(candidate);
    PushAgain(candidate);
    return absl::OkStatus();
  }

  absl::StatusOr<StepLeast> BoundOfOrder(const StepConfig& c, Bounds* bounds) {
    StepLeast least;
    PIPELAB_ASSIGN_OR_RETURN(least.memory, bounds->of_placement.MemoryOfOrder(c, memory_));
    if (least.memory > memory_) return least;
    ++refusals_.ordered;
    return bounds->of_order.Of(c, memory_, ToBeat());
  }

  absl::Status Simulate(const Candidate& candidate) {
    const StepConfig& config = ConfigOf(candidate);
    if (search_.check) {
      const absl::Status status = search_.check(config);
      if (!status.ok()) return RefuseScheme(config, status);
    }
    ++refusals_.simulated;
    const absl::StatusOr<StepPrediction> point = Simulated(config);
    if (!point.ok()) return RefuseScheme(config, point.status());
    if (point->largest_device > memory_) {
      RefuseMemory(config, point->largest_device);
      return absl::OkStatus();
    }
    RankedStep result;
    result.method = search_.methods[candidate.method].name;
    TakeFigures(*point, &result);
    if (best_.Keep(result, RankOf(candidate)) && search_.found) search_.found(result);
    return absl::OkStatus();
  }

  absl::StatusOr<StepPrediction> Simulated(const StepConfig& config) {
    PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(&shared_.cache(), config));
    if (step.config.batch() != search_.batch || step.config.devices() != search_.devices) {
      return absl::InvalidArgumentError(absl::StrCat("the schedule in ", config.scheme,
                                                     " makes a batch of ", step.config.batch(),
                                                     " on ", step.config.devices(), " devices"));
    }
    return SimulateStep(std::move(step), memory_);
  }

  // What sizes do not suit is left out; anything else is an error.
  absl::Status RefuseScheme(const StepConfig& c, const absl::Status& status) {
    if (!absl::IsInvalidArgument(status)) return status;
    ++refusals_.scheme;
    refusals_.scheme_reason = absl::StrCat(c.ToString(), ": ", status.message());
    return absl::OkStatus();
  }

  void RefuseMemory(const StepConfig& c, Bytes bytes) {
    ++refusals_.memory;
    if (refusals_.least_memory == Bytes(0) || bytes < refusals_.least_memory) {
      refusals_.least_memory = bytes;
      refusals_.nearest = c.ToString();
    }
  }

  const StepModel& model_;
  const SearchRequest& search_;
  Shared& shared_;
  SearchRefusals& refusals_;
  const Bytes memory_;  // of a device
  const std::vector<Recompute> recomputes_;
  std::map<int, SearchSpace> spaces_;  // by method
  MethodGroups groups_;
  std::deque<SearchNode> nodes_;
  std::vector<Candidate> candidates_;  // a heap
  TopSteps best_;
};

// Results stay as many as they are, where there are several.
absl::Status AddMovedBlocks(StepCache* cache, const SearchRequest& search,
                            std::vector<RankedStep>* best) {
  const size_t rows = std::min(best->size(), static_cast<size_t>(search.moved_rows));
  const size_t results = best->size();
  for (size_t row = 0; row < rows; ++row) {
    PIPELAB_ASSIGN_OR_RETURN(const absl::optional<RankedStep> faster,
                             WithMovedBlocks(cache, search, (*best)[row]));
    if (faster.has_value()) best->push_back(*faster);
  }
  SortByTime(best);
  best->resize(std::min(best->size(), results));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SearchResult> Search(const StepModel& model, const SearchRequest& search) {
  StepCache cache(model);
  return Search(&cache, search);
}

absl::StatusOr<SearchResult> Search(StepCache* cache, const SearchRequest& search) {
  const StepModel& model = cache->model();
  PIPELAB_RETURN_IF_ERROR(CheckSearch(model, search));
  Shared shared(cache);
  SearchResult result;
  const int methods = static_cast<int>(search.methods.size());
  for (int method = 0; method < methods;) {
    BestFirst of_some(search, &shared, &result.refusals);
    const int end = search.together ? methods : method + 1;
    for (; method < end; ++method) of_some.Add(method);
    PIPELAB_ASSIGN_OR_RETURN(std::vector<RankedStep> best, of_some.Run());
    result.best.insert(result.best.end(), best.begin(), best.end());
    result.stopped = of_some.Stopped();
    if (result.stopped) break;
  }
  SortByTime(&result.best);
  if (result.best.empty() && result.stopped) {
    return absl::CancelledError("search: stopped before it found anything");
  }
  if (result.best.empty()) return NothingFits(model, search, result.refusals);
  PIPELAB_RETURN_IF_ERROR(AddMovedBlocks(cache, search, &result.best));
  return result;
}

}  // namespace pipelab
