#include "models/layers/graph_peers.h"

#include <algorithm>
#include <numeric>

#include "kernels/tensor/host_values.h"
#include "models/layers/graph_index.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

Tensor Ids(const std::vector<int32_t>& ids, Arena* arena) {
  Tensor tensor = arena->Allocate(DataType::kInt32, {static_cast<int64_t>(ids.size())},
                                  MemoryKind::kActivation);
  SetHostIds(tensor, ids);
  return tensor;
}

// Own row r is the sum of its own gradient, which the first `own` rows have, and of what comes back
// for it behind them, in the order in which it was sent. A row that is no source here was sent, so
// there are no more targets than sources.
GraphBlock Additions(const RowShuffle& s) {
  std::vector<int32_t> rows(s.own);
  std::iota(rows.begin(), rows.end(), 0);
  rows.insert(rows.end(), s.sent.begin(), s.sent.end());
  GraphBlock block;
  block.num_targets = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()) + 1;
  block.sources.resize(rows.size());
  block.offsets.resize(block.num_targets + 1);
  for (int32_t r : rows) ++block.offsets[r + 1];
  std::partial_sum(block.offsets.begin(), block.offsets.end(), block.offsets.begin());
  std::vector<int32_t> next(block.offsets.begin(), block.offsets.end() - 1);
  block.edges.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) block.edges[next[rows[i]]++] = static_cast<int32_t>(i);
  return block;
}

int64_t Sum(const std::vector<int64_t>& rows) {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

}  // namespace

std::vector<RowShuffle> ShufflesOf(const SplitSample& sample) {
  std::vector<RowShuffle> shuffles;
  for (const SplitBlock& split : sample.blocks) shuffles.push_back(split.shuffle);
  return shuffles;
}

GraphPeers::GraphPeers(const std::vector<RowShuffle>& shuffles, TensorPeers* group,
                       Backend* backend)
    : group_(group), backend_(backend) {
  for (const RowShuffle& s : shuffles) {
    shuffles_.push_back({s.own, s.to, s.from, Ids(s.sent, &backend->arena()),
                         MakeGraphIndex(Additions(s), backend)});
  }
}

void GraphPeers::Exchange(const Tensor& rows, const std::vector<int64_t>& to, const Tensor& came,
                          const std::vector<int64_t>& from) const {
  const int64_t columns = rows.dim(1);
  const auto numbers = [columns](std::vector<int64_t> of_rows) {
    for (int64_t& n : of_rows) n *= columns;
    return of_rows;
  };
  group_->Exchange(rows, numbers(to), came, numbers(from));
}

Tensor GraphPeers::Go(int block, const Tensor& own_RC) const {
  const Shuffle& s = shuffles_[block];
  const int64_t columns = own_RC.dim(1), sources = s.own + Sum(s.from);
  const Tensor out_NC = backend_->Allocate({s.sent_N.size(), columns});
  if (out_NC.size() > 0) backend_->graphs().Gather(s.sent_N, own_RC, out_NC);
  Tensor x_SC = backend_->Allocate({sources, columns});
  Exchange(out_NC, s.to, x_SC.Rows(s.own, sources), s.from);
  if (s.own > 0) backend_->Copy(own_RC.Rows(0, s.own), x_SC.Rows(0, s.own));
  return x_SC;
}

Tensor GraphPeers::Return(int block, const Tensor& dx_SC) const {
  const Shuffle& s = shuffles_[block];
  const int64_t columns = dx_SC.dim(1), rows = s.own + Sum(s.to);
  Tensor added_NC = backend_->Allocate({rows, columns});
  Exchange(dx_SC.Rows(s.own, dx_SC.dim(0)), s.from, added_NC.Rows(s.own, rows), s.to);
  if (s.own > 0) backend_->Copy(dx_SC.Rows(0, s.own), added_NC.Rows(0, s.own));
  Tensor own_RC = backend_->Allocate({s.additions.num_targets, columns});
  if (own_RC.size() > 0) {
    backend_->graphs().Aggregate(s.additions, AggregateMode::kSum, added_NC, own_RC);
  }
  return own_RC;
}

Bytes GoBytes(const RowShuffle& shuffle, int64_t columns) {
  return Bytes(4 * columns * shuffle.sent_rows());
}

Bytes ReturnBytes(const RowShuffle& shuffle, int64_t columns) {
  return Bytes(4 * columns * shuffle.came_rows());
}

Bytes SampleBytes(const SplitSample& sample, int64_t members) {
  const auto hops = static_cast<int64_t>(sample.asked.size());
  return Bytes(4 * (Sum(sample.asked) + hops * (members - 1)));
}

absl::StatusOr<SplitSample> SampleWithPeers(int64_t step, absl::Span<const int32_t> batch,
                                            SplitMember* member, TensorPeers* group, Arena* arena) {
  const auto members = static_cast<size_t>(group->size());
  const std::vector<int64_t> one(members, 1);
  member->Begin(step, batch);
  while (!member->done()) {
    std::vector<int32_t> counts, ids;
    std::vector<int64_t> to, from;
    for (const std::vector<int32_t>& for_member : member->Draw()) {
      counts.push_back(static_cast<int32_t>(for_member.size()));
      to.push_back(counts.back());
      ids.insert(ids.end(), for_member.begin(), for_member.end());
    }
    const Tensor came_counts = Ids(std::vector<int32_t>(members), arena);
    group->Exchange(Ids(counts, arena), one, came_counts, one);
    PIPELAB_RETURN_IF_ERROR(group->status());
    for (int32_t n : HostIds(came_counts)) from.push_back(std::max(n, 0));
    const Tensor came_ids = Ids(std::vector<int32_t>(Sum(from)), arena);
    group->Exchange(Ids(ids, arena), to, came_ids, from);
    PIPELAB_RETURN_IF_ERROR(group->status());
    const std::vector<int32_t> all = HostIds(came_ids);
    std::vector<std::vector<int32_t>> came;
    auto next = all.begin();
    for (int64_t n : from) {
      came.emplace_back(next, next + n);
      next += n;
    }
    PIPELAB_RETURN_IF_ERROR(member->Receive(came));
  }
  return member->Take();
}

}  // namespace pipelab
