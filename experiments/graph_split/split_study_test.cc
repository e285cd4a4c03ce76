// The study's parts on graphs that are small enough for a test.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/graph_split/scaled_graphs.h"
#include "experiments/graph_split/split_batches.h"
#include "experiments/graph_split/split_epochs.h"
#include "experiments/graph_split/split_steps.h"
#include "experiments/published/gsplit.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/graph_store.h"
#include "models/data/text_graph.h"
#include "pipelines/graphs/graph_partition.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// A smaller world: as many batches of an epoch, fewer vertices.
RealGraph Shrunk(RealGraph real) {
  real.targets = real.targets * 400'000 / real.vertices;
  real.targets = std::max<int64_t>(real.targets, 4096);
  real.vertices = 400'000;
  real.cache_bytes /= 16;
  return real;
}

TEST(PublishedGSplit, HasAllEpochs) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GSplitPaper paper, PublishedGSplit());
  EXPECT_EQ(paper.epochs.size(), 20);
  EXPECT_EQ(paper.Epoch("orkut", "sage", "dgl")->load, 60.09);
  EXPECT_EQ(paper.Epoch("orkut", "sage", "none"), nullptr);
  EXPECT_EQ(paper.partitions.size(), 4);
  const std::string wrong =
      R"({"paper": "p", "cluster": "c", "partitions": [], "epochs": [{"graph": "g", "model": "m",
      "system": "s", "sample": 1, "load": 1, "train": 1, "total": 4, "tag": "read"}]})";
  EXPECT_THAT(ParseGSplitPaper(wrong, "wrong.json").status().message(),
              testing::HasSubstr("must be sample + load + train"));
}

// Degrees, batches and cuts are those asked for.
TEST(ScaledGraph, HasItsDegreesAndGroups) {
  for (const RealGraph& real : {Shrunk(OrkutShape()), Shrunk(Papers100MShape())}) {
    SCOPED_TRACE(real.name);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ScaledGraph scaled, MakeScaledGraph(real, 32, 1));
    const double mean =
        static_cast<double>(scaled.graph.neighbours_E.size()) / scaled.graph.num_vertices();
    EXPECT_NEAR(mean, real.mean_degree, 0.12 * real.mean_degree);
    const std::vector<int32_t> batch = scaled.BatchOf(3);
    EXPECT_EQ(batch.size(), 32);
    EXPECT_EQ(std::set<int32_t>(batch.begin(), batch.end()).size(), 32);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners owners,
                                 MakePartition(PartitionMethod::kVertices, scaled.graph, {}, 4, 1));
    // Four parts of whole groups cut three quarters of the edges that leave groups by chance.
    EXPECT_NEAR(QualityOf(scaled.graph, owners, 4).cut, 0.75 * (1 - real.alike), 0.05);
  }
  EXPECT_FALSE(MakeScaledGraph(OrkutShape(), 3, 1).ok());
}

TEST(GraphEpochs, TablesAndClaimsAreWhole) {
  GraphEpochsSize size;
  size.orkut = Shrunk(OrkutShape());
  size.papers = Shrunk(Papers100MShape());
  size.orkut_scale = size.papers_scale = 64;
  size.batches = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GraphEpochs epochs, SimulateGraphEpochs(size));
  for (const Table& table : EpochTables(epochs)) EXPECT_THAT(table.status(), IsOk());
  std::set<std::string> ids;
  for (const Claim& claim : EpochClaims(epochs)) {
    EXPECT_THAT(CheckClaim(claim), IsOk()) << claim.id;
    EXPECT_TRUE(ids.insert(claim.id).second) << claim.id;
  }
  for (const char* graph : {"orkut", "papers100m"}) {
    const GraphEpochRow& data = epochs.Of(graph, "sage", GraphSystem::kData);
    const GraphEpochRow& split = epochs.Of(graph, "sage", GraphSystem::kSplit);
    EXPECT_GT(data.rows, split.rows);
    EXPECT_EQ(data.exchanged_bytes, 0);
    EXPECT_GT(epochs.Of(graph, "sage", GraphSystem::kSplit, 1, kRandomOwners).exchanged_bytes,
              split.exchanged_bytes);
    // GAT pushes products of sources: many more rows than GraphSAGE's targets.
    EXPECT_GT(epochs.Of(graph, "gat", GraphSystem::kPushPull).exchanged_bytes,
              2 * epochs.Of(graph, "sage", GraphSystem::kPushPull).exchanged_bytes);
  }
}

TextGraph SmallText() {
  GeneratedGraph shape;
  shape.degrees_V = PowerLawDegrees(3000, 1.8, 2, 100, 1);
  shape.classes = 12;
  shape.alike = 0.7;
  shape.width = 1;
  const GraphData data = GenerateGraph(shape, 1);
  TextGraph text;
  text.name = "generated";
  text.graph = data.graph;
  text.labels_V = data.labels_V;
  for (int c = 0; c < 12; ++c) {
    text.classes.push_back(absl::StrCat("class", c));
    text.words.push_back(absl::StrCat("word", c));
  }
  for (int32_t label : data.labels_V) text.words_V.push_back({label, label});
  return text;
}

TEST(Batches, AreCounted) {
  BatchCountsSize size;
  size.batch = 64;
  size.batches = 6;
  size.epochs = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const BatchCounts counts,
                               CountBatches(ToGraphData(SmallText(), 8), size));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GSplitPaper paper, PublishedGSplit());
  EXPECT_THAT(MethodTable(counts, paper).status(), IsOk());
  ASSERT_EQ(counts.methods.size(), 4);
  EXPECT_NEAR(counts.methods[0].crossing, 0.75, 0.02);
  EXPECT_LT(counts.methods[3].crossing, 0.6);
  EXPECT_GT(counts.more_rows, 1);
  EXPECT_GT(counts.more_edges, 1);
  for (const Claim& claim : BatchClaims(counts)) EXPECT_THAT(CheckClaim(claim), IsOk());
}

// Times are not judged here: that both kinds of steps run, and load what they should.
TEST(Steps, RunBothKinds) {
  StepSize size;
  size.batch = 32;
  size.hidden = 8;
  size.widths = {8, 512};
  size.steps = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<StepTimes> times, MeasureSteps(SmallText(), size));
  ASSERT_EQ(times.size(), 2);
  for (const StepTimes& of : times) {
    EXPECT_EQ(of.split.size(), 1);
    EXPECT_GT(of.rows, 1);
    EXPECT_GT(of.exchanged_mib, 0);
  }
  EXPECT_EQ(times[0].rows, times[1].rows);
  EXPECT_THAT(StepTable(times, size).status(), IsOk());
  for (const Claim& claim : StepClaims(times)) EXPECT_THAT(CheckClaim(claim), IsOk());
}

}  // namespace
}  // namespace pipelab
