#include "pipelines/step/step_config.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/step_fields.h"
#include "pipelines/step/vocabulary_parts.h"
#include "tools/base/name_table.h"

namespace pipelab {
namespace {

constexpr std::array<std::pair<Recompute, const char*>, 4> kRecompute = {
    {{Recompute::kNone, "none"},
     {Recompute::kSelective, "selective"},
     {Recompute::kFull, "full"},
     {Recompute::kBlocks, "blocks"}}};
constexpr std::array<std::pair<BatchNormCopies, const char*>, 2> kBatchNorm = {
    {{BatchNormCopies::kSynchronised, "synchronised"}, {BatchNormCopies::kOwn, "own"}}};
constexpr std::array<std::pair<CutRule, const char*>, 4> kCutRules = {
    {{CutRule::kBlocks, "blocks"},
     {CutRule::kLayers, "layers"},
     {CutRule::kFlopsVariance, "flops_variance"},
     {CutRule::kMemory, "memory"}}};
constexpr std::array<std::pair<RankOrder, const char*>, 3> kRankOrders = {
    {{RankOrder::kTensorDataPipeline, "tp-dp-pp"},
     {RankOrder::kTensorPipelineData, "tp-pp-dp"},
     {RankOrder::kTensorDataMirrored, "tp-dp-mirror"}}};
constexpr std::array<std::pair<ContextExchange, const char*>, 3> kContextExchanges = {
    {{ContextExchange::kGather, "gather"},
     {ContextExchange::kRing, "ring"},
     {ContextExchange::kHeads, "heads"}}};
constexpr std::array<std::pair<Dispatch, const char*>, 2> kDispatches = {
    {{Dispatch::kRows, "rows"}, {Dispatch::kOncePerNode, "once_per_node"}}};
constexpr std::array<std::pair<Exchanges, const char*>, 3> kExchanges = {
    {{Exchanges::kWaited, "waited"},
     {Exchanges::kBeside, "beside"},
     {Exchanges::kBesideDelayed, "beside_delayed"}}};
constexpr std::array<std::pair<VocabularyExchange, const char*>, 2> kVocabularyExchanges = {
    {{VocabularyExchange::kMessages, "messages"},
     {VocabularyExchange::kCollectives, "collectives"}}};
constexpr absl::string_view kFileEndings[] = {".csv", ".json", ".txt"};

absl::Status InvalidWord(absl::string_view option, absl::string_view text, absl::string_view word,
                         absl::string_view right) {
  return absl::InvalidArgumentError(absl::StrCat(option, "=", text, ": \"", word, "\": ", right));
}

std::string KnownWords() {
  std::vector<std::string> words;
  for (const StepField& f : StepFields()) {
    words.push_back(absl::StrCat(f.key, f.kind == FieldKind::kSwitch ? "" : "="));
  }
  return absl::StrCat("is unknown; known are ", absl::StrJoin(words, ", "));
}

const StepField* FindField(absl::string_view key) {
  for (const StepField& f : StepFields()) {
    if (f.key == key) return &f;
  }
  return nullptr;
}

// A path may have colons of its own: the keys begin after the last one.
std::pair<absl::string_view, absl::string_view> SchemeAndKeys(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return {text, ""};
  const absl::string_view keys = text.substr(colon + 1);
  for (const absl::string_view ending : kFileEndings) {
    if (absl::EndsWith(keys, ending) && !absl::StrContains(keys, '=')) return {text, ""};
  }
  return {text.substr(0, colon), keys};
}

}  // namespace

const char* RecomputeName(Recompute recompute) { return NameInTable(kRecompute, recompute); }
absl::StatusOr<Recompute> FindRecompute(absl::string_view name) {
  return FindInTable(kRecompute, name);
}
const char* DispatchName(Dispatch dispatch) { return NameInTable(kDispatches, dispatch); }
absl::StatusOr<Dispatch> FindDispatch(absl::string_view name) {
  return FindInTable(kDispatches, name);
}
const char* ExchangesName(Exchanges exchanges) { return NameInTable(kExchanges, exchanges); }
absl::StatusOr<Exchanges> FindExchanges(absl::string_view name) {
  return FindInTable(kExchanges, name);
}
const char* VocabularyExchangeName(VocabularyExchange exchange) {
  return NameInTable(kVocabularyExchanges, exchange);
}
absl::StatusOr<VocabularyExchange> FindVocabularyExchange(absl::string_view name) {
  return FindInTable(kVocabularyExchanges, name);
}
const char* BatchNormName(BatchNormCopies batch_norm) {
  return NameInTable(kBatchNorm, batch_norm);
}
absl::StatusOr<BatchNormCopies> FindBatchNorm(absl::string_view name) {
  return FindInTable(kBatchNorm, name);
}
const char* CutRuleName(CutRule rule) { return NameInTable(kCutRules, rule); }
absl::StatusOr<CutRule> FindCutRule(absl::string_view name) { return FindInTable(kCutRules, name); }
const char* RankOrderName(RankOrder order) { return NameInTable(kRankOrders, order); }
absl::StatusOr<RankOrder> FindRankOrder(absl::string_view name) {
  return FindInTable(kRankOrders, name);
}
const char* ContextExchangeName(ContextExchange exchange) {
  return NameInTable(kContextExchanges, exchange);
}
absl::StatusOr<ContextExchange> FindContextExchange(absl::string_view name) {
  return FindInTable(kContextExchanges, name);
}

bool StepConfig::has_schedule_file() const {
  return std::any_of(std::begin(kFileEndings), std::end(kFileEndings),
                     [&](absl::string_view ending) { return absl::EndsWith(scheme, ending); });
}

std::string StepConfig::ToString() const {
  const StepConfig defaults;
  std::vector<std::string> words;
  for (const StepField& f : StepFields()) {
    const std::string value = f.get(*this);
    if (!f.always && value == f.get(defaults)) continue;
    words.push_back(f.kind == FieldKind::kSwitch ? std::string(f.key)
                                                 : absl::StrCat(f.key, "=", value));
  }
  return absl::StrCat(scheme, ":", absl::StrJoin(words, ","));
}

bool operator==(const StepConfig& a, const StepConfig& b) { return a.ToString() == b.ToString(); }

absl::StatusOr<StepConfig> ParseStepConfig(absl::string_view option, absl::string_view text) {
  const auto [scheme, words] = SchemeAndKeys(text);
  StepConfig c;
  c.scheme = std::string(scheme);
  if (scheme.empty()) return InvalidWord(option, text, scheme, "a scheme's name is missing");
  std::set<absl::string_view> keys;
  for (absl::string_view word : absl::StrSplit(words, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const StepField* const field = FindField(pair[0]);
    // "recompute" alone is short for recompute=full.
    const bool alone = pair.size() == 1;
    if (field == nullptr || (alone && field->kind != FieldKind::kSwitch && word != "recompute")) {
      return InvalidWord(option, text, word, KnownWords());
    }
    if (!alone && field->kind == FieldKind::kSwitch) {
      return InvalidWord(option, text, word, "is a word without a value");
    }
    if (!keys.insert(pair[0]).second) {
      return InvalidWord(option, text, word, absl::StrCat(pair[0], " is given twice"));
    }
    const absl::string_view value = !alone                              ? pair[1]
                                    : field->kind == FieldKind::kSwitch ? "on"
                                                                        : "full";
    const absl::Status set = field->set(value, &c);
    if (!set.ok()) return InvalidWord(option, text, word, set.message());
  }
  return c;
}

absl::Status CheckRebuiltBlocks(const StepConfig& c) {
  const auto requires = [&](absl::string_view key, const auto& value, Recompute recompute) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, "=", value, ": requires recompute=", RecomputeName(recompute),
                     ", not recompute=", RecomputeName(c.recompute)));
  };
  if (!c.modules.empty() && c.recompute != Recompute::kSelective) {
    return requires("modules", c.modules, Recompute::kSelective);
  }
  for (const auto& [key, value, all] :
       {std::make_tuple("rebuilt", c.rebuilt_blocks, 0),
        std::make_tuple("rebuilt_every", c.rebuilt_every, 1),
        std::make_tuple("rebuilt_together", c.rebuilt_together, 1)}) {
    if (value != all && c.recompute != Recompute::kBlocks) {
      return requires(key, value, Recompute::kBlocks);
    }
  }
  return absl::OkStatus();
}

SchemeParams SchemeSizes(const StepConfig& c, int members) {
  SchemeParams sizes;
  sizes.devices = c.pipeline;
  sizes.micro_batches = c.micro_batches;
  sizes.virtual_stages = c.virtual_stages;
  sizes.recompute = c.recompute == Recompute::kFull;
  sizes.data_parallel = members;
  sizes.group_size = c.group_size;
  sizes.replicas = c.replicas;
  sizes.concatenation = c.concatenation;
  sizes.update_interval = c.update_interval;
  sizes.slices = c.slices;
  if (c.divides_vocabulary()) sizes.stages = StagesWithVocabulary(c);
  // The whole mode is asked of every schedule; the others have no such order.
  sizes.forwards_first = (c.execution & kAllForwardsFirst) != 0 && c.scheme == "interleaved" &&
                         c.micro_batches == c.pipeline;
  return sizes;
}

}  // namespace pipelab
