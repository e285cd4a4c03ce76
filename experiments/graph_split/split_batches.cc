#include "experiments/graph_split/split_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/data/example_order.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/split_sampler.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr uint64_t kBatchesSeed = 1;

std::vector<int32_t> Batch(const GraphData& data, int64_t size, int64_t step) {
  const ExampleOrder order(static_cast<int64_t>(data.train.size()), size, kBatchesSeed,
                           "split/batch");
  std::vector<int32_t> batch;
  for (int64_t i = 0; i < size; ++i) batch.push_back(data.train[order.ExampleAt(step, i)]);
  return batch;
}

double OverMean(const std::vector<int64_t>& of) {
  const auto sum = static_cast<double>(std::accumulate(of.begin(), of.end(), int64_t{0}));
  return static_cast<double>(*std::max_element(of.begin(), of.end())) *
         static_cast<double>(of.size()) / sum;
}

// Counts for one batch's members: crossing edges, all edges; loads are added to the means.
void CountSamples(const std::vector<SplitSample>& samples, const VertexOwners& owners, int batches,
                  MethodCounts* counts, int64_t* crossing, int64_t* all) {
  std::vector<int64_t> edges, inputs;
  for (const SplitSample& sample : samples) {
    inputs.push_back(static_cast<int64_t>(sample.inputs.size()));
    edges.push_back(0);
    for (const SplitBlock& split : sample.blocks) {
      const GraphBlock& b = split.block;
      edges.back() += b.num_edges();
      for (int32_t e : b.edges) *crossing += owners[b.sources[e]] != owners[b.sources[0]];
    }
    *all += edges.back();
  }
  counts->edges += OverMean(edges) / batches;
  counts->inputs += OverMean(inputs) / batches;
}

void CountDataParallel(const GraphData& data, BatchCounts* counts) {
  const BatchCountsSize& size = counts->size;
  NeighbourSampler sampler(&data.graph, size.fanouts, kBatchesSeed);
  int64_t rows = 0, edges = 0, rows_of_one = 0, edges_of_one = 0;
  for (int step = 0; step < size.batches; ++step) {
    const std::vector<int32_t> batch = Batch(data, size.batch, step);
    const GraphSample one = sampler.Sample(step, batch);
    rows_of_one += one.blocks[0].num_sources();
    edges_of_one += one.num_edges();
    const int64_t part = size.batch / size.members;
    for (int m = 0; m < size.members; ++m) {
      const GraphSample own =
          sampler.Sample(step, absl::MakeConstSpan(batch).subspan(part * m, part));
      rows += own.blocks[0].num_sources();
      edges += own.num_edges();
    }
  }
  counts->more_rows = static_cast<double>(rows) / static_cast<double>(rows_of_one);
  counts->more_edges = static_cast<double>(edges) / static_cast<double>(edges_of_one);
}

}  // namespace

absl::StatusOr<BatchCounts> CountBatches(const GraphData& data, const BatchCountsSize& size) {
  BatchCounts counts;
  counts.size = size;
  counts.graph = data.name;
  CountDataParallel(data, &counts);
  PreSampling sampling;
  sampling.train = data.train;
  sampling.fanouts = size.fanouts;
  sampling.batch = size.batch;
  sampling.epochs = size.epochs;
  PIPELAB_ASSIGN_OR_RETURN(const PreSamples samples, SampleBefore(data.graph, sampling));
  for (PartitionMethod method : kPartitionMethods) {
    PIPELAB_ASSIGN_OR_RETURN(const VertexOwners owners, MakePartition(method, data.graph, samples,
                                                                      size.members, kBatchesSeed));
    MethodCounts of;
    of.method = method;
    of.cut = QualityOf(data.graph, owners, size.members).cut;
    auto group = MakeSplitMembers(&data.graph, &owners, size.members, size.fanouts, kBatchesSeed);
    int64_t crossing = 0, all = 0;
    for (int step = 0; step < size.batches; ++step) {
      CountSamples(SampleOfAll(step, Batch(data, size.batch, step), &group), owners, size.batches,
                   &of, &crossing, &all);
    }
    of.crossing = static_cast<double>(crossing) / static_cast<double>(all);
    counts.methods.push_back(of);
  }
  return counts;
}

Table MethodTable(const BatchCounts& counts, const GSplitPaper& paper) {
  Table t("partitions", absl::StrCat("Batches of ", counts.size.batch, " targets, divided over ",
                                     counts.size.members, " members: ", counts.graph));
  t.AddKey("owners");
  t.AddColumn({"cut", "edges of the graph between parts", "", "%", Origin::kComputed, 1});
  t.AddColumn({"crossing", "edges of batches between parts", "", "%", Origin::kComputed, 1});
  t.AddColumn({"edges", "edges of the fullest member", "", "x mean", Origin::kComputed, 2});
  t.AddColumn({"inputs", "rows of the fullest member", "", "x mean", Origin::kComputed, 2});
  t.AddColumn({"published_crossing", "crossing, papers100M", "", "%", Origin::kPublished, 0});
  t.AddColumn({"published_edges", "fullest, papers100M", "", "x mean", Origin::kPublished, 2});
  for (const MethodCounts& of : counts.methods) {
    Cell crossing = Missing("not printed"), edges = Missing("not printed");
    for (const PublishedGraphParts& p : paper.partitions) {
      if (p.method != PartitionMethodName(of.method)) continue;
      crossing = Published(ToPercent(p.crossing), p.tag);
      edges = Published(p.largest, p.tag);
    }
    t.AddRow({Label(PartitionMethodName(of.method)), Computed(ToPercent(of.cut)),
              Computed(ToPercent(of.crossing)), Computed(of.edges), Computed(of.inputs), crossing,
              edges});
  }
  return t;
}

std::vector<Claim> BatchClaims(const BatchCounts& counts) {
  std::vector<Claim> claims;
  Claim random = OwnClaim("gsplit.random_crossing", "edges that cross with owners by chance");
  random.unit = "%";
  Found(&random, Origin::kComputed, ToPercent(counts.methods[0].crossing));
  MetWithin(&random, 74, 76, "vertices of large degree are few, so chance does not even out");
  claims.push_back(std::move(random));

  Claim order =
      OwnClaim("gsplit.pre_samples", "by pre-samples fewer edges cross than by any other division");
  order.unit = "%";
  const MethodCounts& own = counts.methods.back();
  Found(&order, Origin::kComputed, ToPercent(own.crossing));
  bool least = true;
  for (const MethodCounts& of : counts.methods) least &= own.crossing <= of.crossing;
  MetIf(&order, least, "the least of four", "the graph's own edges tell as much as the samples");
  claims.push_back(std::move(order));

  Claim rows = OwnClaim("gsplit.redundant_rows",
                        "rows that data-parallel members load, over a batch's distinct ones");
  rows.unit = "x";
  Found(&rows, Origin::kComputed, counts.more_rows);
  MetIf(&rows, counts.more_rows >= 2.5, "at least 2.5 x", "batches are small for the graph");
  claims.push_back(std::move(rows));
  return claims;
}

}  // namespace pipelab
