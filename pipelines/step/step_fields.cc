#include "pipelines/step/step_fields.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/specs/recomputed_modules.h"
#include "pipelines/step/execution.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename Integer>
StepField IntegerField(absl::string_view key, absl::string_view json_key,
                       Integer StepConfig::*member, int64_t least, bool always = false,
                       int64_t most = std::numeric_limits<int64_t>::max()) {
  StepField field{key, json_key, FieldKind::kInteger, always, nullptr, nullptr};
  field.get = [member](const StepConfig& c) { return absl::StrCat(c.*member); };
  field.set = [member, least, most](absl::string_view text, StepConfig* c) {
    Integer value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
      const bool limited = most < std::numeric_limits<int64_t>::max();
      return absl::InvalidArgumentError(
          limited ? absl::StrCat("must be a whole number from ", least, " to ", most)
                  : absl::StrCat("must be a whole number of at least ", least));
    }
    c->*member = value;
    return absl::OkStatus();
  };
  return field;
}

// On where the member has the value `on`.
template <typename Value>
StepField SwitchField(absl::string_view key, Value StepConfig::*member, Value on, Value off) {
  StepField field{key, key, FieldKind::kSwitch, false, nullptr, nullptr};
  field.get = [member, on](const StepConfig& c) { return c.*member == on ? "on" : ""; };
  field.set = [member, on, off](absl::string_view text, StepConfig* c) {
    c->*member = text.empty() ? off : on;
    return absl::OkStatus();
  };
  return field;
}

template <typename Value>
StepField NamedField(absl::string_view key, Value StepConfig::*member,
                     std::function<std::string(Value)> name,
                     std::function<absl::StatusOr<Value>(absl::string_view)> find) {
  StepField field{key, key, FieldKind::kText, false, nullptr, nullptr};
  field.get = [member, name](const StepConfig& c) { return name(c.*member); };
  field.set = [member, find](absl::string_view text, StepConfig* c) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(c->*member, find(text));
    return absl::OkStatus();
  };
  return field;
}

StepField TextField(absl::string_view key, std::string StepConfig::*member) {
  return NamedField<std::string>(
      key, member, [](std::string value) { return value; },
      [](absl::string_view text) -> absl::StatusOr<std::string> {
        if (!text.empty()) return std::string(text);
        return absl::InvalidArgumentError("must not be empty");
      });
}

// "none" is what other systems call it.
absl::StatusOr<Sharding> FindSharding(absl::string_view name) {
  return name == "none" ? Sharding::kReplicated : ParseSharding(name, "sharding");
}

// Megatron-LM of 2022 as a whole sums its gradients at the end, too.
StepField ExecutionField() {
  StepField field{"execution", "execution", FieldKind::kText, false, nullptr, nullptr};
  field.get = [](const StepConfig& c) { return ExecutionName(c.execution, c.overlap_data); };
  field.set = [](absl::string_view text, StepConfig* c) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(c->execution, ParseExecution(text));
    if (text == kMegatron2022) c->overlap_data = false;
    return absl::OkStatus();
  };
  return field;
}

// In the order of the table, each once.
absl::StatusOr<std::string> FindModules(absl::string_view text) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(text, '+');
  const std::vector<absl::string_view> known = RecomputedModuleNames();
  for (const absl::string_view name : wanted) {
    if (std::count(known.begin(), known.end(), name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is unknown", NearestOrAll(name, known)));
  }
  std::vector<absl::string_view> modules;
  for (const absl::string_view name : known) {
    if (std::count(wanted.begin(), wanted.end(), name) > 0) modules.push_back(name);
  }
  return absl::StrJoin(modules, "+");
}

std::vector<StepField> MakeFields() {
  return {
      IntegerField("P", "pipeline", &StepConfig::pipeline, 1, true),
      IntegerField("T", "tensor", &StepConfig::tensor, 1, true),
      IntegerField("D", "data", &StepConfig::data, 1, true),
      IntegerField("V", "virtual_stages", &StepConfig::virtual_stages, 0, true),
      IntegerField("b", "micro_batch_size", &StepConfig::micro_batch_size, 1, true),
      IntegerField("M", "micro_batches", &StepConfig::micro_batches, 1, true),
      IntegerField("C", "context", &StepConfig::context, 1),
      NamedField<ContextExchange>("context_exchange", &StepConfig::context_exchange,
                                  ContextExchangeName, FindContextExchange),
      IntegerField("E", "experts", &StepConfig::experts, 1),
      SwitchField("whole_experts", &StepConfig::whole_experts, true, false),
      NamedField<Dispatch>("dispatch", &StepConfig::dispatch, DispatchName, FindDispatch),
      NamedField<Exchanges>("exchanges", &StepConfig::exchanges, ExchangesName, FindExchanges),
      NamedField<Sharding>("sharding", &StepConfig::sharding, ShardingName, FindSharding),
      IntegerField("shards", "shards", &StepConfig::shards, 0),
      NamedField<StateNumbers>("state", &StepConfig::state, StateNumbersName, FindStateNumbers),
      NamedField<Recompute>("recompute", &StepConfig::recompute, RecomputeName, FindRecompute),
      NamedField<std::string>(
          "modules", &StepConfig::modules, [](std::string modules) { return modules; },
          FindModules),
      IntegerField("rebuilt", "rebuilt_blocks", &StepConfig::rebuilt_blocks, 0),
      IntegerField("rebuilt_every", "rebuilt_every", &StepConfig::rebuilt_every, 1),
      IntegerField("rebuilt_together", "rebuilt_together", &StepConfig::rebuilt_together, 1),
      IntegerField("early_recompute", "early_recompute", &StepConfig::early_recompute, 0),
      SwitchField("published", &StepConfig::published_order, true, false),
      SwitchField("split_head", &StepConfig::split_head, true, false),
      SwitchField("sequence", &StepConfig::sequence_parallel, true, false),
      NamedField<BatchNormCopies>("batch_norm", &StepConfig::batch_norm, BatchNormName,
                                  FindBatchNorm),
      NamedField<LocalHead>("local_heads", &StepConfig::local_heads, LocalHeadName, FindLocalHead),
      NamedField<CutRule>("cut", &StepConfig::cut, CutRuleName, FindCutRule),
      TextField("layout", &StepConfig::layout),
      IntegerField("group", "group_size", &StepConfig::group_size, 0),
      IntegerField("replicas", "replicas", &StepConfig::replicas, 0),
      IntegerField("slices", "slices", &StepConfig::slices, 0),
      SwitchField("slice_exchange", &StepConfig::slice_exchange, true, false),
      IntegerField("vocabulary_barriers", "vocabulary_barriers", &StepConfig::vocabulary_barriers,
                   0, /*always=*/false, /*most=*/2),
      NamedField<VocabularyExchange>("vocabulary_exchange", &StepConfig::vocabulary_exchange,
                                     VocabularyExchangeName, FindVocabularyExchange),
      IntegerField("update", "update_interval", &StepConfig::update_interval, 0),
      NamedField<Concatenation>(
          "concatenation", &StepConfig::concatenation,
          [](Concatenation c) { return std::string(ConcatenationName(c)); }, ParseConcatenation),
      SwitchField("gathers_each", &StepConfig::residency, Residency::kMicroBatch, Residency::kRun),
      SwitchField("no_pipeline_overlap", &StepConfig::overlap_pipeline, false, true),
      SwitchField("steady_overlap", &StepConfig::steady_overlap, true, false),
      SwitchField("no_data_overlap", &StepConfig::overlap_data, false, true),
      SwitchField("tensor_overlap", &StepConfig::overlap_tensor, true, false),
      SwitchField("whole_messages", &StepConfig::whole_messages, true, false),
      NamedField<RankOrder>("ranks", &StepConfig::ranks, RankOrderName, FindRankOrder),
      ExecutionField(),
      TextField("model", &StepConfig::model),
      TextField("cluster", &StepConfig::cluster),
      TextField("dtype", &StepConfig::dtype),
  };
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): it loses track of functions in a list

}  // namespace

const std::vector<StepField>& StepFields() {
  static const auto* fields = new std::vector<StepField>(MakeFields());
  return *fields;
}

}  // namespace pipelab
