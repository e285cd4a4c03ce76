#include "pipelines/ir/validate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/ir/dependency.h"
#include "pipelines/ir/global_order.h"
#include "pipelines/ir/shape.h"
#include "pipelines/ir/version_checks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kKindsOfCell = kNumActionKinds;  // a micro-batch has all but kStep

template <typename... Parts>
absl::Status InvalidOrder(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Looks at every action once, counts what it saw, then looks at every (stage, micro-batch, slice).
class ActionChecker {
 public:
  explicit ActionChecker(const Schedule& s) : s_(s), cell_(s) {}

  absl::Status Check() {
    int64_t actions = 0;
    for (const std::vector<Action>& list : s_.order) actions += static_cast<int64_t>(list.size());
    // Each cell needs a forward and, but in inference, a backward: this bounds the table by the
    // size of the input, but lets small schedules have an exact message about what is missing.
    const int64_t cells = cell_.size();
    int64_t least = cells;
    for (int stage = 0; stage < s_.num_stages(); ++stage) {
      if (s_.HasForwardsAlone(stage)) continue;
      least += int64_t{s_.MicroBatches(stage)} * s_.num_slices;
    }
    if (least > actions + kSpareCells) {
      return InvalidOrder("the order has ", actions, " actions; ", s_.num_stages(), " stages, ",
                          s_.num_micro_batches, " micro-batches and ", s_.num_slices,
                          " slices need at least ", least);
    }
    seen_.resize(cells * kKindsOfCell);
    made_.resize(s_.num_stages());
    recomputed_.resize(s_.num_stages());
    last_pass_.resize(s_.num_stages());
    for (int d = 0; d < s_.num_devices(); ++d) PIPELAB_RETURN_IF_ERROR(CheckDevice(d));
    PIPELAB_RETURN_IF_ERROR(CheckComplete());
    return has_steps_ ? CheckVersions(s_) : absl::OkStatus();
  }

 private:
  static constexpr int64_t kSpareCells = 1 << 16;

  struct Seen {
    uint16_t members = 0;
    int16_t last_device = -1;
  };

  int64_t Cell(int stage, int micro_batch, int slice) const {
    return cell_(stage, micro_batch, slice) * kKindsOfCell;
  }

  absl::Status CheckDevice(int d) {
    std::fill(made_.begin(), made_.end(), 0);
    std::fill(last_pass_.begin(), last_pass_.end(), 0);
    const std::vector<Action>& list = s_.order[d];
    for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) {
      const Action& a = list[i];
      if (a.stage < 0 || a.stage >= s_.num_stages()) {
        return InvalidAt(d, i, ToString(a), ": stage ", a.stage, " does not exist; there are ",
                         s_.num_stages(), " stages");
      }
      if (s_.HasForwardsAlone(a.stage) && a.kind != ActionKind::kForward) {
        return InvalidAt(d, i, ToString(a),
                         s_.forward_only ? ": a schedule of forwards alone has F only"
                                         : ": a stage that prepares has F only");
      }
      if (a.kind == ActionKind::kStep) {
        PIPELAB_RETURN_IF_ERROR(CheckStep(d, i, a));
        continue;
      }
      if (a.micro_batch < 0 || a.micro_batch >= s_.MicroBatches(a.stage)) {
        return InvalidAt(d, i, ToString(a), ": micro-batch ", a.micro_batch,
                         " does not exist; there are ", s_.MicroBatches(a.stage),
                         s_.micro_batches_of_stage.empty() ? "" : " at this stage");
      }
      if (a.slice < 0 || a.slice >= s_.num_slices) {
        return InvalidAt(d, i, ToString(a), ": slice ", a.slice, " does not exist; there are ",
                         s_.num_slices);
      }
      if (a.version < 0 || a.version > made_[a.stage]) {
        return InvalidAt(d, i, ToString(a), " needs weight version ", a.version, " of stage ",
                         a.stage, "; the last one made before it is ", made_[a.stage]);
      }
      const std::vector<int>& group = s_.Group(a.stage, a.micro_batch);
      if (std::find(group.begin(), group.end(), d) == group.end()) {
        return InvalidAt(d, i, ToString(a), " is placed on device ", absl::StrJoin(group, "+"),
                         " (replica ", s_.ReplicaOf(a.stage, a.micro_batch), ")");
      }
      Seen& seen = seen_[Cell(a.stage, a.micro_batch, a.slice) + static_cast<int>(a.kind)];
      if (seen.last_device == d) {
        return InvalidAt(d, i, ToString(a), " comes a second time (first at position ",
                         Find(d, a.kind, a.stage, a.micro_batch, a.slice), ")");
      }
      PIPELAB_RETURN_IF_ERROR(CheckHostTransfer(d, i, a));
      seen.last_device = static_cast<int16_t>(d);
      ++seen.members;
      if (a.kind == ActionKind::kRecompute) recomputed_[a.stage] = 1;
      // Caches of a stage grow pass by pass; a trainer's batches have nothing in common.
      if (a.kind != ActionKind::kForward) continue;
      const bool replays = s_.ReplaysAt(a.stage);
      if (!replays && (s_.carried.empty() || !s_.forward_only)) continue;
      if (a.micro_batch < last_pass_[a.stage]) {
        return InvalidAt(d, i, ToString(a), " comes after that of micro-batch ",
                         last_pass_[a.stage], "; with ", replays ? "replay" : "edges that carry",
                         " the passes of a stage are in order");
      }
      last_pass_[a.stage] = a.micro_batch;
    }
    return absl::OkStatus();
  }

  // In the device's list: F, then O, then L, then B or I.
  absl::Status CheckHostTransfer(int d, int64_t i, const Action& a) const {
    const Seen* seen = &seen_[Cell(a.stage, a.micro_batch, a.slice)];
    const auto did = [&](ActionKind k) { return seen[static_cast<int>(k)].last_device == d; };
    const auto name = [&](ActionKind kind) {
      Action other = a;
      other.kind = kind;
      return ToString(other);
    };
    const auto before = [&](ActionKind needed, absl::string_view role) {
      return InvalidAt(d, i, ToString(a), " comes before its ", role, " ", name(needed));
    };
    const bool backward = a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput;
    if (backward && did(ActionKind::kOffload) && !did(ActionKind::kReload)) {
      return before(ActionKind::kReload, "reload");
    }
    if (a.kind == ActionKind::kReload && !did(ActionKind::kOffload)) {
      return before(ActionKind::kOffload, "offload");
    }
    if (a.kind != ActionKind::kOffload) return absl::OkStatus();
    if (!did(ActionKind::kForward)) return before(ActionKind::kForward, "forward");
    for (ActionKind kind : {ActionKind::kBackward, ActionKind::kBackwardInput}) {
      if (!did(kind)) continue;
      return InvalidAt(d, i, ToString(a), " comes after ", name(kind),
                       ", which has taken what it would move");
    }
    return absl::OkStatus();
  }

  absl::Status CheckStep(int d, int64_t i, const Action& a) {
    if (a.micro_batch != 0 || a.slice != 0) {
      return InvalidAt(d, i, ToString(a), ": a step has no micro-batch and no slice");
    }
    bool held = false;
    for (const auto& replica : s_.placement.groups) {
      const std::vector<int>& group = replica[a.stage];
      held |= std::find(group.begin(), group.end(), d) != group.end();
    }
    if (!held) return InvalidAt(d, i, ToString(a), ": the device does not hold stage ", a.stage);
    if (a.version != made_[a.stage] + 1) {
      return InvalidAt(d, i, ToString(a), ": the next version of stage ", a.stage, " is ",
                       made_[a.stage] + 1);
    }
    made_[a.stage] = a.version;
    has_steps_ = true;
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    for (int stage = 0; stage < s_.num_stages(); ++stage) {
      for (int m = 0; m < s_.MicroBatches(stage); ++m) {
        const int members = static_cast<int>(s_.Group(stage, m).size());
        for (int slice = 0; slice < s_.num_slices; ++slice) {
          const Seen* seen = &seen_[Cell(stage, m, slice)];
          const auto count = [&](ActionKind k) { return int{seen[static_cast<int>(k)].members}; };
          const int fused = count(ActionKind::kBackward);
          const int split = s_.HasForwardsAlone(stage) ? 0 : members - fused;
          const bool complete = count(ActionKind::kForward) == members &&
                                (fused == 0 || split == 0) &&
                                count(ActionKind::kBackwardInput) == split &&
                                count(ActionKind::kBackwardWeight) == split &&
                                count(ActionKind::kRecompute) == (recomputed_[stage] ? members : 0);
          const int moved = count(ActionKind::kOffload);
          if (moved > 0 && (recomputed_[stage] || moved < members)) {
            return DescribeOffload(stage, m, slice);
          }
          if (!complete) return DescribeIncomplete(stage, m, slice);
        }
      }
    }
    return absl::OkStatus();
  }

  // Slow path: says what a member of the group lacks, or has too much.
  absl::Status DescribeIncomplete(int stage, int m, int slice) const {
    const auto name = [&](ActionKind kind) {
      return ToString(Action{kind, static_cast<int16_t>(stage), m, static_cast<int16_t>(slice), 0});
    };
    const auto find = [&](int d, ActionKind kind) { return Find(d, kind, stage, m, slice); };
    const std::vector<int>& group = s_.Group(stage, m);
    for (int d : group) {
      // The latest place that it could have: before the action that needs it, or the list's end.
      const auto missing = [&](ActionKind kind, ActionKind before, absl::string_view why) {
        const int64_t place = find(d, before);
        if (place >= 0 && before != kind) {
          return InvalidAt(d, place, name(kind), " is missing", why, "; ", name(before),
                           " here needs it");
        }
        return InvalidAt(d, static_cast<int64_t>(s_.order[d].size()), name(kind), " is missing",
                         why, "; the list ends here");
      };
      const int64_t whole = find(d, ActionKind::kBackward);
      const int64_t input = find(d, ActionKind::kBackwardInput);
      const int64_t weight = find(d, ActionKind::kBackwardWeight);
      const ActionKind backward = whole >= 0   ? ActionKind::kBackward
                                  : input >= 0 ? ActionKind::kBackwardInput
                                               : ActionKind::kBackwardWeight;
      const int64_t rebuilt = find(d, ActionKind::kRecompute);
      if (find(d, ActionKind::kForward) < 0) {
        return missing(ActionKind::kForward, rebuilt >= 0 ? ActionKind::kRecompute : backward, "");
      }
      if (whole >= 0 && (input >= 0 || weight >= 0)) {
        const ActionKind part =
            input >= 0 ? ActionKind::kBackwardInput : ActionKind::kBackwardWeight;
        return InvalidAt(d, std::max(input, weight), name(part), " repeats a part of ",
                         name(ActionKind::kBackward), " (position ", whole, ")");
      }
      if (whole < 0 && input < 0 && weight < 0) {
        return missing(ActionKind::kBackward, ActionKind::kBackward, " (or its parts I and W)");
      }
      if (whole < 0 && weight < 0) {
        return missing(ActionKind::kBackwardWeight, ActionKind::kBackwardWeight,
                       absl::StrCat(": the weight part of ", name(ActionKind::kBackwardInput)));
      }
      if (whole < 0 && input < 0) {
        return missing(ActionKind::kBackwardInput, ActionKind::kBackwardWeight,
                       absl::StrCat(": the input part of ", name(ActionKind::kBackwardWeight)));
      }
      if (recomputed_[stage] && rebuilt < 0) {
        return missing(ActionKind::kRecompute, backward,
                       ": a stage recomputes all micro-batches or none");
      }
    }
    return DescribeSplit(stage, m, slice);
  }

  // What is wrong with an offload that is in its place.
  absl::Status DescribeOffload(int stage, int m, int slice) const {
    const std::vector<int>& group = s_.Group(stage, m);
    for (int d : group) {
      const int64_t place = Find(d, ActionKind::kOffload, stage, m, slice);
      if (place < 0) continue;
      const std::string name = ToString(s_.order[d][place]);
      if (recomputed_[stage]) {
        return InvalidAt(d, place, name, ": stage ", stage,
                         " recomputes; it does one or the other");
      }
      return InvalidAt(d, place, name, ": devices ", absl::StrJoin(group, "+"), " share stage ",
                       stage, " and must all offload its micro-batch ", m, ", or none");
    }
    return InvalidOrder("stage ", stage, " offloads micro-batch ", m, " on no device of its group");
  }

  // Each member of the group is complete, but not all split the backward alike.
  absl::Status DescribeSplit(int stage, int m, int slice) const {
    const std::vector<int>& group = s_.Group(stage, m);
    const bool whole = Find(group[0], ActionKind::kBackward, stage, m, slice) >= 0;
    const ActionKind other = whole ? ActionKind::kBackwardInput : ActionKind::kBackward;
    for (int d : group) {
      const int64_t place = Find(d, other, stage, m, slice);
      if (place < 0) continue;
      const Action a{other, static_cast<int16_t>(stage), m, static_cast<int16_t>(slice), 0};
      return InvalidAt(d, place, ToString(a), ": devices ", absl::StrJoin(group, "+"),
                       " share stage ", stage, " and must split its backwards alike, and device ",
                       group[0], whole ? " does not split" : " splits", " this one");
    }
    return InvalidOrder("devices ", absl::StrJoin(group, "+"), " share stage ", stage,
                        " and must hold the same actions");
  }

  int64_t Find(int d, ActionKind kind, int stage, int micro_batch, int slice) const {
    const std::vector<Action>& list = s_.order[d];
    for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) {
      const Action& a = list[i];
      if (a.kind == kind && a.stage == stage && a.micro_batch == micro_batch && a.slice == slice) {
        return i;
      }
    }
    return -1;
  }

  const Schedule& s_;
  const CellIndex cell_;
  std::vector<Seen> seen_;        // [cell][kind]
  std::vector<int> made_;         // [stage] newest weight version so far in the device's list
  std::vector<char> recomputed_;  // [stage]
  std::vector<int> last_pass_;    // [stage] where passes are in order: the device's last forward
  bool has_steps_ = false;
};

}  // namespace

absl::Status ValidateActions(const Schedule& schedule) {
  PIPELAB_RETURN_IF_ERROR(CheckShape(schedule));
  return ActionChecker(schedule).Check();
}

absl::Status Validate(const Schedule& schedule) {
  PIPELAB_RETURN_IF_ERROR(ValidateActions(schedule));
  return CheckAllDone(schedule, VisitInGlobalOrder(schedule, [](int, int32_t) {}));
}

}  // namespace pipelab
