#include "pipelines/checker/check_figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipelab {
namespace {

class PlanFigures {
 public:
  PlanFigures(const PlanView& view, PlanReport* report) : view_(view), report_(*report) {}

  void Compute() {
    ComputeValue();
    ComputeBounds();
    ComputeStep();
  }

 private:
  // Piper: each copy takes its part of the micro-batches; what goes over the stage's border goes
  // forward and back, and tensor parallelism adds to it; gradients are summed once a batch.
  double PiperTime(int s) const {
    double border = 0, edges = 0;
    std::vector<int> layers = plan_.stages[s].layers;
    std::sort(layers.begin(), layers.end());
    for (int v : layers) {
      const PlanOperator& o = p_.operators[v];
      for (size_t i = 0; i < o.out_edges.size(); ++i) {
        const PlanEdge& edge = p_.edges[o.out_edges[i]];
        if (stage_of_[edge.to] != s) {
          border += edge.bytes + view_.variant[edge.from]->out_sync[i];
          ++edges;
        }
      }
      for (size_t i = 0; i < o.in_edges.size(); ++i) {
        const PlanEdge& edge = p_.edges[o.in_edges[i]];
        if (stage_of_[edge.from] != s) {
          border += edge.bytes + view_.variant[edge.to]->in_sync[i];
          ++edges;
        }
      }
    }
    const auto d = static_cast<double>(plan_.stages[s].data);
    const auto n = static_cast<double>(p_.micro_batches);
    const double sums = 4 * (d - 1) * view_.Parameters(s) / (d * n);
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
      messages = 2 * edges * p_.latency * static_cast<double>(p_.micro_batch_size) /
                 static_cast<double>(view_.Samples(s));
    }
    return view_.Compute(s) / d + 2 * border / d / bandwidth + sums / sum_bandwidth + messages;
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
    return load + view_.Compute(s);
  }

  // PipeDream: parts of a level, from the innermost level outwards. Those that together have all
  // machines of a level are one part of the level above.
  struct Part {
    int begin, end;
    double time, parameters;
  };
  double PipeDreamValue() {
    std::vector<Part> parts;
    for (int s = 0; s < view_.num_stages(); ++s)
      parts.push_back({s, s + 1, view_.Compute(s), view_.Parameters(s)});
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
    for (int s = 0; s < view_.num_stages(); ++s) {
      const double time = plan_.objective == PlanObjective::kMaxLoad    ? LoadOf(s)
                          : plan_.objective == PlanObjective::kVariance ? view_.Compute(s)
                                                                        : PiperTime(s);
      report_.stage_times.push_back(time);
      report_.value = std::max(report_.value, time);
      sum += time;
    }
    if (plan_.objective != PlanObjective::kVariance) return;
    const double mean = sum / view_.num_stages();
    report_.value = 0;
    for (double time : report_.stage_times) report_.value += (time - mean) * (time - mean);
    report_.value /= view_.num_stages();
  }

  // At the best size of micro-batch.
  double LeastTime(const PlanVariant& v) const {
    if (v.times.empty() || !IsGraphObjective(plan_.objective)) return v.time;
    double least = kInfinity;
    for (int64_t samples : p_.micro_batch_sizes) {
      const auto size = static_cast<double>(samples);
      least = std::min(least, TimesOfSamples(p_, v, size).time *
                                  static_cast<double>(p_.micro_batch_size) / size);
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
      for (const auto& [degree, variants] : o.variants) {
        if (max_load && (!o.on_accelerator || p_.devices == 0)) continue;
        for (const PlanVariant& v : variants) {
          least_work = std::min(least_work, degree * LeastTime(v));
          // With more copies an operator alone becomes faster all the way, or slower all the way.
          const int64_t most = max_load ? 1 : std::max<int64_t>(1, p_.devices / degree);
          least = std::min({least, AloneOn(v, 1), AloneOn(v, most)});
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
      return static_cast<double>(view_.Samples(s)) / static_cast<double>(p_.micro_batch_size);
    };
    const auto latency = [&](int s) { return report_.stage_times[s] * own(s); };
    std::vector<double> longest(view_.num_stages(), -1);
    double fill = 0, steady = 0;
    bool changed = true;
    for (int s = 0; s < view_.num_stages(); ++s) longest[s] = std::max(longest[s], latency(s));
    for (int round = 0; changed && round < view_.num_stages(); ++round) {
      changed = false;
      for (const PlanEdge& edge : p_.edges) {
        const int from = stage_of_[edge.from], to = stage_of_[edge.to];
        if (from == to || !view_.Orders(edge)) continue;
        const double before = longest[to];
        longest[to] = std::max(before, longest[from] + latency(to));
        changed |= longest[to] != before;
      }
    }
    for (int s = 0; s < view_.num_stages(); ++s) {
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

  const PlanView& view_;
  const PlanProblem& p_ = view_.problem;
  const Plan& plan_ = view_.plan;
  const std::vector<int>& stage_of_ = view_.stage_of;
  PlanReport& report_;
};

}  // namespace

void AddFigures(const PlanView& view, PlanReport* report) { PlanFigures(view, report).Compute(); }

}  // namespace pipelab
