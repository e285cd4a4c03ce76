#include "pipelines/graphs/graph_placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

constexpr uint8_t kNowhere = 255, kEverywhere = 254;
constexpr int64_t kFloat = 4, kId = 4;

// Part i of `parts` nearly equal ones.
absl::Span<const int32_t> PartOf(absl::Span<const int32_t> all, int i, int parts) {
  const size_t begin = all.size() * i / parts, end = all.size() * (i + 1) / parts;
  return all.subspan(begin, end - begin);
}

void AddDrawn(const GraphBlock& block, size_t hop, GraphWork* work) {
  work->drawn.resize(std::max(work->drawn.size(), hop + 1));
  work->drawn[hop] = CountsOf(block);
}

// Times `columns`, so that shares of the first layer stay whole.
int64_t EdgesOf(const GraphWork& work, int columns) {
  int64_t sum = 0;
  for (size_t l = 0; l < work.layers.size(); ++l) {
    for (const BlockCounts& b : work.layers[l]) sum += b.edges * (l == 0 ? 1 : columns);
  }
  return sum;
}

}  // namespace

const char* GraphSystemName(GraphSystem system) {
  switch (system) {
    case GraphSystem::kData:
      return "data-parallel";
    case GraphSystem::kCache:
      return "divided cache";
    case GraphSystem::kPushPull:
      return "push-pull";
    case GraphSystem::kSplit:
      return "split";
  }
  return "?";
}

BlockCounts CountsOf(const GraphBlock& block) {
  return {block.num_sources(), block.num_targets, block.num_edges()};
}

int64_t GraphStep::rows() const {
  int64_t sum = 0;
  for (const GraphWork& m : members) sum += m.host_rows + m.peer_rows + m.own_rows;
  return sum / first_columns;
}

int64_t GraphStep::edges() const {
  int64_t sum = 0;
  for (const GraphWork& m : members) sum += EdgesOf(m, first_columns);
  return sum / first_columns;
}

double GraphStep::largest_edges() const {
  int64_t most = 0;
  for (const GraphWork& m : members) most = std::max(most, EdgesOf(m, first_columns));
  const auto mean =
      static_cast<double>(edges()) * first_columns / static_cast<double>(members.size());
  return mean > 0 ? static_cast<double>(most) / mean : 1;
}

int64_t GraphStep::exchanged_bytes() const {
  int64_t sum = 0;
  for (const auto& layers : {forward, backward}) {
    for (const ByteMatrix& m : layers) sum += std::accumulate(m.begin(), m.end(), int64_t{0});
  }
  return sum;
}

void Add(const GraphStep& more, GraphStep* sum) {
  if (sum->members.empty()) {
    *sum = more;
    return;
  }
  const auto add_bytes = [](const ByteMatrix& a, ByteMatrix* b) {
    CHECK_EQ(a.size(), b->size());
    for (size_t i = 0; i < a.size(); ++i) (*b)[i] += a[i];
  };
  const auto add_all = [&](const std::vector<ByteMatrix>& a, std::vector<ByteMatrix>* b) {
    CHECK_EQ(a.size(), b->size());
    for (size_t i = 0; i < a.size(); ++i) add_bytes(a[i], &(*b)[i]);
  };
  CHECK_EQ(more.members.size(), sum->members.size());
  for (size_t m = 0; m < more.members.size(); ++m) {
    const GraphWork& from = more.members[m];
    GraphWork& to = sum->members[m];
    to.host_rows += from.host_rows;
    to.peer_rows += from.peer_rows;
    to.own_rows += from.own_rows;
    for (size_t h = 0; h < from.drawn.size(); ++h) Add(from.drawn[h], &to.drawn[h]);
    for (size_t l = 0; l < from.layers.size(); ++l) {
      for (size_t b = 0; b < from.layers[l].size(); ++b) Add(from.layers[l][b], &to.layers[l][b]);
    }
  }
  add_all(more.sampling, &sum->sampling);
  add_bytes(more.loading, &sum->loading);
  add_all(more.forward, &sum->forward);
  add_all(more.backward, &sum->backward);
}

GraphCounter::GraphCounter(const GraphSetUp& set_up)
    : set_up_(set_up), sampler_(set_up.graph, set_up.fanouts, set_up.seed) {}

absl::StatusOr<std::unique_ptr<GraphCounter>> GraphCounter::Make(
    const GraphSetUp& set_up, const std::vector<int64_t>& inputs_V, VertexOwners owners) {
  const size_t vertices = set_up.graph->num_vertices();
  if (set_up.hosts < 1 || set_up.members < 1 || set_up.all() > kEverywhere ||
      set_up.fanouts.empty() || set_up.width < set_up.members || set_up.classes < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a group of ", set_up.hosts, " x ", set_up.members, " members with rows of ", set_up.width,
        " numbers: needs at least a member, a fan-out, a class and a column a member"));
  }
  const bool split = set_up.system == GraphSystem::kSplit;
  if (inputs_V.size() != vertices || (split && owners.size() != vertices)) {
    return absl::InvalidArgumentError("counts and owners of vertices: must be one for each vertex");
  }
  std::unique_ptr<GraphCounter> counter(new GraphCounter(set_up));
  if (split) {
    for (uint8_t owner : owners) {
      if (owner < set_up.members) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("owner ", owner, ": a host has ", set_up.members, " members"));
    }
    counter->owners_ = std::move(owners);
    counter->split_ = MakeSplitMembers(set_up.graph, &counter->owners_, set_up.members,
                                       set_up.fanouts, set_up.seed);
  }
  counter->FillCaches(inputs_V);
  return counter;
}

void GraphCounter::FillCaches(const std::vector<int64_t>& inputs_V) {
  cached_at_.assign(inputs_V.size(), kNowhere);
  if (set_up_.system == GraphSystem::kData) return;
  const bool columns = set_up_.system == GraphSystem::kPushPull;
  const int64_t row = set_up_.width * kFloat / (columns ? set_up_.members : 1);
  const int64_t capacity = set_up_.cache_bytes / row;
  std::vector<int32_t> hottest(inputs_V.size());
  std::iota(hottest.begin(), hottest.end(), 0);
  std::stable_sort(hottest.begin(), hottest.end(),
                   [&](int32_t a, int32_t b) { return inputs_V[a] > inputs_V[b]; });
  std::vector<int64_t> used(set_up_.members);
  // r rows at each member and the rest once: r + (rows - r) / members = capacity.
  const auto rows = static_cast<int64_t>(hottest.size());
  const int64_t repeated = set_up_.repeat_hottest && set_up_.members > 1
                               ? (capacity * set_up_.members - rows) / (set_up_.members - 1)
                               : 0;
  for (size_t i = 0; i < hottest.size(); ++i) {
    const int32_t v = hottest[i];
    if (static_cast<int64_t>(i) < repeated) {
      cached_at_[v] = kEverywhere;
      continue;
    }
    // In turn; an owner has its own, whatever its rank among all.
    const int m = set_up_.system == GraphSystem::kSplit ? owners_[v]
                  : columns                             ? 0
                                                        : static_cast<int>(i % set_up_.members);
    if (used[m] == capacity) continue;
    ++used[m];
    cached_at_[v] = columns ? kEverywhere : static_cast<uint8_t>(m);
  }
}

void GraphCounter::LoadRow(int32_t v, int first, int member, GraphStep* counts) {
  GraphWork& work = counts->members[first + member];
  const uint8_t at = cached_at_[v];
  if (at == kNowhere) {
    ++work.host_rows;
  } else if (at == kEverywhere || at == member) {
    ++work.own_rows;
  } else {
    ++work.peer_rows;
    counts->loading[(first + at) * set_up_.all() + first + member] += counts->row_bytes;
  }
}

GraphStep GraphCounter::Count(int64_t step, absl::Span<const int32_t> batch) {
  const int n = set_up_.all();
  GraphStep counts;
  const bool columns = set_up_.system == GraphSystem::kPushPull;
  counts.first_columns = columns ? set_up_.members : 1;
  counts.row_bytes = set_up_.width * kFloat / counts.first_columns;
  counts.members.resize(n);
  counts.loading.resize(static_cast<size_t>(n) * n);
  counts.forward.resize(set_up_.layers());
  counts.backward.resize(set_up_.layers());
  for (GraphWork& m : counts.members) m.layers.resize(set_up_.layers());
  for (int h = 0; h < set_up_.hosts; ++h) {
    const absl::Span<const int32_t> part = PartOf(batch, h, set_up_.hosts);
    if (set_up_.system == GraphSystem::kSplit) {
      CountSplit(step, part, h * set_up_.members, &counts);
    } else {
      CountOwnBlocks(step, part, h * set_up_.members, &counts);
    }
  }
  return counts;
}

void GraphCounter::CountOwnBlocks(int64_t step, absl::Span<const int32_t> batch, int first,
                                  GraphStep* counts) {
  const bool columns = set_up_.system == GraphSystem::kPushPull;
  for (int m = 0; m < set_up_.members; ++m) {
    const GraphSample sample = sampler_.Sample(step, PartOf(batch, m, set_up_.members));
    GraphWork& work = counts->members[first + m];
    for (size_t l = 0; l < sample.blocks.size(); ++l) {
      work.layers[l].push_back(CountsOf(sample.blocks[l]));
      AddDrawn(sample.blocks[l], sample.blocks.size() - 1 - l, &work);
    }
    // All members load their columns of each member's rows.
    for (int32_t v : sample.blocks[0].sources) {
      if (!columns) LoadRow(v, first, m, counts);
      for (int j = 0; columns && j < set_up_.members; ++j) LoadRow(v, first, j, counts);
    }
  }
  if (columns) PushColumns(first, counts);
}

void GraphCounter::PushColumns(int first, GraphStep* counts) {
  const size_t n = set_up_.all();
  if (counts->sampling.empty()) counts->sampling.resize(1, ByteMatrix(n * n));
  if (counts->forward[0].empty()) counts->forward[0] = counts->backward[0] = ByteMatrix(n * n);
  std::vector<BlockCounts> all;
  for (int m = 0; m < set_up_.members; ++m) {
    all.push_back(counts->members[first + m].layers[0][0]);
  }
  for (int m = 0; m < set_up_.members; ++m) {
    const BlockCounts& block = all[m];
    const int64_t rows = set_up_.heads > 0 ? block.sources : block.targets;
    for (int j = 0; j < set_up_.members; ++j) {
      if (j == m) continue;
      const size_t out = (first + m) * n + first + j, in = (first + j) * n + first + m;
      // The block itself goes to everybody, partial results come back, and gradients go out.
      counts->sampling[0][out] += kId * (block.sources + block.targets + 1 + block.edges);
      counts->forward[0][in] += kFloat * rows * set_up_.outputs_of(0);
      counts->backward[0][out] += kFloat * rows * set_up_.outputs_of(0);
    }
    counts->members[first + m].layers[0] = all;
  }
}

void GraphCounter::CountSplit(int64_t step, absl::Span<const int32_t> batch, int first,
                              GraphStep* counts) {
  const size_t n = set_up_.all();
  const std::vector<SplitSample> samples = SampleOfAll(step, batch, &split_);
  const auto layers = static_cast<size_t>(set_up_.layers());
  const auto make = [&](ByteMatrix* bytes) {
    if (bytes->empty()) bytes->resize(n * n);
  };
  counts->sampling.resize(layers);
  for (size_t l = 0; l < layers; ++l) {
    make(&counts->sampling[l]);
    make(&counts->forward[l]);
    if (l > 0) make(&counts->backward[l]);  // nobody asks for gradients of input rows
  }
  for (int m = 0; m < set_up_.members; ++m) {
    GraphWork& work = counts->members[first + m];
    for (int32_t v : samples[m].inputs) LoadRow(v, first, m, counts);
    for (size_t l = 0; l < layers; ++l) {
      const SplitBlock& split = samples[m].blocks[l];
      const size_t hop = layers - 1 - l;
      work.layers[l].push_back(CountsOf(split.block));
      AddDrawn(split.block, hop, &work);
      for (int j = 0; j < set_up_.members; ++j) {
        if (j == m) continue;
        const size_t out = (first + m) * n + first + j, in = (first + j) * n + first + m;
        const int64_t bytes = kFloat * split.shuffle.to[j] * set_up_.inputs_of(l);
        counts->forward[l][out] += bytes;
        if (l > 0) counts->backward[l][in] += bytes;
        counts->sampling[hop][out] += kId * split.shuffle.from[j];
      }
    }
  }
}

}  // namespace pipelab
