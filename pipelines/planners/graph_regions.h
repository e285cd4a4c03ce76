// A problem's operators as regions: a region is a series of elements, each an operator or regions
// side by side (branches). Regions that cost the same are of one type, so that a planner works out
// each of sixteen equal branches once.
//
//   GraphRegions regions(problem);
//   const Region& all = regions.region(regions.root());
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_REGIONS_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_REGIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipelines/planners/plan_problem.h"
#include "pipelines/planners/series_parallel.h"

namespace pipelab {

struct RegionElement {
  int op = -1;                // or -1
  std::vector<int> branches;  // regions; those of least work first, equal ones side by side
};

struct Region {
  std::vector<RegionElement> elements;
  std::vector<int> operators;  // in the order of the elements
  std::vector<int> begin;      // [element] first place in `operators`, and the end
  int type = 0;
  double work = 0;  // time of one device

  int size() const { return static_cast<int>(elements.size()); }
  // Operators of the elements [first, last).
  std::vector<int> Operators(int first, int last) const {
    return std::vector<int>(operators.begin() + begin[first], operators.begin() + begin[last]);
  }
};

class GraphRegions {
 public:
  explicit GraphRegions(const PlanProblem& problem);

  int root() const { return root_; }
  const Region& region(int r) const { return regions_[r]; }
  // A region of the type, the same for all.
  const Region& OfType(int type) const { return regions_[representatives_[type]]; }
  int num_types() const { return static_cast<int>(representatives_.size()); }
  // Pairs of operators that got an order; 0: the graph is series-parallel.
  int64_t added_orders() const { return added_orders_; }

 private:
  int Add(const SeriesParallelNode& node);
  RegionElement ElementOf(const SeriesParallelNode& node);
  std::string Signature(const Region& region) const;
  std::string Shape(const Region& region) const;

  const PlanProblem& problem_;
  std::vector<Region> regions_;
  std::vector<int> representatives_;  // [type] region
  std::map<std::string, int> types_;
  int root_ = 0;
  int64_t added_orders_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_REGIONS_H_
