#include "pipelines/checker/check_batch_time.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// What one device of a stage, or the network between two, does of a micro-batch.
struct Pass {
  double forward = 0, backward = 0, sum = 0;
};

class BatchTimeReport {
 public:
  BatchTimeReport(const PlanProblem& problem, const Plan& plan)
      : p_(problem), stages_(plan.stages) {
    hidden_ = plan.objective == PlanObjective::kBatchTime;
  }

  absl::StatusOr<BatchTimeFigures> Make() {
    PIPELAB_RETURN_IF_ERROR(Place());
    BatchTimeFigures figures;
    std::vector<Pass> line;
    for (size_t s = 0; s < stages_.size(); ++s) {
      Pass pass = StagePass(s);
      const double in = s > 0 ? Transfer(s - 1) : 0;
      const double out = s + 1 < stages_.size() ? Transfer(s) : 0;
      if (!hidden_) {
        pass.forward += in + out;
        pass.backward += in + out;
      } else if (s > 0) {
        line.push_back({in, in, 0});
      }
      line.push_back(pass);
      figures.stage_times.push_back(pass.forward + pass.backward);
    }
    for (size_t busy = 0; busy < line.size(); ++busy) {
      for (size_t end = 0; end < line.size(); ++end) {
        figures.value = std::max(figures.value, Path(line, busy, end));
      }
    }
    figures.work_bound = WorkBound();
    return figures;
  }

 private:
  absl::Status Place() {
    int64_t next = 0;
    for (size_t s = 0; s < stages_.size(); ++s) {
      const int64_t first = stages_[s].first_device < 0 ? next : stages_[s].first_device;
      if (first < next || first + stages_[s].data > p_.devices) {
        return absl::InvalidArgumentError(absl::StrCat("stage ", s, ": devices ", first, " to ",
                                                       first + stages_[s].data - 1,
                                                       ": the stages before it have those up to ",
                                                       next - 1, ", the machine has ", p_.devices));
      }
      first_.push_back(first);
      next = first + stages_[s].data;
    }
    return absl::OkStatus();
  }

  // One device of `last` and one of `first`: the first level at which they are in one unit.
  const PlanLevel& LevelBetween(int64_t first, int64_t last) {
    flat_ = {p_.devices, p_.bandwidth, p_.latency};
    int64_t devices = 1;
    for (const PlanLevel& level : p_.levels) {
      devices *= level.devices;
      if (first - first % devices == last - last % devices) return level;
    }
    return p_.levels.empty() ? flat_ : p_.levels.back();
  }

  Pass StagePass(size_t s) {
    const PlanStage& stage = stages_[s];
    const auto copies = static_cast<double>(stage.data);
    double forward = 0, both = 0, parameters = 0;
    for (size_t i = 0; i < stage.layers.size(); ++i) {
      const PlanVariant& variant =
          p_.operators[stage.layers[i]].variants.at(stage.tensor)[stage.variants[i]];
      const PlanTimes t = stage.data == 1
                              ? PlanTimes{variant.forward_time, variant.time}
                              : TimesOfSamples(p_, variant, double(p_.micro_batch_size) / copies);
      forward += t.forward;
      both += t.time;
      parameters += variant.parameter_bytes;
    }
    double slowest = 1;
    if (!p_.device_speeds.empty()) {
      slowest = std::numeric_limits<double>::infinity();
      for (int64_t d = first_[s]; d < first_[s] + stage.data; ++d) {
        slowest = std::min(slowest, p_.device_speeds[d]);
      }
    }
    Pass pass = {forward / slowest, both / slowest - forward / slowest, 0};
    if (stage.data > 1) {
      // A ring's 2 (m - 1) steps, each with a part of the gradients.
      const PlanLevel& level = LevelBetween(first_[s], first_[s] + stage.data - 1);
      const double step = level.latency + parameters / copies / level.bandwidth;
      pass.sum = 2 * (copies - 1) * step;
    }
    return pass;
  }

  // From stage s to the next: every output that a later stage takes, once.
  double Transfer(size_t s) {
    std::set<int> before, crossing;
    for (size_t t = 0; t <= s; ++t) {
      before.insert(stages_[t].layers.begin(), stages_[t].layers.end());
    }
    for (const PlanEdge& edge : p_.edges) {
      if (before.count(edge.from) > 0 && before.count(edge.to) == 0) crossing.insert(edge.from);
    }
    double bytes = 0;
    for (int v : crossing) bytes += p_.operators[v].output_bytes;
    const PlanLevel& level = LevelBetween(first_[s], first_[s + 1] + stages_[s + 1].data - 1);
    const auto pairs = static_cast<double>(std::min(stages_[s].data, stages_[s + 1].data));
    return level.latency + bytes / pairs / level.bandwidth;
  }

  // Through forwards up to `busy`, which then works on every micro-batch, to when `end` has summed
  // its gradients.
  double Path(const std::vector<Pass>& line, size_t busy, size_t end) const {
    double time =
        static_cast<double>(p_.micro_batches) * (line[busy].forward + line[busy].backward);
    for (size_t i = 0; i < busy; ++i) time += line[i].forward;
    for (size_t i = end; i < busy; ++i) time += line[i].backward;
    // Stages behind it had their last gradient before its last backward began.
    if (end > busy) time -= line[busy].backward;
    for (size_t i = busy + 1; i < end; ++i) time -= line[i].backward;
    return time + line[end].sum;
  }

  double WorkBound() const {
    double work = 0, speed = p_.device_speeds.empty() ? static_cast<double>(p_.devices) : 0;
    for (double s : p_.device_speeds) speed += s;
    for (const PlanOperator& o : p_.operators) {
      double least = std::numeric_limits<double>::infinity();
      for (const auto& [degree, variants] : o.variants) {
        for (const PlanVariant& variant : variants) {
          least = std::min(least, static_cast<double>(degree) * variant.time);
          for (int64_t m = 2; m <= p_.devices; ++m) {
            const auto copies = static_cast<double>(m);
            const double time =
                TimesOfSamples(p_, variant, double(p_.micro_batch_size) / copies).time;
            least = std::min(least, static_cast<double>(degree) * copies * time);
          }
        }
      }
      work += least;
    }
    return static_cast<double>(p_.micro_batches) * work / speed;
  }

  const PlanProblem& p_;
  const std::vector<PlanStage>& stages_;
  bool hidden_ = false;  // transfers run beside compute
  std::vector<int64_t> first_;
  PlanLevel flat_;
};

}  // namespace

bool IsBatchTime(PlanObjective objective) {
  return objective == PlanObjective::kBatchTime || objective == PlanObjective::kBatchTimeNoOverlap;
}

absl::StatusOr<BatchTimeFigures> CheckBatchTime(const PlanProblem& problem, const Plan& plan) {
  return BatchTimeReport(problem, plan).Make();
}

int64_t BatchInFlight(const PlanProblem& problem, const Plan& plan, int stage) {
  const auto behind = static_cast<int64_t>(plan.stages.size()) - stage;
  return std::min(behind * plan.kfkb, problem.micro_batches);
}

}  // namespace pipelab
