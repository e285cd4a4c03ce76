#include "pipelines/checker/check_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "pipelines/checker/check_batch_time.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

class Rules {
 public:
  explicit Rules(const PlanView& view) : view_(view) {}

  absl::StatusOr<PlanNeeds> Check() {
    PIPELAB_RETURN_IF_ERROR(CheckOrder());
    PIPELAB_RETURN_IF_ERROR(CheckDevices());
    PIPELAB_RETURN_IF_ERROR(CheckMemory());
    return needs_;
  }

 private:
  absl::Status CheckOrder() const {
    // Where all edges go to later stages, none goes back to a stage or closes a cycle of them.
    const bool ascends = std::all_of(p_.edges.begin(), p_.edges.end(), [&](const PlanEdge& edge) {
      return !view_.Orders(edge) || stage_of_[edge.from] <= stage_of_[edge.to];
    });
    if (ascends) return absl::OkStatus();
    for (int s = 0; s < view_.num_stages(); ++s) PIPELAB_RETURN_IF_ERROR(CheckConvex(s));
    // What is in flight and what goes over a cut follows from the stages' order, if the plan does
    // not say it.
    for (const PlanEdge& edge : p_.edges) {
      const int from = stage_of_[edge.from], to = stage_of_[edge.to];
      if (!view_.Orders(edge) || from <= to || IsGraphObjective(plan_.objective)) continue;
      return PlanError("stage ", from, ": its layer ", view_.Id(edge.from), " feeds layer ",
                       view_.Id(edge.to), " of stage ", to, ", which is listed before it");
    }
    // Stages without an unchecked predecessor, one after the other.
    std::set<std::pair<int, int>> edges;
    for (const PlanEdge& edge : p_.edges) {
      if (view_.Orders(edge) && stage_of_[edge.from] != stage_of_[edge.to]) {
        edges.emplace(stage_of_[edge.from], stage_of_[edge.to]);
      }
    }
    std::set<int> left;
    for (int s = 0; s < view_.num_stages(); ++s) left.insert(s);
    while (!left.empty()) {
      const auto free = std::find_if(left.begin(), left.end(), [&](int s) {
        return std::none_of(edges.begin(), edges.end(),
                            [&](const auto& e) { return e.second == s && left.count(e.first); });
      });
      if (free == left.end()) {
        return PlanError("the stages feed one another in a cycle: stage ", *left.begin(),
                         " is one of them");
      }
      left.erase(free);
    }
    return absl::OkStatus();
  }

  // No way from a layer of the stage through another stage and back.
  absl::Status CheckConvex(int s) const {
    std::vector<int> via(p_.size(), -1);  // the edge by which it was reached from outside
    std::vector<int> todo;
    for (int v : plan_.stages[s].layers) todo.push_back(v);
    while (!todo.empty()) {
      const int v = todo.back();
      todo.pop_back();
      for (int e : p_.operators[v].out_edges) {
        const PlanEdge& edge = p_.edges[e];
        if (!view_.Orders(edge)) continue;
        if (stage_of_[edge.to] == s) {
          if (stage_of_[v] != s) {
            return PlanError("stage ", s, ": not convex: its layers reach layer ",
                             view_.Id(edge.to), " through layer ", view_.Id(v), " of stage ",
                             stage_of_[v]);
          }
        } else if (via[edge.to] < 0) {
          via[edge.to] = e;
          todo.push_back(edge.to);
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckDevices() {
    int64_t processors = 0, copies = 0;
    for (int s = 0; s < view_.num_stages(); ++s) {
      const PlanStage& stage = plan_.stages[s];
      if (stage.data < 1 || stage.tensor < 1) {
        return PlanError("stage ", s, ": ", stage.data, " copies of tensor degree ", stage.tensor);
      }
      if (stage.on_processor) {
        ++processors;
      } else {
        needs_.devices += stage.data * stage.tensor;
      }
      copies += stage.data;
      if (plan_.objective == PlanObjective::kStageTime && p_.micro_batches % stage.data != 0) {
        return PlanError("stage ", s, ": ", stage.data, " copies do not divide ", p_.micro_batches,
                         " micro-batches");
      }
      if (IsGraphObjective(plan_.objective) &&
          (BatchSamples(p_) % view_.Samples(s) != 0 || view_.Samples(s) % stage.data != 0)) {
        return PlanError("stage ", s, ": ", stage.data, " copies of micro-batches of ",
                         view_.Samples(s), " samples do not divide a batch of ", BatchSamples(p_));
      }
      if (plan_.objective == PlanObjective::kMaxLoad) {
        if (stage.data * stage.tensor != 1) return PlanError("stage ", s, ": more than one device");
        for (int v : stage.layers) {
          if (!stage.on_processor && !p_.operators[v].on_accelerator) {
            return PlanError("stage ", s, ": layer ", view_.Id(v), " runs on a processor alone");
          }
        }
      }
    }
    if (needs_.devices > p_.devices) {
      return PlanError("the stages have ", needs_.devices, " devices, the machine ", p_.devices);
    }
    if (processors > p_.processors) {
      return PlanError("the stages have ", processors, " processors, the machine ", p_.processors);
    }
    // Piper divides a batch among all copies. A chain of single devices needs no such share.
    const bool divides = copies > static_cast<int64_t>(plan_.stages.size());
    if (plan_.objective == PlanObjective::kStageTime && divides && copies > p_.micro_batches) {
      return PlanError("the stages have ", copies, " copies in all, but a batch only ",
                       p_.micro_batches, " micro-batches");
    }
    return absl::OkStatus();
  }

  // Micro-batches that a device of the stage keeps. In a sequence, as many as there are copies
  // behind it, itself included, divided among its own. In a graph of stages, what the longest path
  // behind it keeps in samples, and one of its own; a plan may say a larger number.
  absl::StatusOr<int64_t> InFlight(int s) {
    const PlanStage& stage = plan_.stages[s];
    if (IsBatchTime(plan_.objective)) {
      const int64_t least = BatchInFlight(p_, plan_, s);
      if (stage.in_flight == 0 || stage.in_flight >= least) {
        return std::max(stage.in_flight, least);
      }
      return PlanError("stage ", s, ": ", stage.in_flight,
                       " micro-batches in flight; its schedule has ", least);
    }
    if (plan_.objective == PlanObjective::kSliceTime) return p_.micro_batches;
    if (!IsGraphObjective(plan_.objective) && stage.in_flight == 0) {
      int64_t behind = 0;
      for (int later = s; later < view_.num_stages(); ++later) behind += plan_.stages[later].data;
      return (behind + stage.data - 1) / stage.data;
    }
    const int64_t own = view_.Samples(s), least = (SamplesBehind(s) + own - 1) / own;
    if (stage.in_flight == 0 || stage.in_flight >= least) {
      return std::max(stage.in_flight, least);
    }
    return PlanError("stage ", s, ": ", stage.in_flight,
                     " micro-batches in flight, but the stages behind it need ", least);
  }
  // On the longest path from the stage on, itself included. The stages have no cycle.
  int64_t SamplesBehind(int s) {
    const auto known = samples_behind_.find(s);
    if (known != samples_behind_.end()) return known->second;
    int64_t most = 0;
    for (int v : plan_.stages[s].layers) {
      for (int e : p_.operators[v].out_edges) {
        const PlanEdge& edge = p_.edges[e];
        if (stage_of_[edge.to] == s || !view_.Orders(edge)) continue;
        most = std::max(most, SamplesBehind(stage_of_[edge.to]));
      }
    }
    return samples_behind_[s] = most + view_.Samples(s);
  }

  absl::Status CheckMemory() {
    for (int s = 0; s < view_.num_stages(); ++s) {
      double each = 0, fixed = 0;
      for (int v : plan_.stages[s].layers) {
        each += view_.variant[v]->in_flight_bytes;
        fixed += view_.variant[v]->fixed_bytes;
      }
      PIPELAB_ASSIGN_OR_RETURN(const int64_t in_flight, InFlight(s));
      const double bytes =
          plan_.stages[s].on_processor
              ? 0
              : each * view_.PartOfCopy(s) * static_cast<double>(in_flight) + fixed;
      needs_.stage_bytes.push_back(bytes);
      if (bytes > p_.memory_bytes * (1 + kSumTolerance)) {
        return PlanError("stage ", s, ": a device needs ", bytes, " bytes of the ", p_.memory_bytes,
                         " that it has");
      }
    }
    return absl::OkStatus();
  }

  const PlanView& view_;
  const PlanProblem& p_ = view_.problem;
  const Plan& plan_ = view_.plan;
  const std::vector<int>& stage_of_ = view_.stage_of;
  std::map<int, int64_t> samples_behind_;  // [stage]
  PlanNeeds needs_;
};

}  // namespace

absl::StatusOr<PlanNeeds> CheckRules(const PlanView& view) { return Rules(view).Check(); }

}  // namespace pipelab
