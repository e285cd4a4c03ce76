// What a set of operators costs as a stage, for planners that try very many of them: sums are taken
// once, and an answer takes a few instructions where nothing has to be chosen.
//
//   OperatorSets sets(problem, 0);                // FinishProblem has been called
//   OperatorSet set = sets.Make({3, 4, 5});
//   sets.Add(6, &set);                            // grows by one, at the cost of its edges
//   sets.Time(&set, {.data = 4, .size = 0}, 3);   // with 3 micro-batches in flight
//
// GraphPipe's stage time (kGraphStageTime), of `problem.micro_batch_size` samples; tensor-parallel
// degree 1. Where operators have several variants, those with the least time that fit in memory are
// taken (select_variants.h).
#ifndef PIPELAB_PIPELINES_PLANNERS_OPERATOR_SETS_H_
#define PIPELAB_PIPELINES_PLANNERS_OPERATOR_SETS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/planners/select_variants.h"

namespace pipelab {

struct StageShape {
  int64_t data = 1;
  int size = 0;  // which of the sizes of micro-batches
};

// Ways to run the operators of a set, and the stage's time; infinity: they do not fit in memory.
struct StageChoice {
  double time = 0;
  std::vector<int> variants;
};

struct OperatorSet {
  std::vector<int> operators;
  std::vector<bool> has;  // [operator of the problem]
  // The least of each, over each operator's variants. [place of a copy's samples], of the problem's
  // samples; bytes.
  std::vector<double> times;
  int boundary_edges = 0;
  double boundary = 0, parameters = 0, in_flight = 0, fixed = 0;
  bool choice = false;  // some operator has several variants
  // Where each operator has a variant that is the least in all but memory: the bytes of these.
  bool has_fastest = true;
  double fastest_in_flight = 0, fastest_fixed = 0;
  // Operators whose second variant saves memory for time, and nothing else.
  std::vector<int> savers;
  bool simple = true;                                    // no other operator has several variants
  std::map<std::array<int64_t, 3>, StageChoice> chosen;  // [data, size, in flight]
};

class OperatorSets {
 public:
  // `micro_batch_size`: of each stage, 0 for any of problem.micro_batch_sizes; where these are
  // empty every copy has problem.micro_batch_size.
  OperatorSets(const PlanProblem& problem, int64_t micro_batch_size);

  const PlanProblem& problem() const { return problem_; }
  int num_sizes() const { return std::max(1, static_cast<int>(sizes_.size())); }
  // Samples of the stage's micro-batch.
  int64_t SamplesOf(StageShape shape) const {
    return sizes_.empty() ? shape.data * problem_.micro_batch_size : sizes_[shape.size];
  }
  // Whether the copies divide a micro-batch, and micro-batches a batch.
  bool Allows(StageShape shape) const {
    return batch_ % SamplesOf(shape) == 0 && SamplesOf(shape) % shape.data == 0;
  }
  // Whether a stage may have micro-batches of so many samples, over all copies.
  bool AllowsSize(int64_t samples) const {
    return sizes_.empty() || std::find(sizes_.begin(), sizes_.end(), samples) != sizes_.end();
  }
  // All shapes that are allowed, those of fewer copies first. Copies of a machine with several
  // network levels are powers of two, which fill its units.
  const std::vector<StageShape>& shapes() const { return shapes_; }

  OperatorSet Make(const std::vector<int>& operators) const;
  // An operator that is not in the set.
  void Add(int v, OperatorSet* set) const;

  // Not above the operator's time in any shape on one device.
  double LeastWork(int v) const;
  // Not above the time of any shape on so many devices.
  double LeastTime(const OperatorSet& set, int64_t devices) const;
  // Not above the time of this shape, whatever is chosen.
  double TimeBound(const OperatorSet& set, StageShape shape) const;
  // Whether it fits in memory in some shape, with one micro-batch in flight.
  bool FitsAlone(const OperatorSet& set) const {
    return set.in_flight * least_scale_ + set.fixed <= problem_.memory_bytes;
  }
  // Infinity where it does not fit in memory.
  double Time(OperatorSet* set, StageShape shape, int64_t in_flight) const;
  // Not below that: variants greedily by time a byte, where that is a choice between two.
  double QuickTime(OperatorSet* set, StageShape shape, int64_t in_flight) const;
  StageChoice Choose(const OperatorSet& set, StageShape shape, int64_t in_flight) const;
  // The set as a stage of a plan, with the variants that `Choose` takes: they must fit.
  PlanStage StageOf(const OperatorSet& set, StageShape shape, int64_t in_flight) const;

 private:
  // The figures of one operator, each the least over its variants.
  struct OperatorCost {
    std::vector<double> times;                // [place]
    std::vector<double> in_bytes, out_bytes;  // [its edge] over a stage's border
    double parameters = 0, in_flight = 0, fixed = 0;
    bool choice = false, has_fastest = false;
    double fastest_in_flight = 0, fastest_fixed = 0;
    bool saver = false;               // OperatorSet::savers
    std::vector<double> saver_times;  // [place] more
    double saved_in_flight = 0, saved_fixed = 0;
  };

  double CopySamples(StageShape shape) const {
    return static_cast<double>(SamplesOf(shape)) / static_cast<double>(shape.data);
  }
  // What in-flight bytes are multiplied with.
  double CopyScale(StageShape shape) const {
    return CopySamples(shape) / static_cast<double>(problem_.micro_batch_size);
  }
  int Place(StageShape shape) const { return places_[shape.size][shape.data]; }
  // Whether so much fits in memory.
  bool Fits(double in_flight_bytes, double fixed, StageShape shape, int64_t in_flight) const {
    return in_flight_bytes * CopyScale(shape) * static_cast<double>(in_flight) + fixed <=
           problem_.memory_bytes;
  }
  void MakeShapes();
  OperatorCost CostOf(const PlanOperator& o) const;
  void AddSaver(const std::vector<PlanVariant>& variants, OperatorCost* cost) const;
  double CommunicationTime(double bytes, int edges, double parameters, StageShape shape) const;
  double VariantTime(const PlanVariant& variant, double samples) const;
  // The costs of the variants of operator v of the set, in their order.
  std::vector<VariantCost> VariantCostsOf(const OperatorSet& set, int v, StageShape shape,
                                          int64_t in_flight) const;

  const PlanProblem& problem_;
  const double bandwidth_;
  std::vector<double> copies_bandwidth_;  // [copies] that their gradients are summed at
  std::vector<int64_t> sizes_;            // of a stage's micro-batch, in samples
  std::vector<StageShape> shapes_;
  std::vector<std::vector<int>> places_;   // [size][copies]
  std::vector<double> copy_samples_;       // [place]
  std::vector<OperatorCost> costs_;        // [operator]
  std::vector<int> in_place_, out_place_;  // [edge] among its taker's and its maker's
  int64_t batch_ = 1;
  double least_scale_ = std::numeric_limits<double>::infinity();  // of CopyScale
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_OPERATOR_SETS_H_
