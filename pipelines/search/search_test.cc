#include "pipelines/search/search.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/layer_list.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/search/breakdown.h"
#include "pipelines/search/order_bound.h"
#include "pipelines/search/placement_bound.h"
#include "pipelines/search/search_request.h"
#include "pipelines/search/step_bounds.h"
#include "tests/support/step_testing.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

class SearchTest : public StepTest {
 protected:
  SearchTest() {
    search_.devices = 16;
    search_.batch = 16;
    search_.methods = PublishedMethods();
    for (SearchMethod& m : NewerMethods()) search_.methods.push_back(std::move(m));
  }

  SearchRequest search_;
};

TEST(NodeDevices, AreThoseOfANode) {
  for (const auto& [name, devices] : {std::make_pair("dgx1-v100", 8), std::make_pair("dgx-a100", 8),
                                      std::make_pair("dgx-h100", 8), std::make_pair("summit", 3),
                                      std::make_pair("p100-pcie", 8)}) {
    EXPECT_EQ(NodeDevices(LoadCluster("--cluster", name).value()), devices) << name;
  }
}

TEST_F(SearchTest, GroupsAreBlocks) { EXPECT_EQ(model_.num_groups(), 18); }

TEST_F(SearchTest, StopsWithTheBestSoFar) {
  int64_t asked = 0;
  search_.stop = [&asked] {
    ++asked;
    return false;
  };
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult all, Search(grid_, search_));
  EXPECT_FALSE(all.stopped);
  const int64_t last = asked - 1;  // shortly before the end
  asked = 0;
  search_.stop = [&asked, last] { return ++asked > last; };
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult some, Search(grid_, search_));
  EXPECT_TRUE(some.stopped);
  ASSERT_FALSE(some.best.empty());
  EXPECT_GE(some.best[0].step_time, all.best[0].step_time);
  search_.stop = [] { return true; };
  EXPECT_THAT(Search(grid_, search_), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
}

std::vector<std::string> Lines(const std::vector<RankedStep>& results) {
  std::vector<std::string> lines;
  for (const RankedStep& r : results) {
    lines.push_back(absl::StrCat(r.method, " ", r.config.ToString(), " ", r.step_time.value(), " ",
                                 r.largest_device.value(), " ", r.tflops_per_device));
  }
  return lines;
}

struct SearchCase {
  const char* cluster;
  int64_t batch;
  double memory;  // of a device, of what the cluster's have
  bool tied_embeddings;
};

class SearchOf : public testing::TestWithParam<SearchCase> {};

SearchRequest ByAllMethods(int64_t devices, int64_t batch) {
  SearchRequest search;
  search.devices = devices;
  search.batch = batch;
  search.methods = PublishedMethods();
  for (SearchMethod& m : NewerMethods()) search.methods.push_back(std::move(m));
  for (const bool overlap : {false, true}) {  // messages block, or do so in warm-up and flush
    SearchMethod& m = search.methods.emplace_back();
    m.name =
        overlap ? "interleaved, overlapped while steady" : "interleaved, reductions overlapped";
    m.schemes = {"interleaved"};
    m.shardings = {Sharding::kReplicated, Sharding::kOptimizer};
    m.overlap_pipeline = overlap;
    m.steady_overlap = {overlap};
  }
  // A layout of whole blocks, one that parts a block, and one of other models.
  for (const auto& [stages, layout] :
       {std::make_pair(16, "Et|(t|)*14tL"), std::make_pair(2, "16+18"), std::make_pair(2, "3+3")}) {
    SearchMethod& m = search.methods.emplace_back();
    m.name = absl::StrCat("layout ", layout);
    m.schemes = {"interleaved"};
    m.virtual_stages = {stages};
    m.shardings = {Sharding::kFully};
    m.residency = Residency::kMicroBatch;
    m.layout = layout;
    m.pipeline = false;
  }
  search.top = 3;
  return search;
}

// What was found against simulating everything: the same of every method, to the nanosecond, in the
// same order, and the same best of all methods together.
void ExpectEqualsSimulatingAll(const StepModel& model, const SearchRequest& search,
                               const SearchResult& found) {
  SearchRequest exhaustive = search;
  exhaustive.simulate_all = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult all, Search(model, exhaustive));
  EXPECT_THAT(Lines(found.best), testing::ElementsAreArray(Lines(all.best)));
  EXPECT_LT(2 * found.refusals.simulated, all.refusals.simulated);
  SearchRequest overall = search;
  overall.together = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult together, Search(model, overall));
  std::vector<std::string> first = Lines(all.best);
  first.resize(std::min(first.size(), static_cast<size_t>(search.top)));
  EXPECT_EQ(Lines(together.best), first);
  EXPECT_LE(together.refusals.simulated, found.refusals.simulated);
  for (const RankedStep& r : found.best) {
    EXPECT_LE(r.largest_device, model.cluster->device.memory.value);
  }
}

TEST_P(SearchOf, EqualsSimulatingAll) {
  const SearchCase& of = GetParam();
  const GroupedModel model = SmallGpt(of.tied_embeddings);
  ClusterSpec cluster = LoadCluster("--cluster", of.cluster).value();
  Bytes& memory = cluster.device.memory.value;
  memory = Bytes(static_cast<int64_t>(static_cast<double>(memory.value()) * of.memory));
  StepModel grid;
  grid.model = &model;
  grid.cluster = &cluster;
  const SearchRequest search = ByAllMethods(16, of.batch);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult found, Search(grid, search));
  ExpectEqualsSimulatingAll(grid, search, found);
}

INSTANTIATE_TEST_SUITE_P(Cases, SearchOf,
                         testing::Values(SearchCase{"dgx1-v100", 16, 1, false},
                                         SearchCase{"dgx1-v100", 48, 0.1, false},
                                         SearchCase{"dgx-a100", 4, 0.02, false},
                                         SearchCase{"dgx-a100", 32, 0.03, true},
                                         SearchCase{"dgx-h100", 128, 0.05, false}));

// A batch of 2 leaves most of 16 devices to the tokens, where that is asked for.
TEST_F(SearchTest, ContextParallelismIsLookedAtWhereAskedFor) {
  search_ = ByAllMethods(16, 2);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult without, Search(grid_, search_));
  for (const RankedStep& r : without.best) EXPECT_EQ(r.config.context, 1);
  search_.max_context = 4;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult found, Search(grid_, search_));
  ExpectEqualsSimulatingAll(grid_, search_, found);
  EXPECT_LE(found.best[0].step_time, without.best[0].step_time);
  EXPECT_TRUE(std::any_of(found.best.begin(), found.best.end(),
                          [](const RankedStep& r) { return r.config.context > 1; }));
}

SearchRequest ByVocabularyMethods(const ModelGraph& model, int64_t devices, int64_t batch) {
  SearchRequest search;
  search.devices = devices;
  search.batch = batch;
  search.methods = VocabularyMethods(model);
  EXPECT_EQ(search.methods.size(), 3);
  search.methods.push_back(MethodOf("1f1b"));
  search.methods.push_back(MethodOf("v_half"));
  search.top = 3;
  return search;
}

// A vocabulary as large as the blocks: where it is whole, a device waits for the one that has it.
GroupedModel GptOfManyWords(int64_t words) {
  return GroupByName(*BuildGpt(LlamaConfig(/*layers=*/14, /*hidden=*/512, /*heads=*/8,
                                           /*feed_forward=*/1024, /*tokens=*/256, words)));
}

// Parts are compared with whole vocabularies, with one barrier and two.
TEST(VocabularySearchTest, DividesLargeVocabularies) {
  const GroupedModel model = GptOfManyWords(200000);
  ClusterSpec cluster = *LoadCluster("--cluster", "dgx-a100");
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  for (const auto& [batch, gigabytes] : {std::make_pair(64, 40), {256, 4}}) {
    SCOPED_TRACE(batch);
    cluster.device.memory.value = Bytes(int64_t{gigabytes} << 30);
    SearchRequest search = ByVocabularyMethods(model.graph, 8, batch);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult each, Search(on, search));
    ExpectEqualsSimulatingAll(on, search, each);
    search.together = true;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult found, Search(on, search));
    for (const RankedStep& r : found.best) {
      EXPECT_EQ(r.config.scheme.substr(0, 5) == "vocab", r.config.divides_vocabulary());
      EXPECT_EQ(r.config.tensor, 1);
    }
    EXPECT_TRUE(found.best[0].config.divides_vocabulary()) << found.best[0].config.ToString();
  }
}

TEST(VocabularySearchTest, KeepsSmallOnesWhole) {
  const GroupedModel model = GptOfManyWords(256);
  const ClusterSpec cluster = *LoadCluster("--cluster", "dgx-a100");
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  SearchRequest search = ByVocabularyMethods(model.graph, 8, 16);
  search.together = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult found, Search(on, search));
  EXPECT_FALSE(found.best[0].config.divides_vocabulary()) << found.best[0].config.ToString();
}

// The bounds know of divided experts.
TEST(ExpertSearchTest, ExpertParallelismIsLookedAtWhereAskedFor) {
  GptConfig c = LlamaConfig(/*layers=*/8, /*hidden=*/512, /*heads=*/8, /*feed_forward=*/1024,
                            /*tokens=*/256, /*vocabulary=*/4096);
  c.experts.experts = 8;
  c.experts.chosen = 2;
  const GroupedModel model = GroupByName(*BuildGpt(c));
  ClusterSpec cluster = *LoadCluster("--cluster", "dgx-a100");
  cluster.device.memory.value = Bytes(int64_t{1} << 30);
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  SearchRequest search = ByAllMethods(16, 16);
  search.max_expert = 8;
  search.dispatch = {Dispatch::kRows, Dispatch::kOncePerNode};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult found, Search(on, search));
  ExpectEqualsSimulatingAll(on, search, found);
  EXPECT_TRUE(std::any_of(found.best.begin(), found.best.end(),
                          [](const RankedStep& r) { return r.config.experts > 1; }));
}

// Layers of unlike costs, with skips from layer to layer, some that no group can divide.
ModelGraph RandomModel(uint64_t seed) {
  const CounterRng rng(seed, "search_test");
  uint64_t draws = 0;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(rng.Below(draws++, static_cast<uint64_t>(n)));
  };
  const bool divides = below(2) == 0;
  LayerList list;
  list.name = absl::StrCat("random", seed);
  const int layers = 9 + static_cast<int>(below(8));
  for (int i = 0; i < layers; ++i) {
    ListedLayer& layer = list.layers.emplace_back();
    layer.name = absl::StrCat("l", i);
    if (i > 0 && below(4) > 0) layer.inputs.push_back(absl::StrCat("l", i - 1));
    for (int j = std::max(0, i - 4); j + 1 < i; ++j) {
      if (below(6) == 0) layer.inputs.push_back(absl::StrCat("l", j));
    }
    if (i > 0 && layer.inputs.empty()) layer.inputs.push_back(absl::StrCat("l", i - 1));
    const auto flops = [&] {
      return PassCost<Flops>{Flops(0), Flops(1e8 * static_cast<double>(1 + below(2000)))};
    };
    layer.parameters = below(3) == 0 ? 0 : 10000 * (1 + below(3000));
    PassCosts<Flops> costs{flops(), flops(), {}};
    if (layer.parameters > 0) costs.backward_weight = flops();
    layer.costs = costs;
    layer.output = Bytes(4096 * (1 + below(500)));
    layer.kept = Bytes(4096 * below(3000));
    if (divides) {
      layer.tensor_parallel = layer.Whole();
      layer.tensor_parallel->divides = {{"heads", 8}};
      layer.tensor_parallel->whole_work = 0.25;
      layer.tensor_parallel->forward_sum = *layer.output;
    }
  }
  for (const ListedLayer& layer : list.layers) {
    const bool taken =
        std::any_of(list.layers.begin(), list.layers.end(), [&](const ListedLayer& other) {
          return std::count(other.inputs.begin(), other.inputs.end(), layer.name) > 0;
        });
    if (!taken) list.outputs.push_back(layer.name);
  }
  return MakeGraph(list, "random").value();
}

TEST(VocabularySearchTest, HasNoPartsOfOtherModels) {
  EXPECT_TRUE(VocabularyMethods(RandomModel(1)).empty());
}

class SearchOfRandomModels : public testing::TestWithParam<int> {
 protected:
  SearchOfRandomModels()
      : seed_(static_cast<uint64_t>(GetParam())),
        rng_(seed_, "machine"),
        model_(GroupByName(RandomModel(seed_))) {
    const char* const kClusters[] = {"dgx1-v100", "dgx-a100", "dgx-h100", "p100-pcie"};
    cluster_ = LoadCluster("--cluster", kClusters[rng_.Below(0, 4)]).value();
    cluster_.device.memory.value = Bytes(int64_t{1} << (29 + rng_.Below(1, 6)));
    grid_.model = &model_;
    grid_.cluster = &cluster_;
    grid_.type = NarrowestType(cluster_.device);
    search_ = ByAllMethods(8, std::vector<int64_t>{8, 12, 24, 32}[rng_.Below(2, 4)]);
    search_.top = 1 + static_cast<int>(rng_.Below(3, 4));
    if (rng_.Below(4, 2) == 0) search_.sequence = {false, true};
    if (rng_.Below(5, 4) == 0) search_.recompute.push_back(Recompute::kBlocks);
    const StateNumbers kNumbers[] = {
        {}, {}, {2, 2}, {2, 4}, {2, 4, /*cast=*/true}, {1, 2, /*cast=*/true}};
    for (SearchMethod& method : search_.methods) method.state = kNumbers[rng_.Below(6, 6)];
  }

  const uint64_t seed_;
  const CounterRng rng_;
  const GroupedModel model_;
  ClusterSpec cluster_;
  StepModel grid_;
  SearchRequest search_;
};

TEST_P(SearchOfRandomModels, EqualsSimulatingAll) {
  const absl::StatusOr<SearchResult> found = Search(grid_, search_);
  if (absl::IsNotFound(found.status())) {
    search_.simulate_all = true;
    EXPECT_TRUE(absl::IsNotFound(Search(grid_, search_).status()));
    return;
  }
  ASSERT_THAT(found, IsOk());
  ExpectEqualsSimulatingAll(grid_, search_, *found);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SearchOfRandomModels, testing::Range(0, 48));

// No order of theirs can be played, so all are simulated.
TEST_F(SearchTest, TakesTokenSlices) {
  search_.devices = 4;
  search_.batch = 8;
  search_.methods = {MethodOf("terapipe")};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult found, Search(grid_, search_));
  ASSERT_EQ(found.best.size(), 1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction same, PredictStep(grid_, found.best[0].config));
  EXPECT_EQ(found.best[0].step_time, same.step_time);
}

// On 16 devices.
std::vector<StepConfig> ConfigsOf(const SearchMethod& method,
                                  const std::vector<Sharding>& shardings) {
  std::vector<StepConfig> configs;
  for (const int pipeline : {1, 2, 4, 8}) {
    for (const int tensor : {1, 2}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull, Recompute::kBlocks}) {
        for (const Sharding sharding : shardings) {
          StepConfig& c = configs.emplace_back();
          c.scheme = method.schemes[0];
          c.virtual_stages = method.virtual_stages.empty() ? 0 : method.virtual_stages[0];
          c.pipeline = pipeline;
          c.tensor = tensor;
          c.data = 16 / pipeline / tensor;
          c.micro_batches = 8;
          c.recompute = recompute;
          if (recompute == Recompute::kBlocks) c.rebuilt_blocks = pipeline / 2;  // some, 0: all
          c.sharding = sharding;
          c.overlap_pipeline = method.overlap_pipeline;
          c.steady_overlap = method.steady_overlap[0];
          c.overlap_data = method.overlap_data;
          c.execution = method.execution;
        }
      }
    }
  }
  return configs;
}

// Against the simulated step: it is not below its bounds, nor is any device's memory.
class Bounds {
 public:
  // `like`: of configurations with its P and barriers, where these divide the vocabulary.
  explicit Bounds(const StepModel& model, const StepConfig& like = {})
      : cache_(model),
        cut_(cache_.CacheOf(like).value()),
        bounds_(cut_),
        placements_(cut_),
        orders_(cut_) {}

  // With as much memory and time as it needs, and no more. Whether the configuration is valid.
  bool Hold(const StepConfig& c) {
    const auto point = PredictStep(&cache_, c);
    if (!point.ok()) return false;
    SCOPED_TRACE(c.ToString());
    const Bytes memory = point->largest_device;
    const auto least = bounds_.Least(c);
    const auto of_placement = placements_.Of(c, memory);
    const auto of_short_order = placements_.MemoryOfOrder(c, memory);
    const auto of_order = orders_.Of(c, memory, point->step_time);
    EXPECT_TRUE(least.ok() && of_placement.ok() && of_short_order.ok() && of_order.ok());
    if (testing::Test::HasFailure()) return false;
    EXPECT_LE(least->time, point->step_time);
    EXPECT_GT(least->time, Nanoseconds(0));
    const Bytes state = bounds_.LeastState(c), free = memory - state;
    EXPECT_LE(state, memory);
    EXPECT_LE(bounds_.Least(c, free)->time, point->step_time);
    EXPECT_LE(least->memory, free);
    StepConfig grid = c;  // without what its schedules choose
    grid.recompute = Recompute::kNone;
    grid.rebuilt_blocks = 0;
    grid.exchanges = Exchanges::kWaited;
    grid.virtual_stages = 0;
    const int64_t samples = c.micro_batch_size * c.micro_batches;
    const auto of_sizes = bounds_.LeastWorkOfSizes(grid, {1, 2, 3, c.micro_batch_size, samples},
                                                   samples, {c.exchanges});
    EXPECT_TRUE(of_sizes.ok() && *of_sizes <= point->step_time) << of_sizes.status();
    if (IsBounded(*FindScheme(c.scheme).value())) {
      const std::vector<Exchanges> all = {Exchanges::kWaited, Exchanges::kBeside,
                                          Exchanges::kBesideDelayed};
      const std::vector<Recompute> any = {Recompute::kNone, Recompute::kBlocks};
      for (const auto& exchanges : {std::vector<Exchanges>{c.exchanges}, all}) {
        for (const auto& recompute : {std::vector<Recompute>{c.recompute}, any}) {
          if (recompute == any && c.recompute == Recompute::kSelective) continue;
          const auto of_grid = bounds_.LeastOfGrid(grid, exchanges, recompute, free);
          EXPECT_TRUE(of_grid.ok() && of_grid->time <= point->step_time && of_grid->memory <= free)
              << of_grid.status();
        }
      }
      const auto kept = bounds_.LeastKeptOfGrid(grid, {c.recompute});
      EXPECT_TRUE(kept.ok() && *kept <= free) << kept.status();
      // A pass of more samples takes no longer than one of each part.
      EXPECT_TRUE(!of_sizes.ok() || *of_sizes <= bounds_.LeastWork(grid, {c.exchanges}).value());
    }
    EXPECT_LE(of_placement->time, point->step_time);
    EXPECT_LE(of_placement->memory, memory);
    EXPECT_LE(*of_short_order, memory);
    EXPECT_LE(of_order->time, point->step_time);
    EXPECT_LE(of_order->memory, memory);
    if (c.shards > 0) ExpectFresh(c, memory, point->step_time, *of_placement, *of_order);
    close_ += of_order->time / point->step_time > 0.95;
    full_ += of_placement->memory / memory > 0.8;
    ++checked_;
    return true;
  }

  int checked() const { return checked_; }
  int close() const { return close_; }  // whose order's time is that of the step but for 5 %
  int full() const { return full_; }    // whose placement's memory is that of the step but for 20 %

 private:
  // Nothing is left of what was asked before.
  void ExpectFresh(const StepConfig& c, Bytes memory, Nanoseconds time,
                   const StepLeast& of_placement, const StepLeast& of_order) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepLeast placement, PlacementBound(cut_).Of(c, memory));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepLeast order, OrderBound(cut_).Of(c, memory, time));
    for (const auto& [fresh, own] :
         {std::make_pair(placement, of_placement), std::make_pair(order, of_order)}) {
      EXPECT_EQ(fresh.time, own.time);
      EXPECT_EQ(fresh.memory, own.memory);
    }
  }

  StepCache cache_;
  StepCache* const cut_;
  StepBounds bounds_;
  PlacementBound placements_;
  OrderBound orders_;
  int checked_ = 0, close_ = 0, full_ = 0;
};

TEST_F(SearchTest, BoundsHold) {
  Bounds bounds(grid_);
  for (const SearchMethod& method : search_.methods) {
    for (const StepConfig& c : ConfigsOf(method, {Sharding::kReplicated, Sharding::kOptimizer,
                                                  Sharding::kGradients, Sharding::kFully})) {
      bounds.Hold(c);
      if (c.sharding == Sharding::kReplicated || c.copies() % 2 != 0 || c.copies() == 2) continue;
      StepConfig of_sets = c;  // after that of all ranks, which must leave nothing behind
      of_sets.shards = c.copies() / 2;
      bounds.Hold(of_sets);
    }
  }
  EXPECT_GE(bounds.checked(), 500);
  EXPECT_GT(bounds.close(), bounds.checked() / 2);
  EXPECT_GT(bounds.full(), bounds.checked() / 3);
}

TEST_F(SearchTest, BoundsHoldOfEveryCut) {
  Bounds bounds(grid_);
  int index = 0;
  for (const SearchMethod& method : search_.methods) {
    for (StepConfig c : ConfigsOf(method, {Sharding::kReplicated, Sharding::kOptimizer})) {
      if (index++ % 4 != 0) continue;
      for (const CutRule cut : {CutRule::kLayers, CutRule::kMemory, CutRule::kFlopsVariance}) {
        c.cut = cut;
        bounds.Hold(c);
        std::swap(c.micro_batches, c.data);  // another number of micro-batches, the same stages
        bounds.Hold(c);
      }
    }
  }
  EXPECT_GE(bounds.checked(), 200);
}

TEST(VocabularySearchTest, BoundsHold) {
  const GroupedModel model = GptOfManyWords(16384);
  const ClusterSpec cluster = *LoadCluster("--cluster", "dgx-a100");
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  for (const int pipeline : {2, 4, 8}) {
    for (const int barriers : {1, 2}) {
      StepConfig like;
      like.scheme = "vocab_1f1b";
      like.pipeline = pipeline;
      like.vocabulary_barriers = barriers;
      Bounds bounds(on, like);
      for (const SearchMethod& method : VocabularyMethods(model.graph)) {
        for (StepConfig of_method :
             ConfigsOf(method, {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kFully})) {
          if (of_method.pipeline != pipeline || of_method.tensor != 1) continue;
          of_method.vocabulary_barriers = barriers;
          bounds.Hold(of_method);
        }
      }
      EXPECT_GE(bounds.checked(), 12);
      EXPECT_GT(bounds.close(), bounds.checked() / 2);
    }
  }
}

// Bounds hold for some of all that a search looks at.
TEST_P(SearchOfRandomModels, BoundsHold) {
  std::vector<StepConfig> configs;
  uint64_t looked_at = 0;
  search_.accept = [&](const StepConfig& c) {
    if (rng_.Below(100 + looked_at++, 12) == 0) configs.push_back(c);
    return false;
  };
  EXPECT_TRUE(absl::IsNotFound(Search(grid_, search_).status()));
  Bounds bounds(grid_);
  for (const StepConfig& c : configs) bounds.Hold(c);
  EXPECT_GT(bounds.checked(), 0);
}

TEST_F(SearchTest, BreakdownsAddUp) {
  int checked = 0;
  for (const SearchMethod& method : search_.methods) {
    for (const StepConfig& c : ConfigsOf(method, method.shardings)) {
      const auto point = PredictStep(grid_, c);
      if (!point.ok()) continue;
      SCOPED_TRACE(c.ToString());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const StepBreakdown b, BreakDown(grid_, *point));
      EXPECT_NEAR(b.compute + b.recompute + b.tensor + b.step + b.idle + b.pipeline + b.data, 1,
                  1e-9);
      EXPECT_GE(b.data, -0.02);
      EXPECT_GE(b.idle, -1e-9);
      EXPECT_EQ(b.tensor > 0, c.tensor > 1);
      ++checked;
    }
  }
  EXPECT_GE(checked, 100);
}

TEST_F(SearchTest, SaysWhatBinds) {
  const auto message = [&](const SearchRequest& s) {
    return std::string(Search(grid_, s).status().message());
  };
  SearchRequest s = search_;
  s.batch = 0;
  EXPECT_EQ(message(s), "--batch=0: must be at least 1");
  s = search_;
  s.devices = 5000;
  EXPECT_EQ(message(s), "--devices=5000: must be from 1 to 1024, the devices of dgx1-v100");
  ClusterSpec small = cluster_;
  small.device.memory.value = Bytes(1 << 20);
  StepModel model = grid_;
  model.cluster = &small;
  const std::string memory = std::string(Search(model, search_).status().message());
  EXPECT_THAT(memory, HasSubstr("no configuration of 16 devices of dgx1-v100 for --batch=16: "
                                "not enough memory; the nearest, "));
  EXPECT_THAT(memory, HasSubstr("GiB of 0.00"));
}

}  // namespace
}  // namespace pipelab
