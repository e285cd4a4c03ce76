#include "kernels/comm/collective_checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipelab {

const char* CollectiveName(CollectiveOp c) {
  switch (c) {
    case CollectiveOp::kNone:
      return "nothing";
    case CollectiveOp::kAllReduce:
      return "all-reduce";
    case CollectiveOp::kAllReduceMax:
      return "all-reduce of the largest";
    case CollectiveOp::kReduceScatter:
      return "reduce-scatter";
    case CollectiveOp::kAllGather:
      return "all-gather";
    case CollectiveOp::kBroadcast:
      return "broadcast";
  }
  return "?";
}

absl::Status CheckGroup(int size, int rank, absl::Span<const int> group) {
  bool member = false;
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i] < 0 || group[i] >= size || (i > 0 && group[i - 1] >= group[i])) {
      return absl::InvalidArgumentError(absl::StrCat("group {", absl::StrJoin(group, ", "),
                                                     "} is not ascending ranks below ", size));
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

absl::Status CheckRoot(int root, absl::Span<const int> group) {
  if (std::find(group.begin(), group.end(), root) != group.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("root ", root, " is not in group {", absl::StrJoin(group, ", "), "}"));
}

bool operator==(const CollectiveClaim& a, const CollectiveClaim& b) {
  return a.op == b.op && a.root == b.root && a.type == b.type && a.size == b.size;
}

absl::Status Disagreement(absl::Span<const int> group, int rank_a, const CollectiveClaim& a,
                          int rank_b, const CollectiveClaim& b) {
  const auto said = [](int rank, const CollectiveClaim& c) {
    return absl::StrCat("rank ", rank, " calls ", CollectiveName(c.op),
                        c.root < 0 ? "" : absl::StrCat(" from rank ", c.root), " with ", c.size,
                        " ", DataTypeName(c.type));
  };
  return absl::InternalError(absl::StrCat("members of group {", absl::StrJoin(group, ", "),
                                          "} disagree: ", said(rank_a, a), ", ", said(rank_b, b)));
}

std::string WaitedInCollective(int rank, absl::Duration limit, int missing, CollectiveOp op,
                               absl::Span<const int> group) {
  return absl::StrCat("rank ", rank, " waited ", absl::FormatDuration(limit), " for rank ", missing,
                      " in the ", CollectiveName(op), " of ranks {", absl::StrJoin(group, ", "),
                      "}");
}

}  // namespace pipelab
