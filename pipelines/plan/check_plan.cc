#include "pipelines/plan/check_plan.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/plan/check_batch_time.h"
#include "pipelines/plan/check_slices.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kSame = 1e-9;  // relative, of sums of doubles in another order
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Checker {
 public:
  Checker(const PlanProblem& problem, const Plan& plan) : p_(problem), plan_(plan) {}

  absl::StatusOr<PlanReport> Evaluate() {
    if (!plan_.has_plan()) return Error("the plan has no stages");
    PIPELAB_RETURN_IF_ERROR(CheckCoverage());
    PIPELAB_RETURN_IF_ERROR(CheckOrder());
    PIPELAB_RETURN_IF_ERROR(CheckDevices());
    PIPELAB_RETURN_IF_ERROR(CheckMemory());
    if (IsBatchTime(plan_.objective)) {
      PIPELAB_ASSIGN_OR_RETURN(BatchTimeFigures figures, CheckBatchTime(p_, plan_));
      report_.value = report_.step_time = figures.value;
      report_.work_bound = figures.work_bound;
      report_.stage_times = std::move(figures.stage_times);
      return report_;
    }
    if (plan_.objective == PlanObjective::kSliceTime) {
      PIPELAB_ASSIGN_OR_RETURN(report_.value, CheckSlices(p_, plan_));
      report_.step_time = report_.value;
      for (int s = 0; s < num_stages(); ++s) report_.stage_times.push_back(Compute(s));
      return report_;
    }
    ComputeValue();
    ComputeBounds();
    ComputeStep();
    return report_;
  }

  absl::Status CheckFigures() const {
    const double scale = std::max(report_.value, 1e-300);
    if (!(std::abs(plan_.value - report_.value) <= kSame * scale)) {
      return Error("the plan says ", plan_.value, " for its ", PlanObjectiveName(plan_.objective),
                   ", which is ", report_.value);
    }
    if (plan_.lower_bound > report_.value * (1 + kSame)) {
      return Error("the plan says that nothing is below ", plan_.lower_bound, ", but it is ",
                   report_.value, " itself");
    }
    if (report_.bound() > report_.value * (1 + kSame)) {
      return Error("the value ", report_.value, " is below the bound ", report_.bound());
    }
    return absl::OkStatus();
  }

 private:
  template <typename... Parts>
  static absl::Status Error(const Parts&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  }
  int num_stages() const { return static_cast<int>(plan_.stages.size()); }
  const std::string& Id(int v) const { return p_.operators[v].id; }
  // How a layer is run.
  const PlanVariant& Way(int v) const { return *way_[v]; }

  absl::Status CheckCoverage() {
    stage_of_.assign(p_.size(), -1);
    way_.assign(p_.size(), nullptr);
    for (int s = 0; s < num_stages(); ++s) {
      const PlanStage& stage = plan_.stages[s];
      if (stage.layers.empty()) return Error("stage ", s, ": without layers");
      if (stage.variants.size() != stage.layers.size()) {
        return Error("stage ", s, ": ", stage.variants.size(), " variants for ",
                     stage.layers.size(), " layers");
      }
      for (size_t i = 0; i < stage.layers.size(); ++i) {
        const int v = stage.layers[i];
        if (v < 0 || v >= p_.size()) return Error("stage ", s, ": there is no layer ", v);
        if (stage_of_[v] >= 0) {
          return Error("layer ", Id(v), " is in stage ", stage_of_[v], " and in stage ", s);
        }
        stage_of_[v] = s;
        const auto menu = p_.operators[v].menu.find(stage.tensor);
        if (menu == p_.operators[v].menu.end()) {
          return Error("stage ", s, ": layer ", Id(v), " cannot be run with tensor degree ",
                       stage.tensor);
        }
        if (stage.variants[i] < 0 || stage.variants[i] >= static_cast<int>(menu->second.size())) {
          return Error("stage ", s, ": layer ", Id(v), " has no variant ", stage.variants[i]);
        }
        way_[v] = &menu->second[stage.variants[i]];
      }
    }
    for (int v = 0; v < p_.size(); ++v) {
      if (stage_of_[v] < 0) return Error("layer ", Id(v), " is in no stage");
    }
    std::map<int, int> colours;
    for (int v = 0; v < p_.size(); ++v) {
      if (p_.operators[v].colour < 0) continue;
      const auto added = colours.emplace(p_.operators[v].colour, v);
      const int other = added.first->second;
      if (stage_of_[other] != stage_of_[v]) {
        return Error("layers ", Id(other), " and ", Id(v),
                     " must share a device, but are in stages ", stage_of_[other], " and ",
                     stage_of_[v]);
      }
    }
    return absl::OkStatus();
  }

  // Whether the edge orders stages: a training graph's backward runs in its own, opposite order.
  bool Orders(const PlanEdge& edge) const {
    return !p_.operators[edge.from].is_backward && !p_.operators[edge.to].is_backward;
  }

  absl::Status CheckOrder() const {
    for (int s = 0; s < num_stages(); ++s) PIPELAB_RETURN_IF_ERROR(CheckConvex(s));
    // What is in flight and what goes over a cut follows from the stages' order, if the plan does
    // not say it.
    for (const PlanEdge& edge : p_.edges) {
      const int from = stage_of_[edge.from], to = stage_of_[edge.to];
      if (!Orders(edge) || from <= to || IsGraphObjective(plan_.objective)) continue;
      return Error("stage ", from, ": its layer ", Id(edge.from), " feeds layer ", Id(edge.to),
                   " of stage ", to, ", which is listed before it");
    }
    // Stages without an unchecked predecessor, one after the other.
    std::set<std::pair<int, int>> edges;
    for (const PlanEdge& edge : p_.edges) {
      if (Orders(edge) && stage_of_[edge.from] != stage_of_[edge.to]) {
        edges.emplace(stage_of_[edge.from], stage_of_[edge.to]);
      }
    }
    std::set<int> left;
    for (int s = 0; s < num_stages(); ++s) left.insert(s);
    while (!left.empty()) {
      const auto free = std::find_if(left.begin(), left.end(), [&](int s) {
        return std::none_of(edges.begin(), edges.end(),
                            [&](const auto& e) { return e.second == s && left.count(e.first); });
      });
      if (free == left.end()) {
        return Error("the stages feed one another in a cycle: stage ", *left.begin(),
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
        if (!Orders(edge)) continue;
        if (stage_of_[edge.to] == s) {
          if (stage_of_[v] != s) {
            return Error("stage ", s, ": not convex: its layers reach layer ", Id(edge.to),
                         " through layer ", Id(v), " of stage ", stage_of_[v]);
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
    for (int s = 0; s < num_stages(); ++s) {
      const PlanStage& stage = plan_.stages[s];
      if (stage.data < 1 || stage.tensor < 1) {
        return Error("stage ", s, ": ", stage.data, " copies of tensor degree ", stage.tensor);
      }
      if (stage.on_processor) {
        ++processors;
      } else {
        report_.devices += stage.data * stage.tensor;
      }
      copies += stage.data;
      if (plan_.objective == PlanObjective::kStageTime && p_.micro_batches % stage.data != 0) {
        return Error("stage ", s, ": ", stage.data, " copies do not divide ", p_.micro_batches,
                     " micro-batches");
      }
      if (IsGraphObjective(plan_.objective) &&
          (BatchSamples(p_) % Samples(s) != 0 || Samples(s) % stage.data != 0)) {
        return Error("stage ", s, ": ", stage.data, " copies of micro-batches of ", Samples(s),
                     " samples do not divide a batch of ", BatchSamples(p_));
      }
      if (plan_.objective == PlanObjective::kMaxLoad) {
        if (stage.data * stage.tensor != 1) return Error("stage ", s, ": more than one device");
        for (int v : stage.layers) {
          if (!stage.on_processor && !p_.operators[v].on_accelerator) {
            return Error("stage ", s, ": layer ", Id(v), " runs on a processor alone");
          }
        }
      }
    }
    if (report_.devices > p_.devices) {
      return Error("the stages have ", report_.devices, " devices, the machine ", p_.devices);
    }
    if (processors > p_.processors) {
      return Error("the stages have ", processors, " processors, the machine ", p_.processors);
    }
    if (plan_.objective == PlanObjective::kStageTime && copies > p_.micro_batches) {
      return Error("the stages have ", copies, " copies in all, but a batch only ",
                   p_.micro_batches, " micro-batches");
    }
    return absl::OkStatus();
  }

  // Samples of the stage's micro-batch, over its copies.
  int64_t Samples(int s) const {
    const PlanStage& stage = plan_.stages[s];
    return stage.micro_batch_samples > 0 ? stage.micro_batch_samples : p_.samples * stage.data;
  }
  // What one copy has of it, in micro-batches of the problem.
  double PartOfCopy(int s) const {
    return static_cast<double>(Samples(s)) / static_cast<double>(plan_.stages[s].data * p_.samples);
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
      return Error("stage ", s, ": ", stage.in_flight, " micro-batches in flight; its schedule ",
                   "has ", least);
    }
    if (plan_.objective == PlanObjective::kSliceTime) return p_.micro_batches;
    if (!IsGraphObjective(plan_.objective) && stage.in_flight == 0) {
      int64_t behind = 0;
      for (int later = s; later < num_stages(); ++later) behind += plan_.stages[later].data;
      return (behind + stage.data - 1) / stage.data;
    }
    const int64_t own = Samples(s), least = (SamplesBehind(s) + own - 1) / own;
    if (stage.in_flight == 0 || stage.in_flight >= least) {
      return std::max(stage.in_flight, least);
    }
    return Error("stage ", s, ": ", stage.in_flight, " micro-batches in flight, but the stages ",
                 "behind it need ", least);
  }
  // On the longest path from the stage on, itself included. The stages have no cycle.
  int64_t SamplesBehind(int s) {
    const auto known = samples_behind_.find(s);
    if (known != samples_behind_.end()) return known->second;
    int64_t most = 0;
    for (const PlanEdge& edge : p_.edges) {
      if (stage_of_[edge.from] != s || stage_of_[edge.to] == s || !Orders(edge)) continue;
      most = std::max(most, SamplesBehind(stage_of_[edge.to]));
    }
    return samples_behind_[s] = most + Samples(s);
  }

  absl::Status CheckMemory() {
    for (int s = 0; s < num_stages(); ++s) {
      double each = 0, fixed = 0;
      for (int v : plan_.stages[s].layers) {
        each += Way(v).in_flight_bytes;
        fixed += Way(v).fixed_bytes;
      }
      PIPELAB_ASSIGN_OR_RETURN(const int64_t in_flight, InFlight(s));
      const double bytes = plan_.stages[s].on_processor
                               ? 0
                               : each * PartOfCopy(s) * static_cast<double>(in_flight) + fixed;
      report_.stage_bytes.push_back(bytes);
      if (bytes > p_.memory_bytes * (1 + kSame)) {
        return Error("stage ", s, ": a device needs ", bytes, " bytes of the ", p_.memory_bytes,
                     " that it has");
      }
    }
    return absl::OkStatus();
  }

  double Compute(int s) const {
    double time = 0;
    for (int v : plan_.stages[s].layers) time += Way(v).time;
    if (!IsGraphObjective(plan_.objective) || p_.sample_sizes.empty()) return time;
    // So many runs of a copy's own micro-batch are one of the problem's.
    const double part = PartOfCopy(s);
    time = 0;
    for (int v : plan_.stages[s].layers) {
      time += TimesOfSamples(p_, Way(v), part * static_cast<double>(p_.samples)).time;
    }
    return time / part;
  }
  double Parameters(int s) const {
    double bytes = 0;
    for (int v : plan_.stages[s].layers) bytes += Way(v).parameter_bytes;
    return bytes;
  }

  // Piper: each copy takes its part of the micro-batches; what goes over the stage's border goes
  // forward and back, and tensor parallelism adds to it; gradients are summed once a batch.
  double PiperTime(int s) const {
    double border = 0, edges = 0;
    for (const PlanOperator& o : p_.operators) {
      for (size_t i = 0; i < o.out_edges.size(); ++i) {
        const PlanEdge& edge = p_.edges[o.out_edges[i]];
        if (stage_of_[edge.from] == s && stage_of_[edge.to] != s) {
          border += edge.bytes + Way(edge.from).out_sync[i];
          ++edges;
        }
      }
      for (size_t i = 0; i < o.in_edges.size(); ++i) {
        const PlanEdge& edge = p_.edges[o.in_edges[i]];
        if (stage_of_[edge.to] == s && stage_of_[edge.from] != s) {
          border += edge.bytes + Way(edge.to).in_sync[i];
          ++edges;
        }
      }
    }
    const auto d = static_cast<double>(plan_.stages[s].data);
    const auto n = static_cast<double>(p_.micro_batches);
    const double sums = 4 * (d - 1) * Parameters(s) / (d * n);
    const double bandwidth = p_.bandwidth > 0 ? p_.bandwidth : p_.levels.back().bandwidth;
    double messages = 0, sum_bandwidth = bandwidth;
    if (IsGraphObjective(plan_.objective)) {
      // Copies are on consecutive devices of the smallest units that hold them.
      int64_t unit = 1;
      for (auto level = p_.levels.begin(); level != p_.levels.end(); ++level) {
        unit *= level->devices;
        sum_bandwidth = level->bandwidth;
        if (plan_.stages[s].data <= unit) break;
      }
      messages = 2 * edges * p_.latency * static_cast<double>(p_.samples) /
                 static_cast<double>(Samples(s));
    }
    return Compute(s) / d + 2 * border / d / bandwidth + sums / sum_bandwidth + messages;
  }

  // dnn-partitioning: an output is sent or received once, however many take it.
  double LoadOf(int s) const {
    double load = 0;
    if (plan_.stages[s].on_processor) {
      for (int v : plan_.stages[s].layers) load += p_.operators[v].processor_time;
      return load;
    }
    for (const PlanOperator& o : p_.operators) {
      bool crosses = false;
      for (int e : o.out_edges) {
        const PlanEdge& edge = p_.edges[e];
        crosses |= (stage_of_[edge.from] == s) != (stage_of_[edge.to] == s);
      }
      if (crosses) load += o.transfer_time;
    }
    return load + Compute(s);
  }

  // PipeDream: parts of a level, from the innermost level outwards. Those that together have all
  // machines of a level are one part of the level above.
  struct Part {
    int begin, end;
    double time, parameters;
  };
  double PipeDreamValue() {
    std::vector<Part> parts;
    for (int s = 0; s < num_stages(); ++s) parts.push_back({s, s + 1, Compute(s), Parameters(s)});
    std::vector<PlanLevel> levels = p_.levels;
    if (p_.objective != PlanObjective::kPipeDream) levels = {{p_.devices, p_.bandwidth}};
    for (size_t l = 0; l < levels.size(); ++l) {
      std::vector<Part> above;
      int64_t machines = 0;
      for (const Part& part : parts) {
        const PlanStage& stage = plan_.stages[part.begin];
        const auto m = static_cast<double>(stage.data_of_level.size() > l ? stage.data_of_level[l]
                                                                          : stage.data);
        const bool first = machines == 0;
        double sync = 4 * (m - 1) * part.parameters / (levels[l].bandwidth * m);
        if (first && l > 0) sync /= static_cast<double>(levels[l - 1].devices);
        double time = (part.time + sync) / m;
        if (!first) {
          time = std::max({time, 2 * Across(part.begin) / (levels[l].bandwidth * m),
                           2 * Across(part.end) / (levels[l].bandwidth * m)});
        }
        if (l == 0) {
          // Copies on the levels above share the mini-batches.
          const auto above_copies = static_cast<double>(stage.data) / m;
          report_.stage_times.push_back(time / above_copies);
        }
        if (first) {
          above.push_back({part.begin, part.end, time, part.parameters});
        } else {
          above.back().end = part.end;
          above.back().time = std::max(above.back().time, time);
          above.back().parameters += part.parameters;
        }
        machines += static_cast<int64_t>(m);
        if (machines >= levels[l].devices && l + 1 < levels.size()) machines = 0;
      }
      parts = std::move(above);
    }
    double longest = 0;
    for (const Part& part : parts) longest = std::max(longest, part.time);
    return longest;
  }
  // Bytes of outputs that a stage from `cut` on takes from one before.
  double Across(int cut) const {
    double bytes = 0;
    for (int v = 0; v < p_.size(); ++v) {
      bool goes_on = false;
      for (int e : p_.operators[v].out_edges) goes_on |= stage_of_[p_.edges[e].to] >= cut;
      if (goes_on && stage_of_[v] < cut) bytes += p_.operators[v].output_bytes;
    }
    return bytes;
  }

  void ComputeValue() {
    if (plan_.objective == PlanObjective::kPipeDream) {
      report_.value = PipeDreamValue();
      return;
    }
    double sum = 0;
    for (int s = 0; s < num_stages(); ++s) {
      const double time = plan_.objective == PlanObjective::kMaxLoad    ? LoadOf(s)
                          : plan_.objective == PlanObjective::kVariance ? Compute(s)
                                                                        : PiperTime(s);
      report_.stage_times.push_back(time);
      report_.value = std::max(report_.value, time);
      sum += time;
    }
    if (plan_.objective != PlanObjective::kVariance) return;
    const double mean = sum / num_stages();
    report_.value = 0;
    for (double time : report_.stage_times) report_.value += (time - mean) * (time - mean);
    report_.value /= num_stages();
  }

  // At the best size of micro-batch.
  double LeastTime(const PlanVariant& v) const {
    if (v.times.empty() || !IsGraphObjective(plan_.objective)) return v.time;
    double least = kInfinity;
    for (int64_t samples : p_.sample_sizes) {
      const auto size = static_cast<double>(samples);
      least = std::min(least,
                       TimesOfSamples(p_, v, size).time * static_cast<double>(p_.samples) / size);
    }
    return least;
  }

  // An operator alone on d copies of a group of t devices.
  double AloneOn(const PlanVariant& v, int64_t d) const {
    const auto copies = static_cast<double>(d), n = static_cast<double>(p_.micro_batches);
    if (plan_.objective == PlanObjective::kMaxLoad) return v.time;
    if (plan_.objective == PlanObjective::kStageTime) {
      return v.time / copies + 4 * (copies - 1) * v.parameter_bytes / (copies * n) / p_.bandwidth;
    }
    return LeastTime(v) / copies;
  }

  void ComputeBounds() {
    if (plan_.objective == PlanObjective::kVariance) return;
    const bool max_load = plan_.objective == PlanObjective::kMaxLoad;
    double work = 0;
    for (const PlanOperator& o : p_.operators) {
      double least_work = kInfinity, least = kInfinity;
      if (max_load && p_.processors > 0) least_work = least = o.processor_time;
      for (const auto& [degree, menu] : o.menu) {
        if (max_load && (!o.on_accelerator || p_.devices == 0)) continue;
        for (const PlanVariant& v : menu) {
          least_work = std::min(least_work, degree * LeastTime(v));
          for (int64_t d = 1; d == 1 || (!max_load && d * degree <= p_.devices); ++d) {
            least = std::min(least, AloneOn(v, d));
          }
        }
      }
      work += least_work;
      report_.operator_bound = std::max(report_.operator_bound, least);
    }
    report_.work_bound = work / static_cast<double>(p_.devices + (max_load ? p_.processors : 0));
  }

  void ComputeStep() {
    if (plan_.objective == PlanObjective::kVariance) return;
    // A stage's own micro-batch, of so many of the problem's.
    const auto own = [&](int s) {
      return static_cast<double>(Samples(s)) / static_cast<double>(p_.samples);
    };
    const auto latency = [&](int s) { return report_.stage_times[s] * own(s); };
    std::vector<double> longest(num_stages(), -1);
    double fill = 0, steady = 0;
    for (int round = 0; round < num_stages(); ++round) {
      for (int s = 0; s < num_stages(); ++s) longest[s] = std::max(longest[s], latency(s));
      for (const PlanEdge& edge : p_.edges) {
        const int from = stage_of_[edge.from], to = stage_of_[edge.to];
        if (from == to || !Orders(edge)) continue;
        longest[to] = std::max(longest[to], longest[from] + latency(to));
      }
    }
    for (int s = 0; s < num_stages(); ++s) {
      fill = std::max(fill, longest[s]);
      const double others = static_cast<double>(p_.micro_batches) - own(s);
      steady = std::max(steady, std::max(others, 0.0) * report_.stage_times[s]);
    }
    report_.step_time = fill + steady;
    if (plan_.objective != PlanObjective::kGraphBatchTime) return;
    report_.value = report_.step_time;
    report_.work_bound *= static_cast<double>(p_.micro_batches);
    report_.operator_bound *= static_cast<double>(p_.micro_batches);
  }

  const PlanProblem& p_;
  const Plan& plan_;
  std::map<int, int64_t> samples_behind_;  // [stage]
  std::vector<int> stage_of_;              // [layer]
  std::vector<const PlanVariant*> way_;    // [layer]
  PlanReport report_;
};

}  // namespace

absl::StatusOr<PlanReport> CheckPlan(const PlanProblem& problem, const Plan& plan) {
  Checker checker(problem, plan);
  PIPELAB_ASSIGN_OR_RETURN(PlanReport report, checker.Evaluate());
  PIPELAB_RETURN_IF_ERROR(checker.CheckFigures());
  return report;
}

absl::StatusOr<PlanReport> EvaluatePlan(const PlanProblem& problem, const Plan& plan) {
  return Checker(problem, plan).Evaluate();
}

}  // namespace pipelab
