// Why a schedule cannot be run to its end: the slow path of Validate and Lower.
#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/ir/dependency.h"
#include "pipelines/ir/validate.h"

namespace pipelab {
namespace {

// An action of one device that another waits for.
struct Producer {
  int device = 0;
  int64_t position = 0;
};

class Jam {
 public:
  Jam(const Schedule& s, absl::Span<const int32_t> done)
      : s_(s), done_(done), index_(s), recomputed_(s.RecomputedStages()) {
    for (int d = 0; d < s.num_devices(); ++d) {
      for (int64_t i = done[d]; i < Size(d); ++i) {
        ForEachResult(s.order[d][i], [&](const Event& e) {
          pending_[index_(e)].push_back({d, i});
        });
      }
    }
  }

  absl::Status Describe() const {
    for (int d = 0; d < s_.num_devices(); ++d) {
      if (done_[d] == Size(d)) continue;
      for (const Producer& p : WaitsFor(d)) {
        if (p.device == d) return OutOfOrder(d, p.position);
      }
    }
    return Deadlock(ShortestCycle());
  }

 private:
  int64_t Size(int d) const { return static_cast<int64_t>(s_.order[d].size()); }
  const Action& Head(int d) const { return s_.order[d][done_[d]]; }

  // What the first action that device d did not get through waits for.
  std::vector<Producer> WaitsFor(int d) const {
    std::vector<Producer> producers;
    const Action& a = Head(d);
    ForEachDependency(s_, recomputed_[a.stage], a, [&](const Event& e) {
      const auto it = pending_.find(index_(e));
      if (it == pending_.end()) return;
      producers.insert(producers.end(), it->second.begin(), it->second.end());
    });
    return producers;
  }

  absl::Status OutOfOrder(int d, int64_t needed) const {
    const Action& a = Head(d);
    const Action& b = s_.order[d][needed];
    std::string role;
    if (a.stage == b.stage && a.slice == b.slice) {
      if (b.kind == ActionKind::kForward) role = "its forward ";
      if (b.kind == ActionKind::kRecompute) role = "its recompute ";
      if (b.kind == ActionKind::kBackwardInput) role = "its input part ";
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "device ", d, ", position ", done_[d], ": ", ToString(a), " comes before ", role,
        ToString(b), role.empty() ? ", which it needs" : "", " (position ", needed, ")"));
  }

  // Each link: a device that waits, and what for. The last link's producer is on the first device.
  using Cycle = std::vector<std::pair<int, Producer>>;

  Cycle ShortestCycle() const {
    std::vector<std::vector<Producer>> waits(s_.num_devices());
    for (int d = 0; d < s_.num_devices(); ++d) {
      if (done_[d] < Size(d)) waits[d] = WaitsFor(d);
    }
    // Breadth first from each device. Pipelines of thousands of devices get a cycle that is
    // shortest among those through the first few hundred, once one is found.
    constexpr int kMaxStarts = 512;
    Cycle best;
    int starts = 0;
    for (int start = 0; start < s_.num_devices(); ++start) {
      if (waits[start].empty() || (!best.empty() && ++starts > kMaxStarts)) continue;
      Cycle found = CycleThrough(start, waits);
      if (!found.empty() && (best.empty() || found.size() < best.size())) best = std::move(found);
    }
    return best;
  }

  Cycle CycleThrough(int start, const std::vector<std::vector<Producer>>& waits) const {
    // On the shortest way from `start`: the device before, and what it waits for here.
    std::vector<int> from(s_.num_devices(), -1);
    std::vector<Producer> by(s_.num_devices());
    std::deque<int> queue = {start};
    while (!queue.empty()) {
      const int d = queue.front();
      queue.pop_front();
      for (const Producer& p : waits[d]) {
        if (from[p.device] >= 0) continue;
        from[p.device] = d;
        by[p.device] = p;
        if (p.device != start) {
          queue.push_back(p.device);
          continue;
        }
        Cycle cycle;
        int at = start;
        do {
          cycle.emplace_back(from[at], by[at]);
          at = from[at];
        } while (at != start);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
    }
    return {};
  }

  absl::Status Deadlock(const Cycle& cycle) const {
    CHECK(!cycle.empty()) << "a jam of complete lists has a cycle";
    std::string text = "deadlock: ";
    for (size_t i = 0; i < cycle.size(); ++i) {
      const auto& [device, producer] = cycle[i];
      if (i == 0) text += Describe(device, done_[device]);
      absl::StrAppend(&text, i == 0 ? " waits for " : ", which waits for ",
                      Describe(producer.device, producer.position));
      if (producer.position > done_[producer.device]) {
        absl::StrAppend(&text, ", which comes after ",
                        Describe(producer.device, done_[producer.device]));
      }
    }
    return absl::InvalidArgumentError(text);
  }

  std::string Describe(int d, int64_t position) const {
    return absl::StrCat("device ", d, " position ", position, " (", ToString(s_.order[d][position]),
                        ")");
  }

  const Schedule& s_;
  absl::Span<const int32_t> done_;
  EventIndex index_;
  std::vector<bool> recomputed_;
  absl::flat_hash_map<int64_t, std::vector<Producer>> pending_;  // [event] who has not yet made it
};

}  // namespace

absl::Status CheckAllDone(const Schedule& schedule, absl::Span<const int32_t> done) {
  for (int d = 0; d < schedule.num_devices(); ++d) {
    if (done[d] < static_cast<int64_t>(schedule.order[d].size())) {
      return Jam(schedule, done).Describe();
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
