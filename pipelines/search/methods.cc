// The ways to train that searches compare.
#include <set>
#include <string>
#include <vector>

#include "models/specs/kept_activations.h"
#include "models/zoo/vocabulary_shards.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/search/search.h"
#include "pipelines/search/search_request.h"
#include "pipelines/step/execution.h"

namespace pipelab {
namespace {

const std::vector<int> kStagesPerDevice = {2, 4, 8, 16};

SearchMethod Method(std::string name, std::vector<std::string> schemes) {
  SearchMethod method;
  method.name = std::move(name);
  method.schemes = std::move(schemes);
  return method;
}

// As studies compare newer schemes: with what the published methods may divide.
SearchMethod PlainMethodOf(const std::string& scheme) {
  SearchMethod method = Method(scheme, {scheme});
  method.shardings = {Sharding::kReplicated, Sharding::kOptimizer};
  return method;
}

}  // namespace

bool IsBounded(const Scheme& scheme) {
  return TrainsAsSerial(scheme) &&
         (scheme.options & (kTokenSlices | kStageGraph | kOffloads | kBeyondBounds)) == 0;
}

bool IsBounded(absl::string_view scheme) {
  const absl::StatusOr<const Scheme*> found = FindScheme(scheme);
  return found.ok() && IsBounded(**found);
}

int64_t NodeDevices(const ClusterSpec& cluster) {
  int level = 0;
  const auto bandwidth = [&](int l) {
    return cluster.levels[l].connection.bandwidth.value.value();
  };
  while (level < static_cast<int>(cluster.levels.size()) &&
         cluster.levels[level].sharing != Sharing::kUnit && 2 * bandwidth(level) >= bandwidth(0)) {
    ++level;
  }
  return level == 0 ? 1 : cluster.devices_in(level - 1);
}

std::vector<SearchMethod> PublishedMethods() {
  const std::vector<Sharding> any = {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kFully};
  SearchMethod breadth_first = Method("breadth-first", {"breadth_first"});
  breadth_first.virtual_stages = kStagesPerDevice;
  breadth_first.shardings = any;
  SearchMethod depth_first = Method("depth-first", {"interleaved"});
  depth_first.virtual_stages = kStagesPerDevice;
  depth_first.shardings = {Sharding::kReplicated, Sharding::kOptimizer};
  depth_first.full_groups = true;
  depth_first.overlap_pipeline = depth_first.overlap_data = false;
  SearchMethod whole_messages = depth_first;  // without its scatter and gather
  whole_messages.name = "depth-first, whole messages";
  whole_messages.whole_messages = true;
  SearchMethod overlapped = depth_first;
  overlapped.name = "depth-first, overlapped";
  overlapped.overlap_pipeline = overlapped.overlap_data = true;
  // As its code was then: "depth-first" less these losses.
  SearchMethod megatron = depth_first;
  megatron.name = "Megatron-LM 2022";
  megatron.overlap_pipeline = true;  // what its calls leave of it
  megatron.execution = kAllExecutionParts;
  SearchMethod non_looped = Method("non-looped", {"gpipe", "1f1b"});
  non_looped.virtual_stages = {0};
  non_looped.shardings = {Sharding::kReplicated, Sharding::kOptimizer};
  SearchMethod none = Method("no pipeline", {"breadth_first"});
  none.pipeline = false;
  none.virtual_stages = {4, 8, 16, 32};  // stages whose weights are gathered at a time
  none.shardings = {Sharding::kFully};
  return {breadth_first, depth_first, whole_messages, overlapped, megatron, non_looped, none};
}

SearchMethod MethodOf(const std::string& scheme) {
  SearchMethod method = Method(scheme, {scheme});
  method.shardings = {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients,
                      Sharding::kFully};
  method.overlap_tensor = {false, true};
  return method;
}

SearchMethod NoPipelineMethod() {
  SearchMethod none = MethodOf("1f1b");
  none.name = "no pipeline";
  none.schemes = {"1f1b", "breadth_first", "interleaved"};
  none.pipeline = false;
  return none;
}

std::vector<SearchMethod> AllMethods(const ModelGraph& model) {
  std::vector<SearchMethod> methods = {NoPipelineMethod()};
  for (const Scheme& scheme : Catalog()) {
    if (IsBounded(scheme)) methods.push_back(MethodOf(std::string(scheme.name)));
  }
  for (const SearchMethod& m : VocabularyMethods(model)) methods.push_back(MethodOf(m.name));
  return methods;
}

SearchRequest WholeSpace(const StepModel& model, int64_t devices, int64_t batch) {
  SearchRequest search;
  search.devices = devices;
  search.batch = batch;
  search.max_tensor = static_cast<int>(NodeDevices(*model.cluster));
  search.max_context = search.max_expert = static_cast<int>(devices);
  search.methods = AllMethods(model.model->graph);
  search.together = true;
  search.every_size = true;
  search.sequence = search.whole_experts = {false, true};
  search.recompute = {Recompute::kNone, Recompute::kFull, Recompute::kBlocks};
  if (AllowsSelectiveRecompute(model.model->graph)) {
    search.recompute.push_back(Recompute::kSelective);
  }
  search.context_exchanges = {ContextExchange::kGather, ContextExchange::kRing,
                              ContextExchange::kHeads};
  search.dispatch = {Dispatch::kRows, Dispatch::kOncePerNode};
  search.exchanges = {Exchanges::kWaited, Exchanges::kBeside, Exchanges::kBesideDelayed};
  return search;
}

std::vector<SearchMethod> NewerMethods() {
  std::set<std::string> published;
  for (const SearchMethod& method : PublishedMethods()) {
    published.insert(method.schemes.begin(), method.schemes.end());
  }
  std::vector<SearchMethod> methods;
  for (const Scheme& scheme : Catalog()) {
    const std::string name(scheme.name);
    if (!IsBounded(scheme) || published.count(name) > 0) continue;
    methods.push_back(PlainMethodOf(name));
  }
  return methods;
}

std::vector<SearchMethod> VocabularyMethods(const ModelGraph& model) {
  std::vector<SearchMethod> methods;
  if (!ShardVocabulary(model, /*parts=*/2, /*barriers=*/2).ok()) return methods;
  for (const Scheme& scheme : Catalog()) {
    if (!TakesVocabularyParts(scheme)) continue;
    methods.push_back(PlainMethodOf(std::string(scheme.name)));
  }
  return methods;
}

}  // namespace pipelab
