// The full search of `pipelab search`, all methods, on one core: the 52B GPT on 64 GPUs at each of
// seven batches, a model of 1T parameters on 3,072, and Llama-3 405B on 16,384 and on 1,024, with
// context parallelism, the best of all methods together.
//
//   bazel run -c opt //pipelines/search:search_benchmark
//
// Counters are configurations: looked at, given the bound of their order, simulated.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/search/search.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/step_cache.h"

namespace pipelab {
namespace {

void CountSearches(const StepModel& grid, SearchRequest search, const std::vector<int64_t>& batches,
                   benchmark::State* state) {
  SearchRefusals all;
  for (auto _ : *state) {
    StepCache cache(grid);  // of all batches, as a study of them has it
    for (const int64_t batch : batches) {
      search.batch = batch;
      const absl::StatusOr<SearchResult> found = Search(&cache, search);
      CHECK(found.ok()) << found.status();
      all.considered += found->refusals.considered;
      all.ordered += found->refusals.ordered;
      all.simulated += found->refusals.simulated;
    }
  }
  const auto count = [&](int64_t n) {
    return benchmark::Counter(static_cast<double>(n), benchmark::Counter::kAvgIterations);
  };
  state->counters["considered"] = count(all.considered);
  state->counters["ordered"] = count(all.ordered);
  state->counters["simulated"] = count(all.simulated);
}

void SearchAll(const std::string& name, const std::string& cluster_name, int64_t devices,
               const std::vector<int64_t>& batches, benchmark::State* state) {
  const GroupedModel model = GroupByName(BuildPublished(name).value());
  const ClusterSpec cluster = LoadCluster("--cluster", cluster_name).value();
  StepModel grid;
  grid.model = &model;
  grid.cluster = &cluster;
  grid.type = NarrowestType(cluster.device);
  SearchRequest search;
  search.devices = devices;
  search.max_tensor = static_cast<int>(NodeDevices(cluster));
  search.methods = AllMethods(model.graph);
  CountSearches(grid, search, batches, state);
}

// `pipelab search --kernels=megatron --max_context=...`.
void SearchLlama405b(int64_t devices, int64_t batch, int max_context, benchmark::State* state) {
  const ClusterSpec cluster =
      LoadCluster("--cluster", absl::StrCat("dgx-h100:", devices / 8)).value();
  const GroupedModel model =
      GroupByName(MegatronGraph(BuildPublished("llama-3-405b").value(),
                                AttentionImplementation::kFused, NarrowestType(cluster.device)));
  StepModel grid;
  grid.model = &model;
  grid.cluster = &cluster;
  grid.type = NarrowestType(cluster.device);
  SearchRequest search;
  search.devices = devices;
  search.max_tensor = static_cast<int>(NodeDevices(cluster));
  search.max_context = max_context;
  search.methods = AllMethods(model.graph);
  search.sequence = {false, true};
  search.top = 10;
  search.together = true;
  CountSearches(grid, search, {batch}, state);
}

void BM_Gpt52bOn64Gpus(benchmark::State& state) {
  SearchAll("gpt-52b", "dgx1-v100", 64, {8, 16, 32, 64, 128, 256, 512}, &state);
}

void BM_Megatron1TOn3072Gpus(benchmark::State& state) {
  SearchAll("megatron-1008b", "dgx-a100", 3072, {3072}, &state);
}

void BM_Llama405bOn16384Gpus(benchmark::State& state) {
  SearchLlama405b(16384, 2048, /*max_context=*/16, &state);
}

void BM_Llama405bOn1024Gpus(benchmark::State& state) {
  SearchLlama405b(1024, 1024, /*max_context=*/8, &state);
}

BENCHMARK(BM_Gpt52bOn64Gpus)->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(BM_Megatron1TOn3072Gpus)->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(BM_Llama405bOn16384Gpus)->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(BM_Llama405bOn1024Gpus)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace pipelab
