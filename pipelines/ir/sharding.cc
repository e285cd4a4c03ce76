#include "pipelines/ir/sharding.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

constexpr int kNumPasses = 3;

int PassOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return 0;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kRecompute:
      return 1;
    case ActionKind::kBackwardWeight:
      return 2;
    case ActionKind::kStep:
    case ActionKind::kOffload:
    case ActionKind::kReload:
      break;
  }
  LOG(FATAL) << "no pass";
}

// Joins a stage's runs that overlap or touch.
std::vector<StageRun> Joined(std::vector<StageRun> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const StageRun& a, const StageRun& b) { return a.begin < b.begin; });
  std::map<std::pair<int, int>, size_t> last;  // of (replica, stage)
  std::vector<StageRun> joined;
  for (const StageRun& run : runs) {
    const auto [at, first] = last.emplace(std::make_pair(run.replica, run.stage), joined.size());
    if (!first) {
      StageRun& before = joined[at->second];
      if (run.begin <= before.end + 1) {
        before.end = std::max(before.end, run.end);
        continue;
      }
      at->second = joined.size();
    }
    joined.push_back(run);
  }
  return joined;
}

// Runs of the actions that `pass_of` gives a pass (not -1).
template <typename PassOfAction>
std::vector<StageRun> RunsOf(const Schedule& s, int device, Residency residency,
                             PassOfAction pass_of) {
  std::vector<StageRun> runs;
  std::array<int, kNumPasses> open;  // [pass] -> its run so far
  open.fill(-1);
  int last_micro_batch = -1;  // of the action before, in the last run
  const std::vector<Action>& order = s.order[device];
  for (int32_t i = 0; i < static_cast<int32_t>(order.size()); ++i) {
    const Action& a = order[i];
    const bool passes = a.kind != ActionKind::kStep && !IsHostTransfer(a.kind);
    const int pass = passes ? pass_of(a.kind) : -1;
    if (pass < 0 || s.Prepares(a.stage)) continue;
    const int replica = s.IsOneCopy(a.stage) ? 0 : s.ReplicaOf(a.stage, a.micro_batch);
    const auto same = [&](const StageRun& r) { return r.replica == replica && r.stage == a.stage; };
    if (residency == Residency::kMicroBatch) {
      // Slices of a micro-batch are one, as are a recompute and its backward.
      if (!runs.empty() && same(runs.back()) && runs.back().end == i - 1 &&
          last_micro_batch == a.micro_batch) {
        runs.back().end = i;
      } else {
        runs.push_back({replica, a.stage, i, i});
      }
      last_micro_batch = a.micro_batch;
      continue;
    }
    if (open[pass] >= 0 && same(runs[open[pass]])) {
      runs[open[pass]].end = i;
    } else {
      open[pass] = static_cast<int>(runs.size());
      runs.push_back({replica, a.stage, i, i});
    }
  }
  return residency == Residency::kRun ? Joined(std::move(runs)) : runs;
}

}  // namespace

std::vector<std::vector<int>> SharingSets(std::vector<int> group, int shards) {
  std::sort(group.begin(), group.end());
  if (shards == 0) return {std::move(group)};
  std::vector<std::vector<int>> sets;
  for (size_t first = 0; first < group.size(); first += shards) {
    const size_t end = std::min(group.size(), first + shards);
    sets.emplace_back(group.begin() + first, group.begin() + end);
  }
  return sets;
}

absl::Status CheckShards(Sharding sharding, int shards, int64_t copies, int64_t expert_copies) {
  if (shards == 0) return absl::OkStatus();
  const auto error = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("shards=", shards, ": ", why...));
  };
  if (sharding == Sharding::kReplicated) {
    return error("nothing is sharded; give sharding=optimizer, gradients or fully too");
  }
  if (shards < 2 || copies % shards != 0) {
    return error("must be at least 2 and divide the ", copies, " data-parallel copies");
  }
  if (shards % expert_copies == 0) return absl::OkStatus();
  return error("must be a multiple of the ", expert_copies, " copies with different experts");
}

const char* ShardingName(Sharding sharding) {
  switch (sharding) {
    case Sharding::kReplicated:
      return "replicated";
    case Sharding::kOptimizer:
      return "optimizer";
    case Sharding::kGradients:
      return "gradients";
    case Sharding::kFully:
      return "fully";
  }
  LOG(FATAL) << "no such sharding: " << static_cast<int>(sharding);
}

absl::StatusOr<Sharding> ParseSharding(absl::string_view name, absl::string_view option) {
  for (Sharding s :
       {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    if (name == ShardingName(s)) return s;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      option, "=", name, ": no such sharding; known are replicated, optimizer, gradients, fully"));
}

std::vector<StageRun> WeightRuns(const Schedule& schedule, int device, Residency residency) {
  return RunsOf(schedule, device, residency, PassOf);
}

std::vector<StageRun> GradientRuns(const Schedule& schedule, int device, Residency residency) {
  return RunsOf(schedule, device, residency, [](ActionKind kind) {
    return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight ? 0 : -1;
  });
}

std::vector<StageRun> JoinForPrefetch(std::vector<StageRun> runs) {
  std::map<std::pair<int, int>, size_t> last;  // of (replica, stage)
  size_t joined = 0;                           // of them, in their places
  for (size_t i = 0; i < runs.size(); ++i) {
    const StageRun run = runs[i];
    const int32_t begun = joined == 0 ? run.begin : runs[joined - 1].begin;
    const auto [at, first] = last.emplace(std::make_pair(run.replica, run.stage), joined);
    if (!first && runs[at->second].end >= begun) {
      runs[at->second].end = std::max(runs[at->second].end, run.end);
      continue;
    }
    at->second = joined;
    runs[joined++] = run;
  }
  runs.resize(joined);
  return runs;
}

}  // namespace pipelab
