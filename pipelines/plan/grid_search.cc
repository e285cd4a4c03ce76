#include "pipelines/plan/grid_search.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pipelines/plan/grid_bounds.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// More actions than any schedule here needs: such configurations are left to those with larger
// micro-batches.
constexpr int64_t kMostActions = int64_t{1} << 20;

struct Candidate {
  GridConfig config;
  Nanoseconds bound;
};

class MethodSearch {
 public:
  MethodSearch(const GridModel& model, const GridSearch& search, const GridMethod& method,
               GridBounds* bounds, GridRefusals* refusals)
      : model_(model), search_(search), method_(method), bounds_(*bounds), refusals_(*refusals) {}

  absl::StatusOr<std::vector<GridResult>> Run() {
    PIPELAB_RETURN_IF_ERROR(Collect());
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
    for (const Candidate& candidate : candidates_) {
      const bool full = static_cast<int>(best_.size()) >= search_.top;
      if (full && candidate.bound >= best_.back().step_time) break;
      PIPELAB_RETURN_IF_ERROR(Simulate(candidate.config));
    }
    return std::move(best_);
  }

 private:
  absl::Status Collect() {
    for (int64_t tensor = 1; tensor <= search_.devices; tensor *= 2) {
      if (search_.devices % tensor != 0) continue;
      if (tensor > search_.max_tensor || !bounds_.Divides(static_cast<int>(tensor))) {
        ++refusals_.considered;
        ++refusals_.tensor;
        continue;
      }
      const int64_t rest = search_.devices / tensor;
      for (int64_t pipeline = 1; pipeline <= rest; ++pipeline) {
        if (rest % pipeline != 0 || (pipeline == 1) == method_.pipeline) continue;
        PIPELAB_RETURN_IF_ERROR(CollectGrid(static_cast<int>(pipeline), static_cast<int>(tensor)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CollectGrid(int pipeline, int tensor) {
    GridConfig c;
    c.pipeline = pipeline;
    c.tensor = tensor;
    c.data = static_cast<int>(search_.devices / pipeline / tensor);
    c.residency = method_.residency;
    c.overlap_pipeline = method_.overlap_pipeline;
    c.overlap_data = method_.overlap_data;
    c.whole_messages = method_.whole_messages;
    if (search_.batch % c.data != 0) {
      ++refusals_.considered;
      ++refusals_.batch;
      return absl::OkStatus();
    }
    const int64_t samples = search_.batch / c.data;
    for (int64_t b = 1; b <= samples; b *= 2) {
      if (samples % b != 0) break;
      c.micro_batch_samples = b;
      c.micro_batches = static_cast<int>(samples / b);
      if (method_.whole_groups && c.micro_batches % pipeline != 0) continue;
      PIPELAB_RETURN_IF_ERROR(CollectSchedules(c));
    }
    return absl::OkStatus();
  }

  absl::Status CollectSchedules(GridConfig c) {
    for (const std::string& scheme : method_.schemes) {
      c.scheme = scheme;
      for (const int loops : method_.loops) {
        c.loops = loops;
        const int64_t stages = int64_t{c.pipeline} * std::max(loops, 1);
        if (stages > model_.model->num_groups() || stages * c.micro_batches * 2 > kMostActions) {
          continue;
        }
        for (const bool recompute : search_.recompute) {
          c.recompute = recompute;
          PIPELAB_RETURN_IF_ERROR(CollectShardings(c));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CollectShardings(GridConfig c) {
    for (const Sharding sharding : method_.shardings) {
      if (c.data == 1 && sharding != Sharding::kReplicated && method_.shardings.size() > 1) {
        continue;  // nothing to shard: the same as replicated
      }
      c.sharding = sharding;
      ++refusals_.considered;
      const Bytes state = bounds_.LeastState(c);
      if (state > model_.cluster->device.memory.value) {
        RefuseMemory(c, state);
        continue;
      }
      const absl::StatusOr<Nanoseconds> bound = bounds_.LeastTime(c);
      if (bound.ok()) {
        candidates_.push_back({c, *bound});
      } else {
        PIPELAB_RETURN_IF_ERROR(RefuseScheme(c, bound.status()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Simulate(const GridConfig& config) {
    ++refusals_.simulated;
    const absl::StatusOr<GridPoint> point = EvaluateGrid(model_, config);
    if (!point.ok()) return RefuseScheme(config, point.status());
    if (point->largest_device > model_.cluster->device.memory.value) {
      RefuseMemory(config, point->largest_device);
      return absl::OkStatus();
    }
    GridResult result;
    result.method = method_.name;
    result.config = config;
    result.step_time = point->step_time;
    result.largest_device = point->largest_device;
    result.tflops_a_device = point->tflops_a_device;
    result.samples_per_second = point->samples_per_second();
    const auto at = std::upper_bound(
        best_.begin(), best_.end(), result,
        [](const GridResult& a, const GridResult& b) { return a.step_time < b.step_time; });
    best_.insert(at, std::move(result));
    if (static_cast<int>(best_.size()) > search_.top) best_.pop_back();
    return absl::OkStatus();
  }

  // What sizes do not suit is left out; anything else is an error.
  absl::Status RefuseScheme(const GridConfig& c, const absl::Status& status) {
    if (!absl::IsInvalidArgument(status)) return status;
    ++refusals_.scheme;
    refusals_.scheme_reason = absl::StrCat(c.ToString(), ": ", status.message());
    return absl::OkStatus();
  }

  void RefuseMemory(const GridConfig& c, Bytes bytes) {
    ++refusals_.memory;
    if (refusals_.least_memory == Bytes(0) || bytes < refusals_.least_memory) {
      refusals_.least_memory = bytes;
      refusals_.nearest = c.ToString();
    }
  }

  const GridModel& model_;
  const GridSearch& search_;
  const GridMethod& method_;
  GridBounds& bounds_;
  GridRefusals& refusals_;
  std::vector<Candidate> candidates_;
  std::vector<GridResult> best_;  // fastest first
};

absl::Status CheckSearch(const GridModel& model, const GridSearch& search) {
  if (search.devices < 1 || search.devices > model.cluster->max_devices()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpus=", search.devices, ": must be from 1 to ",
                     model.cluster->max_devices(), ", the devices of ", model.cluster->name));
  }
  if (search.batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch=", search.batch, ": must be at least 1"));
  }
  if (search.top < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--top=", search.top, ": must be at least 1"));
  }
  return absl::OkStatus();
}

// What binds where nothing was found.
absl::Status NothingFits(const GridModel& model, const GridSearch& search,
                         const GridRefusals& refusals) {
  const std::string what = absl::StrCat("no configuration of ", search.devices, " devices of ",
                                        model.cluster->name, " for --batch=", search.batch);
  if (refusals.memory > 0) {
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    return absl::NotFoundError(
        absl::StrFormat("%s: memory binds; the nearest, %s, needs %.2f GiB of %.2f", what,
                        refusals.nearest, static_cast<double>(refusals.least_memory.value()) / kGiB,
                        static_cast<double>(model.cluster->device.memory.value.value()) / kGiB));
  }
  if (refusals.scheme > 0)
    return absl::NotFoundError(absl::StrCat(what, ": ", refusals.scheme_reason));
  if (refusals.batch > 0) {
    return absl::NotFoundError(absl::StrCat(
        what, ": the batch is no multiple of the data-parallel degree of any grid; --batch=",
        search.devices, " would be one for all"));
  }
  return absl::NotFoundError(absl::StrCat(
      what, ": tensor parallelism does not divide the model, and pipelines are longer than its ",
      model.model->num_groups(), " layers"));
}

}  // namespace

absl::StatusOr<GridSearchResult> SearchGrid(const GridModel& model, const GridSearch& search) {
  PIPELAB_RETURN_IF_ERROR(CheckSearch(model, search));
  GridBounds bounds(model);
  GridSearchResult result;
  for (const GridMethod& method : search.methods) {
    MethodSearch of_method(model, search, method, &bounds, &result.refusals);
    PIPELAB_ASSIGN_OR_RETURN(std::vector<GridResult> best, of_method.Run());
    result.best.insert(result.best.end(), best.begin(), best.end());
  }
  std::stable_sort(
      result.best.begin(), result.best.end(),
      [](const GridResult& a, const GridResult& b) { return a.step_time < b.step_time; });
  if (result.best.empty()) return NothingFits(model, search, result.refusals);
  return result;
}

}  // namespace pipelab
