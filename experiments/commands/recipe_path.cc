#include "experiments/commands/recipe_path.h"

#include <cstdint>
#include <utility>

#include "absl/types/optional.h"
#include "experiments/commands/system_search.h"
#include "experiments/report/table.h"
#include "pipelines/recipes/settings.h"
#include "pipelines/search/search.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kGain = 1e-3;  // that a change must have, as a share of the step

// Values that are changed together: each needs the others, or says how they are used.
using Take = void (*)(const StepConfig& from, StepConfig* to);
constexpr Take kChanges[] = {
    [](const StepConfig& from, StepConfig* to) {
      to->scheme = from.scheme;
      to->virtual_stages = from.virtual_stages;
      to->group_size = from.group_size;
      to->replicas = from.replicas;
      to->split_head = from.split_head;
      to->published_order = from.published_order;
    },
    [](const StepConfig& from, StepConfig* to) { to->micro_batch_size = from.micro_batch_size; },
    [](const StepConfig& from, StepConfig* to) { to->pipeline = from.pipeline; },
    [](const StepConfig& from, StepConfig* to) {
      to->tensor = from.tensor;
      to->sequence_parallel = from.sequence_parallel;
    },
    [](const StepConfig& from, StepConfig* to) {
      to->context = from.context;
      to->context_exchange = from.context_exchange;
    },
    [](const StepConfig& from, StepConfig* to) {
      to->experts = from.experts;
      to->whole_experts = from.whole_experts;
      to->dispatch = from.dispatch;
    },
    [](const StepConfig& from, StepConfig* to) { to->exchanges = from.exchanges; },
    [](const StepConfig& from, StepConfig* to) {
      to->recompute = from.recompute;
      to->modules = from.modules;
      to->rebuilt_blocks = from.rebuilt_blocks;
      to->rebuilt_every = from.rebuilt_every;
      to->rebuilt_together = from.rebuilt_together;
      to->early_recompute = from.early_recompute;
    },
    [](const StepConfig& from, StepConfig* to) {
      to->sharding = from.sharding;
      to->shards = from.shards;
      to->state = from.state;
      to->residency = from.residency;
    },
    [](const StepConfig& from, StepConfig* to) { to->overlap_tensor = from.overlap_tensor; },
    [](const StepConfig& from, StepConfig* to) {
      to->overlap_pipeline = from.overlap_pipeline;
      to->steady_overlap = from.steady_overlap;
      to->whole_messages = from.whole_messages;
    },
};
constexpr int kNumChanges = sizeof(kChanges) / sizeof(kChanges[0]);

class WayToBest {
 public:
  WayToBest(const RecipeInput& input, StepCache* cache, Bytes memory, StepConfig best)
      : input_(input),
        cache_(*cache),
        memory_(memory),
        recipe_(input.recipe.config),
        best_(std::move(best)) {}

  // Sets of changes, as bits of kChanges.
  absl::StatusOr<std::vector<PathStep>> Find(Nanoseconds of_recipe) {
    uint32_t left = Needed();
    uint32_t done = 0;
    Nanoseconds before = of_recipe;
    PIPELAB_ASSIGN_OR_RETURN(Settings settings, input_.system->write(input_.recipe));
    std::vector<PathStep> steps;
    while (left != 0) {
      const uint32_t next = Next(done, left);
      absl::optional<Made> made = Make(done | next);
      if (!made.has_value()) break;  // the whole way is the best itself, which is one
      if (made->prediction.step_time > before && next != left) {
        made = Make(done | left);  // no single one gains
        if (!made.has_value()) break;
        done |= left;
        left = 0;
      } else {
        done |= next;
        left &= ~next;
      }
      before = made->prediction.step_time;
      PathStep& step = steps.emplace_back();
      step.changes = ChangesBetween(settings, made->settings);
      step.prediction = std::move(made->prediction);
      settings = std::move(made->settings);
    }
    return steps;
  }

 private:
  struct Made {
    StepPrediction prediction;
    Settings settings;
  };

  StepConfig With(uint32_t changes) const {
    StepConfig c = recipe_;
    for (int i = 0; i < kNumChanges; ++i) {
      if ((changes >> i & 1) != 0) kChanges[i](best_, &c);
    }
    c.layout = c.pipeline == best_.pipeline && c.virtual_stages == best_.virtual_stages
                   ? best_.layout
                   : "";
    if (c.pipeline == recipe_.pipeline && c.virtual_stages == recipe_.virtual_stages) {
      c.layout = recipe_.layout;
    }
    const int64_t ranks = int64_t{c.pipeline} * c.tensor * c.context;
    c.data = static_cast<int>(recipe_.devices() / ranks);
    if (c.data > 0) {
      c.micro_batches = static_cast<int>(recipe_.batch() / (c.data * c.micro_batch_size));
    }
    return c;
  }

  // None where it is no configuration, or does not fit.
  absl::optional<Made> Make(uint32_t changes) {
    const StepConfig c = With(changes);
    if (c.data == 0 || c.micro_batches == 0) return absl::nullopt;
    if (c.devices() != recipe_.devices() || c.batch() != recipe_.batch()) return absl::nullopt;
    const absl::StatusOr<Recipe> other = RecipeWith(input_.recipe, c, &cache_);
    if (!other.ok()) return absl::nullopt;
    absl::StatusOr<Settings> settings = input_.system->write(*other);
    if (!settings.ok()) return absl::nullopt;
    absl::StatusOr<StepPrediction> p = PredictStep(&cache_, other->config);
    if (!p.ok() || p->largest_device > memory_) return absl::nullopt;
    return Made{*std::move(p), *std::move(settings)};
  }

  // Changes without which the best is slower.
  uint32_t Needed() {
    uint32_t needed = 0;
    for (int i = 0; i < kNumChanges; ++i) {
      StepConfig without = best_;
      kChanges[i](recipe_, &without);
      if (!(without == best_)) needed |= uint32_t{1} << i;
    }
    const absl::optional<Made> all = Make(needed);
    if (!all.has_value()) return 0;
    const double most = (1 + kGain) * ToMs(all->prediction.step_time);
    for (int i = kNumChanges - 1; i >= 0; --i) {
      const uint32_t others = needed & ~(uint32_t{1} << i);
      if (others == needed) continue;
      const absl::optional<Made> made = Make(others);
      if (made.has_value() && ToMs(made->prediction.step_time) <= most) needed = others;
    }
    return needed;
  }

  // The fastest of the changes that are left; two or three of them if no one alone makes a run.
  uint32_t Next(uint32_t done, uint32_t left) {
    for (int size = 1; size <= 3; ++size) {
      uint32_t fastest = 0;
      Nanoseconds time;
      for (uint32_t set = 1; set < uint32_t{1} << kNumChanges; ++set) {
        if ((set & left) != set || __builtin_popcount(set) != size) continue;
        const absl::optional<Made> made = Make(done | set);
        if (!made.has_value()) continue;
        if (fastest != 0 && made->prediction.step_time >= time) continue;
        fastest = set;
        time = made->prediction.step_time;
      }
      if (fastest != 0) return fastest;
    }
    return left;
  }

  const RecipeInput& input_;
  StepCache& cache_;
  const Bytes memory_;
  const StepConfig& recipe_;
  const StepConfig best_;
};

}  // namespace

absl::StatusOr<RecipePath> PathToBest(const RecipeInput& input, StepCache* cache, Bytes memory) {
  const StepConfig& recipe = input.recipe.config;
  SearchRequest request = WholeSpace(cache->model(), recipe.devices(), recipe.batch());
  request.memory = memory;
  request.together = true;
  int64_t looks = 0;
  request.stop = [&looks] { return ++looks > kMostLooks; };
  RecipePath path;
  const absl::StatusOr<SearchResult> found =
      SearchSystem(*input.system, input.recipe, cache, request);
  if (absl::IsNotFound(found.status()) || absl::IsCancelled(found.status())) {
    path.whole = absl::IsNotFound(found.status());
    return path;
  }
  PIPELAB_RETURN_IF_ERROR(found.status());
  path.whole = !found->stopped;
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction own, PredictStep(cache, recipe));
  const RankedStep& best = found->best[0];
  if (own.fits && ToMs(own.step_time) <= (1 + kGain) * ToMs(best.step_time)) return path;
  PIPELAB_ASSIGN_OR_RETURN(path.steps,
                           WayToBest(input, cache, memory, best.config).Find(own.step_time));
  return path;
}

}  // namespace pipelab
