#include "kernels/comm/in_process_collectives.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/comm/sum.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// One member's view of one collective.
class Meeting {
 public:
  Meeting(InProcessWorld& world, int rank, Collective collective, absl::Span<const int> group,
          absl::Duration limit)
      : world_(world),
        rank_(rank),
        collective_(collective),
        limit_(limit),
        group_(world.group(group)),
        me_(std::lower_bound(group.begin(), group.end(), rank) - group.begin()) {}

  int me() const { return me_; }
  int size() const { return static_cast<int>(group_.ranks.size()); }
  const Tensor& tensor(int member) const { return group_.members[member].tensor; }

  // Shows `tensor` to the others; returns when all have come with matching arguments.
  absl::Status Contribute(const Tensor& tensor, int root = -1) {
    Contribution& mine = group_.members[me_];
    mine.collective = collective_;
    mine.root = root;
    mine.tensor = Tensor(tensor).Adopt(nullptr);
    PIPELAB_RETURN_IF_ERROR(Advance());
    for (int i = 1; i < size(); ++i) PIPELAB_RETURN_IF_ERROR(CheckSame(0, i));
    return absl::OkStatus();
  }

  // Returns when nobody needs another member's memory any more. A member that leaves early, because
  // the run ended, does not come here: its contribution stays, and with it the memory that others
  // may still be reading.
  absl::Status Finish() {
    PIPELAB_RETURN_IF_ERROR(Advance());
    group_.members[me_].tensor = Tensor();
    return absl::OkStatus();
  }

 private:
  absl::Status Advance() {
    std::atomic<int64_t>& mine = group_.members[me_].phase;
    const int64_t phase = mine.load(std::memory_order_relaxed) + 1;
    mine.store(phase);
    for (int r : group_.ranks) {
      if (r != rank_) world_.parker(r).Unpark();
    }
    const auto missing = [&]() -> int {
      for (int i = 0; i < size(); ++i) {
        if (group_.members[i].phase.load() < phase) return i;
      }
      return -1;
    };
    return world_.Await(
        rank_, [&] { return missing() < 0; }, limit_,
        [&] {
          const int i = missing();
          return absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(limit_),
                              " for rank ", group_.ranks[i < 0 ? 0 : i], " in the ", Describe());
        });
  }

  absl::Status CheckSame(int i, int j) {
    const Contribution &a = group_.members[i], &b = group_.members[j];
    if (a.collective == b.collective && a.root == b.root && a.tensor.type() == b.tensor.type() &&
        a.tensor.size() == b.tensor.size()) {
      return absl::OkStatus();
    }
    const auto said = [&](int member, const Contribution& c) {
      return absl::StrCat("rank ", group_.ranks[member], " calls ", CollectiveName(c.collective),
                          c.root < 0 ? "" : absl::StrCat(" from rank ", c.root), " with ",
                          c.tensor.size(), " ", DataTypeName(c.tensor.type()));
    };
    return world_.Fail(
        absl::InternalError(absl::StrCat("members of group {", absl::StrJoin(group_.ranks, ", "),
                                         "} disagree: ", said(i, a), ", ", said(j, b))));
  }

  std::string Describe() const {
    return absl::StrCat(CollectiveName(collective_), " of ranks {",
                        absl::StrJoin(group_.ranks, ", "), "}");
  }

  InProcessWorld& world_;
  const int rank_;
  const Collective collective_;
  const absl::Duration limit_;
  Group& group_;
  const int me_;
};

absl::Status CheckGroup(const InProcessWorld& world, int rank, absl::Span<const int> group) {
  bool member = false;
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i] < 0 || group[i] >= world.size() || (i > 0 && group[i - 1] >= group[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "group {", absl::StrJoin(group, ", "), "} is not ascending ranks below ", world.size()));
    }
    member |= group[i] == rank;
  }
  if (member) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is not in group {",
                                                 absl::StrJoin(group, ", "), "} that it calls"));
}

absl::Status CheckParts(const Tensor& data, const Tensor& part, absl::Span<const int> group) {
  if (data.type() == part.type() &&
      data.size() == part.size() * static_cast<int64_t>(group.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(data.size(), " ", DataTypeName(data.type()),
                                                 " are not ", group.size(), " parts of ",
                                                 part.size(), " ", DataTypeName(part.type())));
}

// Copies unless both are the same memory (a part that already lies in its place).
void CopyBytes(const void* from, void* to, int64_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

absl::Status AllReduceInProcess(InProcessWorld& world, int rank, const Tensor& data,
                                absl::Span<const int> group, absl::Duration limit) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world, rank, group));
  if (group.size() == 1) return world.Check();
  Meeting meeting(world, rank, Collective::kAllReduce, group, limit);
  PIPELAB_RETURN_IF_ERROR(meeting.Contribute(data));
  // Each member sums one chunk of everybody's and writes the sum to everybody's: no scratch memory.
  // Chunks are whole cache lines, so that no two members write to the same one.
  const int64_t n = data.size(), lines = (n + 31) / 32;
  const int64_t begin = std::min(n, lines * meeting.me() / meeting.size() * 32);
  const int64_t end = std::min(n, lines * (meeting.me() + 1) / meeting.size() * 32);
  absl::InlinedVector<const void*, 8> inputs;
  absl::InlinedVector<void*, 8> outputs;
  for (int i = 0; i < meeting.size(); ++i) {
    inputs.push_back(meeting.tensor(i).data());
    outputs.push_back(meeting.tensor(i).data());
  }
  SumInOrder(inputs, outputs, data.type(), begin, end - begin);
  return meeting.Finish();
}

absl::Status ReduceScatterInProcess(InProcessWorld& world, int rank, const Tensor& data,
                                    const Tensor& part, absl::Span<const int> group,
                                    absl::Duration limit) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world, rank, group));
  PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
  if (group.size() == 1) {
    CopyBytes(data.data(), part.data(), part.bytes());
    return world.Check();
  }
  Meeting meeting(world, rank, Collective::kReduceScatter, group, limit);
  PIPELAB_RETURN_IF_ERROR(meeting.Contribute(data));
  absl::InlinedVector<const void*, 8> inputs;
  for (int i = 0; i < meeting.size(); ++i) {
    inputs.push_back(static_cast<const char*>(meeting.tensor(i).data()) +
                     meeting.me() * part.bytes());
  }
  void* const output = part.data();
  SumInOrder(inputs, absl::MakeConstSpan(&output, 1), data.type(), 0, part.size());
  return meeting.Finish();
}

absl::Status AllGatherInProcess(InProcessWorld& world, int rank, const Tensor& part,
                                const Tensor& data, absl::Span<const int> group,
                                absl::Duration limit) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world, rank, group));
  PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
  if (group.size() == 1) {
    CopyBytes(part.data(), data.data(), part.bytes());
    return world.Check();
  }
  Meeting meeting(world, rank, Collective::kAllGather, group, limit);
  PIPELAB_RETURN_IF_ERROR(meeting.Contribute(part));
  for (int i = 0; i < meeting.size(); ++i) {
    CopyBytes(meeting.tensor(i).data(), static_cast<char*>(data.data()) + i * part.bytes(),
              part.bytes());
  }
  return meeting.Finish();
}

absl::Status BroadcastInProcess(InProcessWorld& world, int rank, const Tensor& data, int root,
                                absl::Span<const int> group, absl::Duration limit) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world, rank, group));
  const auto at = std::find(group.begin(), group.end(), root);
  if (at == group.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("root ", root, " is not in group {", absl::StrJoin(group, ", "), "}"));
  }
  if (group.size() == 1) return world.Check();
  Meeting meeting(world, rank, Collective::kBroadcast, group, limit);
  PIPELAB_RETURN_IF_ERROR(meeting.Contribute(data, root));
  CopyBytes(meeting.tensor(at - group.begin()).data(), data.data(), data.bytes());
  return meeting.Finish();
}

}  // namespace pipelab
