#include "pipelines/recipes/torchtitan_keys.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "tools/base/did_you_mean.h"

namespace pipelab {
namespace {

constexpr absl::string_view kOtherSections[] = {
    "job",        "profiling",       "metrics",    "optimizer", "lr_scheduler",
    "checkpoint", "fault_tolerance", "validation", "comm",      "memory_estimation",
    "mx",         "quantize",        "compile",    "debug",     "experimental"};

// Priced without them, unless their value is the harmless one; "": all keys of the section.
struct WithoutKey {
  absl::string_view section, key, harmless, how;
};
constexpr WithoutKey kWithoutKeys[] = {
    {"parallelism", "disable_loss_parallel", "false", "the loss is that of parts of the words"},
    {"float8", "recipe_name", "\"tensorwise\"", "casts have one scale a tensor"},
    {"optimizer", "name", "\"AdamW\"", "the optimizer is Adam"},
    {"optimizer", "early_step_in_backward", "false", "the step follows all backwards"},
    {"mx", "", "", "numbers are those of model.converters"},
    {"quantize", "", "", "numbers are those of model.converters"},
};

}  // namespace

// Keys of the sections that are read; those of others are not looked at.
struct TorchtitanKeys::Section {
  absl::string_view name;
  std::vector<absl::string_view> read, passed_over;
};

const std::vector<TorchtitanKeys::Section>& TorchtitanKeys::Sections() {
  static const auto* sections = new std::vector<Section>{
      {"model",
       {"name", "flavor", "converters"},
       {"tokenizer_path", "hf_assets_path", "print_after_conversion"}},
      {"training",
       {"local_batch_size", "batch_size", "global_batch_size", "seq_len", "enable_cpu_offload",
        "mixed_precision_param", "mixed_precision_reduce", "dtype"},
       {"dataset", "dataset_path", "max_norm", "steps", "compile", "gc_freq", "gc_debug", "seed",
        "deterministic"}},
      {"parallelism",
       {"data_parallel_replicate_degree", "data_parallel_shard_degree",
        "fsdp_reshard_after_forward", "tensor_parallel_degree", "enable_async_tensor_parallel",
        "pipeline_parallel_degree", "pipeline_parallel_split_points", "module_fqns_per_model_part",
        "pipeline_parallel_first_stage_less_layers", "pipeline_parallel_last_stage_less_layers",
        "pipeline_parallel_layers_per_stage", "pipeline_parallel_schedule",
        "pipeline_parallel_schedule_csv", "pipeline_parallel_microbatch_size",
        "context_parallel_degree", "context_parallel_rotate_method", "expert_parallel_degree",
        "expert_tensor_parallel_degree"},
       {"enable_compiled_autograd", "disable_loss_parallel"}},
      {"activation_checkpoint",
       {"mode", "selective_ac_option"},
       {"per_op_sac_force_recompute_mm_shapes_by_fqns", "early_stop"}},
      {"float8",
       {"enable_fsdp_float8_all_gather"},
       {"precompute_float8_dynamic_scale_for_fsdp", "force_recompute_fp8_weight_in_bwd",
        "recipe_name", "filter_fqns", "emulate", "moe_fqns_prototype", "moe_fqns"}},
  };
  return *sections;
}

absl::Status TorchtitanKeys::Check() {
  std::vector<absl::string_view> sections(std::begin(kOtherSections), std::end(kOtherSections));
  for (const Section& s : Sections()) sections.push_back(s.name);
  for (const auto& [name, value] : root_.items()) {
    const auto section = std::find_if(Sections().begin(), Sections().end(),
                                      [&key = name](const Section& s) { return s.name == key; });
    if (!value.is_object()) return Error(name, "must be in a section; such as [training]");
    if (section != Sections().end()) {
      SortKeysOf(*section, value);
    } else if (std::find(sections.begin(), sections.end(), name) == sections.end()) {
      AddUnknown(absl::StrCat("[", name, "]"), name, sections);
    } else if (name == "experimental" && value.contains("pipeline_parallel_degree")) {
      return Error("experimental.pipeline_parallel_degree",
                   "is in [parallelism] since 2025; nearest: parallelism.pipeline_parallel_degree");
    } else {
      for (const auto& [key, of_key] : value.items()) PassOver(name, key, of_key);
    }
  }
  return absl::OkStatus();
}

void TorchtitanKeys::PassOver(absl::string_view section, absl::string_view key,
                              const nlohmann::json& value) {
  const std::string place = absl::StrCat(section, ".", key);
  for (const WithoutKey& w : kWithoutKeys) {
    if (w.section != section || (!w.key.empty() && w.key != key)) continue;
    if (!w.key.empty() && value.dump() == w.harmless) continue;
    not_priced_.push_back(absl::StrCat(place, ": ", w.how));
    return;
  }
  passed_over_.push_back(place);
}

void TorchtitanKeys::AddUnknown(absl::string_view place, absl::string_view name,
                                const std::vector<absl::string_view>& known) {
  unknown_.push_back(absl::StrCat(place, ": unknown",
                                  unknown_.size() < kMostAskedFor ? DidYouMean(name, known) : ""));
}

void TorchtitanKeys::SortKeysOf(const Section& section, const nlohmann::json& value) {
  for (const auto& [key, of_key] : value.items()) {
    const std::string place = absl::StrCat(section.name, ".", key);
    if (std::count(section.read.begin(), section.read.end(), key) > 0) continue;
    if (std::count(section.passed_over.begin(), section.passed_over.end(), key) > 0) {
      PassOver(section.name, key, of_key);
      continue;
    }
    std::vector<absl::string_view> known = section.read;
    known.insert(known.end(), section.passed_over.begin(), section.passed_over.end());
    AddUnknown(place, key, known);
  }
}

const nlohmann::json* TorchtitanKeys::Find(absl::string_view section, absl::string_view key) const {
  const auto s = root_.find(std::string(section));
  if (s == root_.end()) return nullptr;
  const auto k = s->find(std::string(key));
  return k == s->end() || k->is_null() ? nullptr : &*k;
}

absl::StatusOr<int64_t> TorchtitanKeys::Integer(absl::string_view section, absl::string_view key,
                                                int64_t least, int64_t most,
                                                int64_t if_absent) const {
  const nlohmann::json* value = Find(section, key);
  if (value == nullptr) return if_absent;
  if (value->is_number_integer() && *value >= least && *value <= most) {
    return value->get<int64_t>();
  }
  return Error(absl::StrCat(section, ".", key), value->dump(), ": must be a whole number from ",
               least, " to ", most);
}

absl::StatusOr<bool> TorchtitanKeys::Bool(absl::string_view section, absl::string_view key) const {
  const nlohmann::json* value = Find(section, key);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  return Error(absl::StrCat(section, ".", key), value->dump(), ": must be true or false");
}

absl::StatusOr<std::string> TorchtitanKeys::Word(absl::string_view section, absl::string_view key,
                                                 const std::vector<absl::string_view>& known,
                                                 absl::string_view if_absent) const {
  const nlohmann::json* value = Find(section, key);
  if (value == nullptr) return std::string(if_absent);
  const std::string word = value->is_string() ? value->get<std::string>() : value->dump();
  if (std::count(known.begin(), known.end(), word) > 0) return word;
  return Error(absl::StrCat(section, ".", key), "\"", word, "\": must be ",
               absl::StrJoin(known, ", "), DidYouMean(word, known));
}

}  // namespace pipelab
