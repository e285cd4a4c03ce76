#include "kernels/comm/collective_checks.h"

#include <algorithm>
#include <numeric>

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
    case CollectiveOp::kAllToAll:
      return "all-to-all";
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

absl::Status CheckExchange(const Tensor& data, absl::Span<const int64_t> to, const Tensor& result,
                           absl::Span<const int64_t> from, absl::Span<const int> group, int rank) {
  const auto fit = [&](const Tensor& tensor, absl::Span<const int64_t> parts) {
    int64_t sum = 0;
    for (const int64_t part : parts) {
      if (part < 0 || part > tensor.size() - sum) return false;
      sum += part;
    }
    return parts.size() == group.size();
  };
  if (!fit(data, to) || !fit(result, from)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parts of {", absl::StrJoin(to, ", "), "} and {", absl::StrJoin(from, ", "),
                     "} elements for a group of ", group.size(), ": there must be one per member, ",
                     "within ", data.size(), " and ", result.size()));
  }
  const auto me = std::lower_bound(group.begin(), group.end(), rank) - group.begin();
  if (data.type() == result.type() && to[me] == from[me]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " sends itself ", to[me], " ",
                                                 DataTypeName(data.type()), " and takes ", from[me],
                                                 " ", DataTypeName(result.type())));
}

int64_t PartBegin(absl::Span<const int64_t> parts, int i) {
  return std::accumulate(parts.begin(), parts.begin() + i, int64_t{0});
}

absl::Status WrongPart(int rank, int64_t sent, int64_t taken) {
  return absl::DataLossError(
      absl::StrCat("rank ", rank, " sent ", sent, " bytes to a collective that takes ", taken));
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
