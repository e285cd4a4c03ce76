#include "pipelines/ir/device_lists.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The device of every (micro-batch, stage), from the rows in which its actions stand.
class PlacementFromRows {
 public:
  PlacementFromRows(const std::vector<std::vector<Action>>& rows, absl::string_view what)
      : rows_(rows), what_(what) {
    for (const auto& row : rows) {
      num_actions_ += static_cast<int64_t>(row.size());
      for (const Action& a : row) {
        stages_ = std::max<int64_t>(stages_, a.stage + 1);
        micro_batches_ = std::max<int64_t>(micro_batches_, int64_t{a.micro_batch} + 1);
      }
    }
  }

  absl::StatusOr<Schedule> Make() {
    if (num_actions_ == 0) return absl::InvalidArgumentError(absl::StrCat(what_, " has no action"));
    // Each pair needs its F and its B, which bounds the table by the size of the text; small ones
    // pass, so that the validator can name what is missing.
    if (stages_ * micro_batches_ * 2 > num_actions_ + kSpareActions) {
      return absl::InvalidArgumentError(
          absl::StrCat(what_, " has ", num_actions_, " actions; stages up to ", stages_ - 1,
                       " and micro-batches up to ", micro_batches_ - 1, " need at least ",
                       stages_ * micro_batches_ * 2));
    }
    if (rows_.size() > kMostDeviceLists) {
      return absl::InvalidArgumentError(absl::StrCat(what_, " has too many rows"));
    }
    device_.assign(stages_ * micro_batches_, -1);
    for (size_t d = 0; d < rows_.size(); ++d) PIPELAB_RETURN_IF_ERROR(ReadRow(static_cast<int>(d)));
    Schedule s;
    s.stages = StageGraph::Chain(static_cast<int>(stages_));
    s.num_micro_batches = static_cast<int>(micro_batches_);
    s.placement.num_devices = static_cast<int>(rows_.size());
    PIPELAB_RETURN_IF_ERROR(AddReplicas(&s.placement));
    return s;
  }

 private:
  static constexpr int64_t kSpareActions = 1 << 16;
  static constexpr int kMostGuesses = 64;  // what misses more is no slip

  absl::Status ReadRow(int d) {
    for (size_t i = 0; i < rows_[d].size(); ++i) {
      const Action& a = rows_[d][i];
      int& device = device_[a.micro_batch * stages_ + a.stage];
      if (device >= 0 && device != d) {
        return absl::InvalidArgumentError(
            absl::StrCat("device ", d, ", position ", i, ": ", ToString(a), ", but stage ", a.stage,
                         " of micro-batch ", a.micro_batch, " is on device ", device, " too"));
      }
      device = d;
    }
    return absl::OkStatus();
  }

  // A micro-batch that misses a stage altogether gets the device of another one that is on the same
  // devices elsewhere, or else of any, so that the validator can name device and position of what
  // is missing. -1 where no device has the stage.
  int GuessDevice(int64_t micro_batch, int64_t stage) const {
    int guess = -1;
    for (int64_t m = 0; m < micro_batches_; ++m) {
      const int there = device_[m * stages_ + stage];
      if (there < 0) continue;
      bool same = true;
      for (int64_t s = 0; s < stages_; ++s) {
        const int mine = device_[micro_batch * stages_ + s], other = device_[m * stages_ + s];
        same &= mine < 0 || other < 0 || mine == other;
      }
      if (same) return there;
      if (guess < 0) guess = there;
    }
    return guess;
  }

  absl::Status AddReplicas(Placement* placement) const {
    std::map<std::vector<int>, int> replica_of_path;
    int guesses = 0;
    for (int64_t m = 0; m < micro_batches_; ++m) {
      std::vector<int> path(device_.begin() + m * stages_, device_.begin() + (m + 1) * stages_);
      for (int64_t s = 0; s < stages_; ++s) {
        if (path[s] >= 0) continue;
        path[s] = ++guesses <= kMostGuesses ? GuessDevice(m, s) : -1;
        if (path[s] >= 0) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(s, "F", m, " is missing: no device has stage ", s, " of micro-batch ", m));
      }
      const auto [it, inserted] =
          replica_of_path.emplace(path, static_cast<int>(replica_of_path.size()));
      if (inserted) {
        std::vector<std::vector<int>>& groups = placement->groups.emplace_back();
        for (int d : path) groups.push_back({d});
      }
      placement->replica_of_micro_batch.push_back(it->second);
    }
    return absl::OkStatus();
  }

  const std::vector<std::vector<Action>>& rows_;
  const absl::string_view what_;
  int64_t num_actions_ = 0, stages_ = 0, micro_batches_ = 0;
  std::vector<int> device_;  // [micro_batch * stages + stage]
};

}  // namespace

absl::StatusOr<Schedule> ScheduleFromDeviceLists(std::vector<std::vector<Action>> rows,
                                                 absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule s, PlacementFromRows(rows, what).Make());
  s.order = std::move(rows);
  return s;
}

}  // namespace pipelab
