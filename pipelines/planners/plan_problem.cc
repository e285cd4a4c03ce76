#include "pipelines/planners/plan_problem.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

class Checker {
 public:
  Checker(const PlanProblem& problem, absl::string_view what) : p_(problem), what_(what) {}

  absl::Status Check() const {
    if (p_.operators.empty()) return Error("there are no operators");
    PIPELAB_RETURN_IF_ERROR(CheckMachine());
    for (const PlanEdge& edge : p_.edges) {
      if (edge.from < 0 || edge.from >= p_.size() || edge.to < 0 || edge.to >= p_.size()) {
        return Error("an edge's end is not an operator");
      }
      PIPELAB_RETURN_IF_ERROR(CheckNumber(edge.bytes, p_.operators[edge.from], "an edge's bytes"));
    }
    for (const PlanOperator& o : p_.operators) PIPELAB_RETURN_IF_ERROR(CheckOperator(o));
    return absl::OkStatus();
  }

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", parts...));
  }

  absl::Status CheckNumber(double number, const PlanOperator& o, absl::string_view field) const {
    if (std::isfinite(number) && number >= 0) return absl::OkStatus();
    return Error("operator ", o.id, ": ", field, " ", number, ": must be finite and not negative");
  }

  absl::Status CheckMachine() const {
    if (p_.devices < 0 || (p_.devices == 0 && p_.processors == 0)) {
      return Error(p_.devices, " devices: there must be at least 1");
    }
    if (p_.micro_batches < 1) {
      return Error(p_.micro_batches, " micro-batches: there must be at least 1");
    }
    if (!p_.device_speeds.empty() && static_cast<int64_t>(p_.device_speeds.size()) != p_.devices) {
      return Error(p_.device_speeds.size(), " speeds for ", p_.devices, " devices");
    }
    for (double speed : p_.device_speeds) {
      if (!(speed > 0) || !std::isfinite(speed)) {
        return Error("a device's speed ", speed, ": must be above 0");
      }
    }
    if (!(p_.memory_bytes >= 0)) return Error("memory ", p_.memory_bytes, ": must be from 0");
    if (p_.micro_batch_size < 1)
      return Error(p_.micro_batch_size, " samples: there must be at least 1");
    if (p_.tokens < 0 || p_.token_step < 1 || p_.tokens % p_.token_step != 0) {
      return Error("slices of a multiple of ", p_.token_step, " tokens: do not divide ", p_.tokens);
    }
    if (p_.batch_samples < 0) return Error("a batch of ", p_.batch_samples, " samples");
    for (size_t i = 0; i < p_.micro_batch_sizes.size(); ++i) {
      if (p_.micro_batch_sizes[i] < (i == 0 ? 1 : p_.micro_batch_sizes[i - 1] + 1)) {
        return Error("sizes of micro-batches must ascend from 1");
      }
    }
    if (p_.objective == PlanObjective::kStageTime && !(p_.bandwidth > 0)) {
      return Error("bandwidth ", p_.bandwidth, ": must be above 0");
    }
    if (p_.objective != PlanObjective::kPipeDream) return absl::OkStatus();
    int64_t product = 1;
    for (const PlanLevel& level : p_.levels) {
      if (level.devices < 1) return Error("a level has ", level.devices, " devices");
      if (!(level.bandwidth > 0)) {
        return Error("bandwidth ", level.bandwidth, ": must be above 0");
      }
      product *= level.devices;
    }
    if (p_.levels.empty() || product != p_.devices) {
      return Error("the levels have ", product, " devices in all, the machine ", p_.devices);
    }
    return absl::OkStatus();
  }

  absl::Status CheckOperator(const PlanOperator& o) const {
    PIPELAB_RETURN_IF_ERROR(CheckNumber(o.output_bytes, o, "output"));
    PIPELAB_RETURN_IF_ERROR(CheckNumber(o.transfer_time, o, "transfer time"));
    PIPELAB_RETURN_IF_ERROR(CheckNumber(o.processor_time, o, "processor time"));
    if (o.variants.empty()) return Error("operator ", o.id, ": there is no way to run it");
    PIPELAB_RETURN_IF_ERROR(CheckSliceTimes(o));
    for (const auto& [degree, variants] : o.variants) {
      if (degree < 1) return Error("operator ", o.id, ": tensor-parallel degree ", degree);
      if (variants.empty()) {
        return Error("operator ", o.id, ": no way to run it with tensor-parallel degree ", degree);
      }
      for (const PlanVariant& v : variants) PIPELAB_RETURN_IF_ERROR(CheckVariant(o, v));
    }
    return absl::OkStatus();
  }

  absl::Status CheckSliceTimes(const PlanOperator& o) const {
    if (p_.tokens == 0) return absl::OkStatus();
    const auto units = static_cast<size_t>(p_.tokens / p_.token_step);
    bool right = o.slice_times.size() == std::max<size_t>(1, p_.micro_batch_sizes.size());
    for (const auto& of_size : o.slice_times) {
      right &= of_size.size() == units;
      for (size_t length = 1; length <= of_size.size(); ++length) {
        right &= of_size[length - 1].size() + length == units + 1;
        for (const PlanTimes& times : of_size[length - 1]) {
          PIPELAB_RETURN_IF_ERROR(CheckNumber(times.time, o, "time of a slice"));
          PIPELAB_RETURN_IF_ERROR(CheckNumber(times.forward, o, "forward time of a slice"));
        }
      }
    }
    if (right) return absl::OkStatus();
    return Error("operator ", o.id, ": must have the times of all slices of ", p_.tokens,
                 " tokens");
  }

  absl::Status CheckVariant(const PlanOperator& o, const PlanVariant& v) const {
    PIPELAB_RETURN_IF_ERROR(CheckNumber(v.time, o, "time"));
    PIPELAB_RETURN_IF_ERROR(CheckNumber(v.forward_time, o, "forward time"));
    PIPELAB_RETURN_IF_ERROR(CheckNumber(v.parameter_bytes, o, "parameter bytes"));
    PIPELAB_RETURN_IF_ERROR(CheckNumber(v.in_flight_bytes, o, "bytes in flight"));
    PIPELAB_RETURN_IF_ERROR(CheckNumber(v.fixed_bytes, o, "fixed bytes"));
    if (v.in_sync.size() != o.in_edges.size() || v.out_sync.size() != o.out_edges.size()) {
      return Error("operator ", o.id, ": variant ", v.name, " does not have its edges' sync bytes");
    }
    if (!v.times.empty() && v.times.size() != p_.micro_batch_sizes.size()) {
      return Error("operator ", o.id, ": variant ", v.name, " has times of ", v.times.size(),
                   " sizes of micro-batches, the problem ", p_.micro_batch_sizes.size());
    }
    for (const PlanTimes& times : v.times) {
      PIPELAB_RETURN_IF_ERROR(CheckNumber(times.time, o, "time"));
      PIPELAB_RETURN_IF_ERROR(CheckNumber(times.forward, o, "forward time"));
    }
    for (double bytes : v.in_sync) PIPELAB_RETURN_IF_ERROR(CheckNumber(bytes, o, "sync bytes"));
    for (double bytes : v.out_sync) PIPELAB_RETURN_IF_ERROR(CheckNumber(bytes, o, "sync bytes"));
    return absl::OkStatus();
  }

  const PlanProblem& p_;
  const absl::string_view what_;
};

void FillEdges(PlanProblem* problem) {
  for (PlanOperator& o : problem->operators) {
    o.in_edges.clear();
    o.out_edges.clear();
  }
  for (int e = 0; e < static_cast<int>(problem->edges.size()); ++e) {
    const PlanEdge& edge = problem->edges[e];
    if (edge.from < 0 || edge.from >= problem->size() || edge.to < 0 ||
        edge.to >= problem->size()) {
      continue;  // Check says it
    }
    problem->operators[edge.from].out_edges.push_back(e);
    problem->operators[edge.to].in_edges.push_back(e);
  }
  for (PlanOperator& o : problem->operators) {
    for (auto& [degree, variants] : o.variants) {
      for (PlanVariant& v : variants) {
        if (v.in_sync.empty()) v.in_sync.resize(o.in_edges.size());
        if (v.out_sync.empty()) v.out_sync.resize(o.out_edges.size());
      }
    }
  }
}

}  // namespace

const char* PlanObjectiveName(PlanObjective objective) {
  switch (objective) {
    case PlanObjective::kStageTime:
      return "stage_time";
    case PlanObjective::kPipeDream:
      return "pipedream_stage_time";
    case PlanObjective::kMaxLoad:
      return "max_load";
    case PlanObjective::kVariance:
      return "variance_of_stage_times";
    case PlanObjective::kGraphStageTime:
      return "graph_stage_time";
    case PlanObjective::kGraphBatchTime:
      return "graph_batch_time";
    case PlanObjective::kBatchTime:
      return "batch_time";
    case PlanObjective::kBatchTimeNoOverlap:
      return "batch_time_no_overlap";
    case PlanObjective::kSliceTime:
      return "slice_time";
  }
  return "?";
}

bool IsGraphObjective(PlanObjective objective) {
  return objective == PlanObjective::kGraphStageTime || objective == PlanObjective::kGraphBatchTime;
}

int64_t BatchSamples(const PlanProblem& problem) {
  if (problem.batch_samples > 0) return problem.batch_samples;
  return problem.micro_batch_size * problem.micro_batches;
}

double BatchPieces(const PlanProblem& problem) {
  return static_cast<double>(BatchSamples(problem)) / static_cast<double>(problem.micro_batch_size);
}

PlanTimes TimesOfSamples(const PlanProblem& problem, const PlanVariant& variant, double samples) {
  const auto scaled = [&](const PlanTimes& t, double factor) {
    return PlanTimes{t.forward * factor, t.time * factor};
  };
  const std::vector<int64_t>& sizes = problem.micro_batch_sizes;
  if (variant.times.empty() || sizes.empty()) {
    return scaled({variant.forward_time, variant.time},
                  samples / static_cast<double>(problem.micro_batch_size));
  }
  const auto size = [&](size_t i) { return static_cast<double>(sizes[i]); };
  if (samples <= size(0)) return scaled(variant.times[0], samples / size(0));
  size_t i = 1;
  while (i < sizes.size() && size(i) < samples) ++i;
  if (i == sizes.size()) return scaled(variant.times.back(), samples / size(i - 1));
  const double share = (samples - size(i - 1)) / (size(i) - size(i - 1));
  const PlanTimes &a = variant.times[i - 1], &b = variant.times[i];
  return {a.forward + share * (b.forward - a.forward), a.time + share * (b.time - a.time)};
}

std::vector<int> TopologicalOrder(const PlanProblem& problem) {
  std::vector<int> missing(problem.size());
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int v = 0; v < problem.size(); ++v) {
    missing[v] = static_cast<int>(problem.operators[v].in_edges.size());
    if (missing[v] == 0) ready.push(v);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int v = ready.top();
    ready.pop();
    order.push_back(v);
    for (int e : problem.operators[v].out_edges) {
      if (--missing[problem.edges[e].to] == 0) ready.push(problem.edges[e].to);
    }
  }
  return order;
}

absl::Status FinishProblem(PlanProblem* problem, absl::string_view what) {
  FillEdges(problem);
  PIPELAB_RETURN_IF_ERROR(Checker(*problem, what).Check());
  const std::vector<int> order = TopologicalOrder(*problem);
  if (order.size() == problem->operators.size()) return absl::OkStatus();
  std::vector<bool> ordered(problem->operators.size());
  for (int v : order) ordered[v] = true;
  for (int v = 0; v < problem->size(); ++v) {
    if (!ordered[v]) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": cyclic operators: ", problem->operators[v].id,
                       " comes after itself, or after a cycle"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
