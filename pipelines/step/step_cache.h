// What the configurations of one model on one cluster have in common, worked out once: a search
// looks at thousands of configurations that share their stages, times and schedules.
//
//   StepCache cache(model);
//   PIPELAB_ASSIGN_OR_RETURN(const StepStages stages, cache.StagesOf(config, /*stages=*/16));
//   stages.costs->stages[0].forward;        // of one micro-batch on one rank
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, PredictStep(&cache, config));  // step.h
//
// Nothing in it depends on what was asked before. Pointers are valid as long as the cache, except
// those of ScheduleOf.
#ifndef PIPELAB_PIPELINES_STEP_STEP_CACHE_H_
#define PIPELAB_PIPELINES_STEP_STEP_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_memo.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/step/divided_vocabulary.h"
#include "pipelines/step/expert_exchange.h"
#include "pipelines/step/layer_time_memo.h"
#include "pipelines/step/local_stages.h"
#include "pipelines/step/stage_cut.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"
#include "tools/base/units.h"

namespace pipelab {

// A model cut into stages (stage_cut.h).
struct StepStages {
  const ModelPartition* partition = nullptr;
  const std::vector<Tie>* ties = nullptr;
  // The costs of one rank of a tensor-parallel group, for whole micro-batches of one copy. Without
  // links.
  const CostTable* costs = nullptr;
  // For stages that learn locally: the model that the partition and the costs are of.
  const GroupedModel* with_heads = nullptr;
};

// A schedule of one copy that the caller made, and what no configuration says.
struct OwnSchedule {
  Schedule schedule;
  std::vector<int64_t> slices = {};  // tokens of each slice; empty: as ChooseSlices has them
  // Each stage also waits for the one before it, whether it takes something from it or not, as
  // sequential pipelines have it.
  bool chained = false;
};

class StepCache {
 public:
  // Keeps a copy; what the model points to must outlive the cache.
  explicit StepCache(const StepModel& model) : model_(model) {}
  StepCache(const StepCache&) = delete;
  StepCache& operator=(const StepCache&) = delete;

  using StateKey = std::tuple<int64_t, int64_t, bool>;
  // Costs of a unit depend on the sizes of its layers, whether it is one layer, the state of a
  // parameter, recomputation where stages cost something else, and its modules.
  using SizeKey = std::tuple<LayerSizes, bool, StateKey, Recompute, std::string>;
  static SizeKey SizeOf(const StepConfig& c) {
    return {LayerSizesOf(c), c.cut == CutRule::kLayers,
            StateKey(c.state.weights, c.state.gradients, c.state.cast),
            c.recompute == Recompute::kFull ? Recompute::kNone : c.recompute, c.modules};
  }

  const StepModel& model() const { return model_; }
  // The cache of the model that the configuration cuts: this one, or that of the model with its
  // vocabulary divided, which has the functions below for such configurations. InvalidArgument:
  // CheckVocabularyParts, DivideVocabulary.
  absl::StatusOr<StepCache*> CacheOf(const StepConfig& config);
  // With the graph that the configuration computes: attention's core, or modules, recomputed or
  // not. InvalidArgument where no layer keeps attention's scores, or for modules of other kernels
  // than Megatron-LM's.
  absl::StatusOr<const StepModel*> ModelOf(const StepConfig& config);

  // FirstAlike of a model that ModelOf gives.
  const std::vector<int>& AlikeOf(const GroupedModel& model);
  // The sum of all layers' passes, of one micro-batch. Needs a cluster.
  absl::StatusOr<Nanoseconds> WorkOf(const StepConfig& config);
  // [unit] UnitTimes of stage_cut.h.
  absl::StatusOr<const std::vector<UnitTime>*> UnitTimesOf(const StepConfig& config);
  // Whether every unit is in one stage of the configuration's layout.
  absl::StatusOr<bool> LayoutHasWholeUnits(const StepConfig& config) const;
  // [stage] Its number of units: those of the layout, if there is one and it has whole units, else
  // CutUnits of stage_cut.h. Equal ones are in one place.
  absl::StatusOr<const std::vector<int>*> UnitsOf(const StepConfig& config, int stages);
  // The partition of the model without heads.
  absl::StatusOr<const ModelPartition*> PartitionOf(const StepConfig& config, int stages);
  // `slices`: tokens of each slice of a sample; empty: whole samples.
  absl::StatusOr<StepStages> StagesOf(const StepConfig& config, int stages,
                                      const std::vector<int64_t>& slices = {});
  // The configuration with the sizes of its schedule's file, if it has one.
  absl::StatusOr<StepConfig> SizedConfig(const StepConfig& config);
  // The schedule of one copy, with stages in a chain: a device for each of config.pipeline. Of a
  // file, the file's. Holds until the next call. Errors are MakeSchedule's, and the file's.
  absl::StatusOr<const Schedule*> ScheduleOf(const StepConfig& config);
  // Whether it is made for its passes' times.
  static bool ChoosesOrder(const StepConfig& config);
  // Limits to such a schedule.
  struct Limits {
    std::vector<Bytes> free;  // [device] for activations
    Nanoseconds too_long;     // without what comes after its actions; 0: none is
  };
  // ResourceExhausted or OutOfRange where it is beyond them, mostly before it is made.
  absl::StatusOr<const Schedule*> ScheduleWithin(const StepConfig& config, const Limits& limits);
  // The same stages on the same devices, though not always in that order: of few micro-batches, and
  // for equal times.
  absl::StatusOr<const Schedule*> PlacementOf(const StepConfig& config);
  // Whether backwards may have parts in the configuration's schedules, of which this is one.
  bool SplitsBackwards(const StepConfig& config, const Schedule& schedule) const;
  // True where a split backward runs the head's weight part with its input part.
  absl::StatusOr<bool> LeavesHeadWhole(const StepConfig& config);
  // The same of a scheme of the catalogue whose head and vocabulary nobody asked to split.
  static bool SchemeLeavesHeadWhole(absl::string_view scheme);
  // No order that a scheme makes for its passes' times takes longer, with messages that nothing
  // delays; none where that is not known.
  absl::StatusOr<absl::optional<Nanoseconds>> LongestOrder(const StepConfig& config);
  // For configurations whose scheme is `name`.
  void AddSchedule(const std::string& name, OwnSchedule own) { own_[name] = std::move(own); }
  // Null: the scheme is the catalogue's, or a file.
  const OwnSchedule* OwnOf(const std::string& name) const {
    const auto found = own_.find(name);
    return found == own_.end() ? nullptr : &found->second;
  }
  bool HasSchedule(const std::string& name) const { return OwnOf(name) != nullptr; }
  // The flops of a step of `samples`: products of forward and, in training, backward.
  Flops ModelFlops(int64_t samples, bool forward_only = false);

 private:
  struct Cut {
    ModelPartition partition;
    std::vector<Tie> ties;
    absl::optional<LocalStages> local;
  };

  // The cache for a number of parts and of barriers.
  struct Divided {
    DividedVocabulary of;
    std::unique_ptr<StepCache> cache;
  };

  // The rule of a cut, recomputation, whether it is of all blocks, and M where the rule looks at
  // it.
  using CutKey = std::tuple<CutRule, Recompute, bool, int>;
  static CutKey CutKeyOf(const StepConfig& c) {
    return {c.cut, c.recompute, c.recomputes_forwards(),
            c.cut == CutRule::kMemory ? c.micro_batches : 0};
  }

  struct Made {
    Schedule schedule;
    int64_t asked = 0;  // for the last time: a number that rises
  };

  // Heads are of stages that learn locally, where the model has none of its own.
  absl::StatusOr<StageLearning> LearningOf(const StepConfig& config);
  absl::StatusOr<std::vector<int>> CutOrLayout(const StepConfig& config, int stages,
                                               const StageLearning& learning);
  absl::StatusOr<const std::vector<int>*> UnitsByKey(const StepConfig& config, int stages);
  absl::StatusOr<const Cut*> CutOf(const StepConfig& config, int stages);
  absl::StatusOr<const Schedule*> ScheduleOf(const StepConfig& config, bool timed,
                                             const Limits* limits = nullptr);
  absl::StatusOr<SchemeParams> TimedSizes(const StepConfig& config, const Limits* limits);
  Made* Keep(const std::string& key, Schedule schedule);
  absl::StatusOr<PassTimes> PassTimesOf(const StepConfig& config);
  void DropOldSchedules();

  LayerTimeMemo& LayerTimesOf(const GroupedModel& model);
  // TensorGroupOf.
  TensorGroup GroupOf(const StepConfig& config);
  // [layer of the user's model] Its stage, of either kind of layout.
  absl::StatusOr<std::vector<int>> StagesOfLayout(const StepConfig& config) const;

  const StepModel model_;
  // For a divided vocabulary: it and the whole model, which layouts name the layers of.
  const DividedVocabulary* divided_ = nullptr;
  const ModelGraph* whole_ = nullptr;
  std::map<std::pair<int, int>, Divided> divided_by_;  // by parts, barriers
  struct Selective {
    GroupedModel graph;
    StepModel model;
  };
  std::map<std::string, Selective> selective_;  // by modules, made when they are asked for
  absl::node_hash_map<SizeKey, std::vector<UnitTime>> unit_times_;
  absl::node_hash_map<SizeKey, StageCostMemo> stage_costs_;
  std::map<const GroupedModel*, std::vector<int>> alike_;  // FirstAlike
  std::map<const GroupedModel*, LayerTimeMemo> layer_times_;
  // By T, C and where the devices are that divide experts.
  std::map<std::tuple<int, int, bool, ExpertKey>, TensorGroup> groups_;
  // By T, C where pipelines lie apart, and the same.
  std::map<std::tuple<int, int, ExpertKey>, PathCost> expert_paths_;
  // By size, what the cut depends on besides, whether forwards alone count.
  absl::node_hash_map<std::tuple<SizeKey, CutKey, bool>, std::vector<double>> unit_costs_;
  // By the same, stages, heads, layout.
  absl::flat_hash_map<std::tuple<SizeKey, CutKey, int, StageLearning, std::string>,
                      const std::vector<int>*>
      units_;
  absl::node_hash_set<std::vector<int>> known_units_;
  // By the stage of each layer, what backwards rebuild, of how many devices, local heads, and
  // whether the head is whole.
  std::map<
      std::tuple<std::vector<int>, Recompute, RebuiltPart, int, absl::optional<LocalHead>, bool>,
      Cut>
      cuts_;
  // By size, the cut (they stay where they are), tokens of slices.
  absl::node_hash_map<std::tuple<SizeKey, const Cut*, std::vector<int64_t>>, CostTable> costs_;
  std::map<std::string, Made> schedules_;
  // ScheduleWithin: [device] free memory that has turned out to be too little, the last.
  std::map<std::string, std::vector<Bytes>> too_little_;
  std::map<std::string, OwnSchedule> own_;
  int64_t cached_actions_ = 0, asked_ = 0;
  std::map<std::string, Nanoseconds> longest_;       // LongestOrder, by timed schedule
  std::map<std::pair<int64_t, bool>, Flops> flops_;  // by samples, forward only
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_STEP_CACHE_H_
