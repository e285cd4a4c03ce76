// Plans of a series-parallel graph whose stages all take at most a given time: GraphPipe's dynamic
// program. It asks for the fewest samples in flight at the sources.
//
//   BoundedPlans plans(regions, &sets);
//   std::vector<PlanStage> stages;
//   plans.Find(0.004, deadline, &stages);   // empty: no plan of the kind below
//
// The kind of plan, in terms of the regions (graph_regions.h). A stage is
//   - a run of whole elements of one region; or
//   - such a run with some branches' ends before it, where the element before is branches: at most
//     one branch in part, and of the others the m with the least work whole; or with some branches'
//     beginnings after it, likewise; where both, one branch on each side; or
//   - some neighbouring branches (what is left of them), whole, without what is before and after.
// Branches that share no stage are planned on their own, down to their own branches.
//
// A region's table goes from its sink to its source. It is made for what is in flight behind it,
// `samples`, since nothing else of the rest matters: more in flight behind never helps. Each entry
// is a list of undominated pairs (devices, samples in flight at the front); branches side by side
// add devices and take the larger samples.
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPHPIPE_BOUND_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPHPIPE_BOUND_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/graph_regions.h"
#include "pipelines/planners/operator_sets.h"
#include "pipelines/planners/plan.h"

namespace pipelab {

class BoundedPlans {
 public:
  BoundedPlans(const GraphRegions& regions, const OperatorSets* sets);

  // False: the deadline came first. Of plans with the bound, one with the fewest samples in flight
  // at its sources; no stages where there is none. Micro-batches in flight are not filled in.
  bool Find(double bound, absl::Time deadline, std::vector<PlanStage>* stages);

 private:
  struct Step;
  // So many devices make so many samples in flight, and how.
  struct Label {
    int64_t devices = 0, samples = 0;
    const Step* step = nullptr;
  };
  using Frontier = std::vector<Label>;  // ascending devices, descending samples
  // A stage, or branches side by side: each the steps of its own region, or with others a stage.
  struct Part {
    int region = -1;
    const Step* step = nullptr;
    OperatorSet* set = nullptr;
    StageShape shape;
    int64_t in_flight = 0;
  };
  struct Step {
    std::vector<Part> parts;
    const Step* next = nullptr;  // toward the sink
  };
  // What a neighbouring stage takes of an element's branches.
  struct Taken {
    std::vector<int> first, last;  // [branch] elements that are left
    std::vector<int> operators;
    bool several = false;
  };
  struct Sides {
    std::vector<Taken> tails, heads;  // the first of each takes nothing
  };
  // What is left of an element's branches between two neighbouring stages.
  struct Branches {
    const std::vector<int>* regions;  // [branch]
    const Taken *tail, *head;         // by the stages before and after
    std::vector<int> places;          // branches of which something is left
    std::vector<int> key;             // of group_sets_
  };
  struct Table {
    std::vector<Frontier> at;                            // [element]: those from it on are planned
    std::map<std::pair<int, int>, Frontier> tail, head;  // (element, of Sides)
  };

  const Sides& SidesOf(int type, int element);
  Taken TakenOf(const Region& region, int element, int part, int cut, int whole, bool tail) const;
  OperatorSet* RunSet(int type, int first, int last, int tail, int head);
  const Table& TableOf(int type, int last, int64_t samples);
  // A stage of elements [first, `last`) before those that `from` has planned, with the head of the
  // element `last` or not, and all the tails that it may take.
  void AddStages(int type, int last, int head, const Frontier& from, Table* table);
  bool AddStage(OperatorSet* set, const Frontier& from, Frontier* to);
  // Branches, less what the stages beside them take.
  void AddBranches(int type, int element, Table* table);
  const Frontier& BranchesOf(int type, int element, int tail, int head, int64_t samples);
  Frontier BranchAlone(const Branches& left, size_t place, int64_t samples);
  // Those at the places [begin, end) as one stage.
  Frontier BranchesTogether(const Branches& left, size_t begin, size_t end, int64_t samples);
  // `group` side by side with what `from` has.
  void AddBeside(const Frontier& group, const Frontier& from, Frontier* to);

  static bool Dominated(const Frontier& frontier, int64_t devices, int64_t samples);
  static void Insert(Frontier* frontier, Label label);
  const Step* Keep(Step step);
  void Collect(const Step* step, const std::vector<int>& meant,
               std::vector<PlanStage>* stages) const;
  PlanStage StageOf(const Part& part, const std::vector<int>& meant) const;
  bool Stopped();

  const GraphRegions& regions_;
  const OperatorSets& sets_;
  // For all bounds.
  std::map<std::pair<int, int>, Sides> sides_;
  std::map<std::vector<int>, std::unique_ptr<OperatorSet>> run_sets_, group_sets_;
  // For one bound.
  double bound_ = 0;
  absl::Time deadline_;
  bool stopped_ = false;
  int64_t ticks_ = 0;
  std::map<std::vector<int64_t>, Table> tables_;
  std::map<std::vector<int64_t>, Frontier> branches_;
  std::deque<Step> steps_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPHPIPE_BOUND_H_
