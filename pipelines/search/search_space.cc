#include "pipelines/search/search_space.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/graph/context_parallel.h"
#include "models/graph/expert_parallel.h"
#include "models/graph/layer_spec.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/search/search_request.h"
#include "pipelines/step/expert_exchange.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// More actions than any schedule here needs: such configurations are left to those with larger
// micro-batches.
constexpr int64_t kMostActions = int64_t{1} << 20;

std::vector<int64_t> DivisorsOf(int64_t n, int64_t most, bool all = true) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    divisors.push_back(d);
    if (d * d != n) divisors.push_back(n / d);
  }
  const auto is_other = [](int64_t d) { return (d & (d - 1)) != 0; };  // than a power of two
  if (!all)
    divisors.erase(std::remove_if(divisors.begin(), divisors.end(), is_other), divisors.end());
  std::sort(divisors.begin(), divisors.end());
  divisors.erase(std::upper_bound(divisors.begin(), divisors.end(), most), divisors.end());
  return divisors;
}

// Sizes that a scheme is asked for, which its variants keep.
constexpr std::array<absl::string_view, 4> kSizes = {"V", "group", "replicas", "slices"};

// The keys of SearchMethod: keys with one value each, which its schedules have.
constexpr std::array<absl::string_view, 8> kOfMethod = {
    "layout", "gathers_each",    "no_pipeline_overlap", "steady_overlap",
    "state",  "no_data_overlap", "whole_messages",      "execution"};

// Which level of the tree chooses a key; the first has the rest, which all its children share.
SearchNode::Level LevelOf(absl::string_view key) {
  constexpr std::array<absl::string_view, 8> kOfSchedule = {
      "concatenation", "vocabulary_barriers", "exchanges", "recompute", "rebuilt",
      "cut",           "split_head",          "published"};
  if (absl::c_linear_search(kSizes, key) || absl::c_linear_search(kOfSchedule, key)) {
    return SearchNode::Level::kSchedule;
  }
  if (key == "sharding" || key == "shards") return SearchNode::Level::kWhole;
  if (key == "b" || key == "M") return SearchNode::Level::kGrid;
  return SearchNode::Level::kDivision;
}

}  // namespace

bool FixedKeys::has(absl::string_view key) const {
  return absl::c_any_of(fields, [&](const StepField* f) { return f->key == key; });
}

absl::StatusOr<FixedKeys> ParseFixedKeys(absl::string_view option, absl::string_view text) {
  FixedKeys fixed;
  if (text.empty()) return fixed;
  PIPELAB_ASSIGN_OR_RETURN(fixed.values, ParseStepConfig(option, absl::StrCat("any:", text)));
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const absl::string_view key = word.substr(0, word.find('='));
    for (const StepField& f : StepFields()) {
      if (f.key == key) fixed.fields.push_back(&f);
    }
  }
  return fixed;
}

// Gives children their places.
class SearchSpace::Children {
 public:
  // `only`: others have a place, and are not looked at.
  Children(SearchNode::Level level, const SearchPath& parent, Look look,
           absl::optional<Exchanges> only = absl::nullopt)
      : look_(look), only_(only) {
    node_.level = level;
    node_.path = parent;
    node_.path.push_back(0);
  }

  absl::Status Add(const StepConfig& c) {
    if (!only_.has_value() || c.exchanges == *only_) {
      node_.config = c;
      PIPELAB_RETURN_IF_ERROR(look_(node_));
    }
    ++node_.path.back();
    return absl::OkStatus();
  }

  SearchNode::Level level() const { return node_.level; }
  // Whether these are all, or the first part of them: what is refused counts once.
  bool first(const SearchRequest& search) const {
    return !only_.has_value() || *only_ == search.exchanges.front();
  }

 private:
  const Look look_;
  const absl::optional<Exchanges> only_;
  SearchNode node_;
};

// Whether the keys that this level chooses are as they are fixed.
bool SearchSpace::Fixed(const StepConfig& c, SearchNode::Level level) const {
  return absl::c_all_of(search_.fixed.fields, [&](const StepField* f) {
    return LevelOf(f->key) != level || f->get(c) == f->get(search_.fixed.values);
  });
}

// What the method has one value of, or that which the request fixes.
absl::Status SearchSpace::TakeMethod(StepConfig* c) const {
  c->residency = method_.residency;
  c->overlap_pipeline = method_.overlap_pipeline;
  // Where there are both, leaves choose. No step with it is shorter than without.
  c->steady_overlap = !absl::c_linear_search(method_.steady_overlap, false);
  c->layout = method_.layout;
  c->state = method_.state;
  c->overlap_data = method_.overlap_data;
  c->whole_messages = method_.whole_messages;
  c->execution = method_.execution;
  for (const StepField* f : search_.fixed.fields) {
    if (!absl::c_linear_search(kOfMethod, f->key)) continue;
    PIPELAB_RETURN_IF_ERROR(f->set(f->get(search_.fixed.values), c));
  }
  return absl::OkStatus();
}

absl::Status SearchSpace::ForEachDivision(Look look) {
  Children divisions(SearchNode::Level::kDivision, {}, look);
  const ModelGraph& graph = model_.model->graph;
  const bool divides_tokens = CheckContextParallel(graph, {1, false, 2}).ok();
  const int64_t max_experts = RowsOfExperts(graph).has_value() ? search_.max_expert : 1;
  StepConfig c;
  c.scheme = method_.schemes.empty() ? c.scheme : method_.schemes[0];
  PIPELAB_RETURN_IF_ERROR(TakeMethod(&c));
  for (const StepField* f : search_.fixed.fields) {
    // Later levels choose the others. What is asked of a cut says what its units are, too.
    const bool asked = absl::c_linear_search(kSizes, f->key) || f->key == "cut";
    if (LevelOf(f->key) != SearchNode::Level::kDivision && !asked) continue;
    PIPELAB_RETURN_IF_ERROR(f->set(f->get(search_.fixed.values), &c));
  }
  for (const int64_t tensor : DivisorsOf(search_.devices, search_.devices, search_.every_size)) {
    if (tensor > search_.max_tensor ||
        !CheckTensorParallel(graph, {static_cast<int>(tensor), false}).ok()) {
      ++refusals_.considered;
      ++refusals_.tensor;
      continue;
    }
    c.tensor = static_cast<int>(tensor);
    const int64_t rest = search_.devices / tensor;
    for (const int64_t pipeline : DivisorsOf(rest, rest)) {
      if ((pipeline == 1) == method_.pipeline || pipeline > model_.model->num_groups()) continue;
      c.pipeline = static_cast<int>(pipeline);
      for (const int64_t context : DivisorsOf(
               rest / pipeline, divides_tokens ? search_.max_context : 1, search_.every_size)) {
        c.context = static_cast<int>(context);
        c.data = static_cast<int>(rest / pipeline / context);
        if (search_.batch % c.data != 0) {
          ++refusals_.considered;
          ++refusals_.batch;
          continue;
        }
        for (const int64_t experts :
             DivisorsOf(rest / pipeline * tensor, max_experts, search_.every_size)) {
          c.experts = static_cast<int>(experts);
          PIPELAB_RETURN_IF_ERROR(Split(c, &divisions));
        }
      }
    }
  }
  return absl::OkStatus();
}

// How tokens and experts are divided.
absl::Status SearchSpace::Split(StepConfig c, Children* divisions) {
  const ModelGraph& graph = model_.model->graph;
  const auto suits = [&](bool has, const auto& all, auto otherwise) {
    return has ? all : std::decay_t<decltype(all)>{otherwise};
  };
  for (const ContextExchange exchange :
       suits(c.context > 1, search_.context_exchanges, ContextExchange::kGather)) {
    c.context_exchange = exchange;
    for (const bool whole : suits(c.tensor > 1 && c.experts > 1, search_.whole_experts, false)) {
      c.whole_experts = whole;
      for (const bool sequence : search_.sequence) {
        if (sequence && c.tensor == 1) continue;
        c.sequence_parallel = sequence;
        if (!CheckTensorParallel(graph, c.split()).ok()) continue;
        if (!CheckContextParallel(graph, c.split()).ok()) continue;
        if (!CheckExpertParallel(graph, c.split(), c.copies()).ok()) continue;
        for (const Dispatch dispatch : suits(c.experts > 1, search_.dispatch, Dispatch::kRows)) {
          c.dispatch = dispatch;
          if (!CheckDispatch(graph, c).ok()) continue;
          for (const bool overlap : suits(sequence, method_.overlap_tensor, false)) {
            c.overlap_tensor = overlap;
            PIPELAB_RETURN_IF_ERROR(AddDivision(c, divisions));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SearchSpace::AddDivision(const StepConfig& c, Children* divisions) {
  if (Fixed(c, divisions->level())) return divisions->Add(c);
  refusals_.accept += static_cast<int64_t>(MicroBatchSizes(c).size());
  return absl::OkStatus();
}

std::vector<int64_t> SearchSpace::MicroBatchSizes(const StepConfig& division) const {
  const int64_t samples = search_.batch / division.data;
  return DivisorsOf(samples, samples, search_.every_size);
}

absl::Status SearchSpace::Batches(StepConfig c, Children* grids) {
  const int64_t samples = search_.batch / c.data;
  for (const int64_t b : MicroBatchSizes(c)) {
    c.micro_batch_size = b;
    c.micro_batches = static_cast<int>(samples / b);
    if (Fixed(c, grids->level())) {
      PIPELAB_RETURN_IF_ERROR(grids->Add(c));
    } else {
      ++refusals_.accept;
    }
  }
  return absl::OkStatus();
}

absl::Status SearchSpace::ForEachChild(const SearchNode& node, Look look,
                                       absl::optional<Exchanges> exchanges) {
  if (node.level == SearchNode::Level::kDivision) {
    Children grids(SearchNode::Level::kGrid, node.path, look);
    return Batches(node.config, &grids);
  }
  if (node.level == SearchNode::Level::kGrid) {
    Children schedules(SearchNode::Level::kSchedule, node.path, look, exchanges);
    return Schedules(node.config, &schedules);
  }
  Children leaves(SearchNode::Level::kWhole, node.path, look);
  return Shardings(node.config, &leaves);
}

absl::Status SearchSpace::Schedules(StepConfig c, Children* schedules) {
  const bool varies_groups = method_.virtual_stages.empty();
  if (method_.full_groups && !varies_groups && c.micro_batches % c.pipeline != 0) {
    return absl::OkStatus();
  }
  PIPELAB_RETURN_IF_ERROR(TakeMethod(&c));  // the grid may be another method's, too
  const bool divides = c.pipeline > 1 && c.has_equal_messages();
  if (!divides && !search_.fixed.has("whole_messages")) c.whole_messages = false;
  // These have the same order for one micro-batch on one device.
  const bool twins = c.pipeline == 1 && c.micro_batches == 1 && method_.schemes.size() > 1;
  for (const std::string& scheme : method_.schemes) {
    if (twins && scheme == "interleaved") continue;
    c.scheme = scheme;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepConfig> variants,
                             VariantsOf(c, schedules->first(search_)));
    for (StepConfig variant : variants) {
      variant.published_order = search_.fixed.has("published")
                                    ? search_.fixed.values.published_order
                                    : method_.published_order && HasOption(scheme, kPassTimes);
      const int64_t stages = int64_t{c.pipeline} * std::max(variant.virtual_stages, 1);
      if (stages > model_.model->num_groups() || stages * c.micro_batches * 2 > kMostActions) {
        continue;
      }
      for (const Exchanges exchanges : search_.exchanges) {
        variant.exchanges = exchanges;
        if (!CheckHiddenExchanges(variant).ok()) continue;
        for (const CutRule cut : CutsOf(variant, stages)) {
          variant.cut = cut;
          for (const bool split_head : SplitHeadsOf(variant)) {
            variant.split_head = split_head;
            PIPELAB_RETURN_IF_ERROR(Recomputes(variant, schedules));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

bool SearchSpace::ShardingSplitsHead(const StepConfig& c) const {
  return StepCache::SchemeLeavesHeadWhole(c.scheme) && !c.divides_vocabulary() &&
         !method_.split_head && !search_.fixed.has("split_head");
}

std::vector<bool> SearchSpace::SplitHeadsOf(const StepConfig& c) const {
  if (search_.fixed.has("split_head")) return {search_.fixed.values.split_head};
  if (!ShardingSplitsHead(c)) return {method_.split_head && HasOption(c.scheme, kSplitBackward)};
  std::vector<bool> split;
  for (const Sharding sharding : method_.shardings) {
    const bool must = c.copies() > 1 && ShardsGradients(sharding);
    if (!absl::c_linear_search(split, must)) split.push_back(must);
  }
  return split;
}

// Between blocks, by rules that choose by themselves.
std::vector<CutRule> SearchSpace::CutsOf(const StepConfig& c, int64_t stages) const {
  const bool varies = search_.every_size && stages > 1 && c.layout.empty();
  if (!varies || search_.fixed.has("cut")) return {c.cut};
  return {CutRule::kBlocks, CutRule::kMemory, CutRule::kFlopsVariance};
}

absl::StatusOr<std::vector<StepConfig>> SearchSpace::VariantsOf(const StepConfig& c, bool first) {
  std::vector<StepConfig> variants;
  if (!method_.virtual_stages.empty() || c.has_schedule_file()) {
    for (const int virtual_stages : method_.virtual_stages) {
      variants.push_back(c);
      variants.back().virtual_stages = virtual_stages;
    }
    if (c.has_schedule_file()) variants = {c};
    return variants;
  }
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(c.scheme));
  if (TakesVocabularyParts(*scheme))
    return WithVocabularyParts(scheme->default_virtual_stages, c, first);
  VariantLimits limits;
  limits.max_stages = model_.model->num_groups();
  limits.full_groups = method_.full_groups;
  if (search_.every_size) limits.least_virtual_stages = method_.least_virtual_stages;
  for (const SchemeParams& params : Variants(*scheme, SchemeSizes(c), limits)) {
    StepConfig& variant = variants.emplace_back(c);
    // A fixed V is compared with the scheme's own.
    variant.virtual_stages = params.virtual_stages == 0 && search_.fixed.has("V")
                                 ? scheme->default_virtual_stages
                                 : params.virtual_stages;
    variant.group_size = params.group_size;
    variant.replicas = params.replicas;
    variant.concatenation = params.concatenation;
    variant.slices = params.slices;
  }
  if (variants.empty()) RefuseSizes(c, NumStages(c.scheme, SchemeSizes(c)), first);
  return variants;
}

// With one barrier and with two. None where parts would be divided again.
std::vector<StepConfig> SearchSpace::WithVocabularyParts(int default_virtual_stages,
                                                         const StepConfig& c, bool first) {
  if (c.tensor > 1 || c.context > 1) return {};
  const int chain = c.pipeline * default_virtual_stages;
  if (chain > model_.model->num_groups()) {
    RefuseSizes(c, chain, first);
    return {};
  }
  std::vector<StepConfig> variants(2, c);
  for (int barriers = 1; barriers <= 2; ++barriers) {
    variants[barriers - 1].vocabulary_barriers = barriers;
  }
  return variants;
}

void SearchSpace::RefuseSizes(const StepConfig& c, const absl::StatusOr<int>& stages, bool first) {
  if (!first) return;
  ++refusals_.considered;
  ++refusals_.scheme;
  refusals_.scheme_reason = absl::StrCat(
      c.ToString(), ": ",
      !stages.ok() ? std::string(stages.status().message())
                   : absl::StrCat(*stages, " stages, but the model has ",
                                  model_.model->num_groups(), " blocks to cut between"));
}

absl::Status SearchSpace::Recomputes(StepConfig c, Children* schedules) {
  const int64_t stages = int64_t{c.pipeline} * std::max(c.virtual_stages, 1);
  std::vector<int> rebuilt = search_.rebuilt_blocks;
  if (search_.every_size) rebuilt = {0, 1};
  if (search_.fixed.has("rebuilt")) rebuilt = {search_.fixed.values.rebuilt_blocks};
  for (const Recompute recompute : RecomputesOf(search_)) {
    c.recompute = recompute;
    if (!CheckHiddenExchanges(c).ok()) continue;
    for (const int r : rebuilt) {
      const bool some = recompute == Recompute::kBlocks && stages < model_.model->num_groups();
      if (r > 0 && !some) continue;
      c.rebuilt_blocks = r;
      if (Fixed(c, schedules->level())) {
        PIPELAB_RETURN_IF_ERROR(schedules->Add(c));
      } else if (schedules->first(search_)) {
        ++refusals_.accept;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SearchSpace::WithOneMoreRebuilt(const SearchNode& schedule, int most, Look look) {
  SearchNode next = schedule;
  StepConfig& c = next.config;
  if (!search_.every_size || search_.fixed.has("rebuilt") || c.rebuilt_blocks == 0) {
    return absl::OkStatus();
  }
  ++c.rebuilt_blocks;
  next.path.push_back(std::numeric_limits<int32_t>::max());  // after the leaves of this one
  return c.rebuilt_blocks < most ? look(next) : absl::OkStatus();
}

absl::Status SearchSpace::WithLargerGroups(const SearchNode& schedule, Look look) {
  const StepConfig& c = schedule.config;
  if (!search_.every_size || search_.fixed.has("group") || !method_.virtual_stages.empty()) {
    return absl::OkStatus();
  }
  const auto has = [&](SchemeOption option) { return HasOption(c.scheme, option); };
  if (!has(kGroupSize) || !has(kVirtualStages) || c.virtual_stages == 1) return absl::OkStatus();
  // Where each size needs an order of its own, which takes long to make, two are looked at.
  const bool ordered = has(kPassTimes);
  std::vector<int>& sizes = group_sizes_[{c.pipeline, c.micro_batches, ordered}];
  if (sizes.empty()) {
    sizes = ordered ? SomeGroupSizes(SchemeSizes(c))
                    : EveryGroupSize(SchemeSizes(c), method_.full_groups);
  }
  const auto next = absl::c_find(sizes, c.group_size);
  if (next == sizes.end() || next + 1 == sizes.end()) return absl::OkStatus();
  SearchNode larger = schedule;
  larger.config.group_size = *(next + 1);
  if (!NumStages(c.scheme, SchemeSizes(larger.config)).ok()) return absl::OkStatus();
  larger.path.push_back(std::numeric_limits<int32_t>::max() - 1);
  return look(larger);
}

absl::Status SearchSpace::Shardings(StepConfig c, Children* leaves) {
  for (const Sharding sharding : method_.shardings) {
    const bool shards = sharding != Sharding::kReplicated;
    if (c.copies() == 1 && shards && method_.shardings.size() > 1) {
      continue;  // nothing to shard: the same as replicated
    }
    if (ShardingSplitsHead(c) && c.split_head != (c.copies() > 1 && ShardsGradients(sharding))) {
      continue;
    }
    c.sharding = sharding;
    std::vector<int64_t> sets = {0};
    if (shards) {
      if (search_.every_size) {
        sets = DivisorsOf(c.copies(), c.copies() - 1);
        sets.insert(sets.begin(), 0);
      } else {
        sets.assign(search_.shards.begin(), search_.shards.end());
      }
    }
    for (const int64_t s : sets) {
      c.shards = static_cast<int>(s);
      if (s > 0 && !CheckShards(sharding, c.shards, c.copies(), c.split().expert_copies()).ok()) {
        continue;
      }
      if (!Fixed(c, leaves->level()) || (search_.accept && !search_.accept(c))) {
        ++refusals_.accept;
        continue;
      }
      PIPELAB_RETURN_IF_ERROR(AddLeaves(c, leaves));
    }
  }
  return absl::OkStatus();
}

absl::Status SearchSpace::AddLeaves(StepConfig c, Children* leaves) {
  std::vector<bool> steady = method_.steady_overlap;
  if (search_.fixed.has("steady_overlap")) steady = {c.steady_overlap};
  for (const bool overlap : steady) {
    c.steady_overlap = overlap;
    ++refusals_.considered;
    PIPELAB_RETURN_IF_ERROR(leaves->Add(c));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
