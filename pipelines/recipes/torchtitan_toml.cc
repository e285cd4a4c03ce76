#include "pipelines/recipes/torchtitan_toml.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/torchtitan_names.h"
#include "pipelines/recipes/torchtitan_stages.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"
#include "tools/base/toml.h"

namespace pipelab {
namespace {

constexpr int64_t kMostDegree = 1 << 16;
constexpr int64_t kMostBatch = 1 << 24;

// Keys of the sections that are read; those of others are not looked at.
struct Section {
  absl::string_view name;
  std::vector<absl::string_view> read, passed_over;
};

const std::vector<Section>& Sections() {
  static const auto* sections = new std::vector<Section>{
      {"model",
       {"name", "flavor", "converters"},
       {"tokenizer_path", "hf_assets_path", "print_after_conversion"}},
      {"training",
       {"local_batch_size", "batch_size", "global_batch_size", "seq_len", "enable_cpu_offload",
        "mixed_precision_param", "dtype"},
       {"dataset", "dataset_path", "max_norm", "steps", "mixed_precision_reduce", "compile",
        "gc_freq", "gc_debug", "seed", "deterministic"}},
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
       {"mode"},
       {"selective_ac_option", "per_op_sac_force_recompute_mm_shapes_by_fqns", "early_stop"}},
      {"float8",
       {"enable_fsdp_float8_all_gather"},
       {"precompute_float8_dynamic_scale_for_fsdp", "force_recompute_fp8_weight_in_bwd",
        "recipe_name", "filter_fqns", "emulate", "moe_fqns_prototype", "moe_fqns"}},
  };
  return *sections;
}
constexpr absl::string_view kOtherSections[] = {
    "job",        "profiling",       "metrics",    "optimizer", "lr_scheduler",
    "checkpoint", "fault_tolerance", "validation", "comm",      "memory_estimation",
    "mx",         "quantize",        "compile",    "debug",     "experimental"};

class TorchtitanReader {
 public:
  TorchtitanReader(const nlohmann::json& root, absl::string_view what, int64_t devices)
      : root_(root), what_(what), devices_(devices) {}

  absl::StatusOr<Recipe> Read() {
    PIPELAB_RETURN_IF_ERROR(CheckKeys());
    PIPELAB_RETURN_IF_ERROR(TakeModel());
    PIPELAB_RETURN_IF_ERROR(TakeDegrees());
    PIPELAB_RETURN_IF_ERROR(TakeSchedule());
    PIPELAB_RETURN_IF_ERROR(TakeBatch());
    PIPELAB_RETURN_IF_ERROR(TakeTypes());
    PIPELAB_RETURN_IF_ERROR(TakeSharding());
    PIPELAB_RETURN_IF_ERROR(TakeRecomputation());
    return std::move(r_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(absl::string_view place, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", place, ": ", parts...));
  }

  absl::Status CheckKeys() {
    std::vector<absl::string_view> sections(std::begin(kOtherSections), std::end(kOtherSections));
    for (const Section& s : Sections()) sections.push_back(s.name);
    for (const auto& [name, value] : root_.items()) {
      const auto section = std::find_if(Sections().begin(), Sections().end(),
                                        [&key = name](const Section& s) { return s.name == key; });
      if (!value.is_object()) return Error(name, "must be in a section; such as [training]");
      if (section != Sections().end()) {
        PIPELAB_RETURN_IF_ERROR(CheckKeysOf(*section, value));
      } else if (std::find(sections.begin(), sections.end(), name) == sections.end()) {
        return Error(absl::StrCat("[", name, "]"), "no section of torchtitan",
                     DidYouMean(name, sections));
      } else if (name == "experimental" && value.contains("pipeline_parallel_degree")) {
        return Error(
            "experimental.pipeline_parallel_degree",
            "is in [parallelism] since 2025; nearest: parallelism.pipeline_parallel_degree");
      } else {
        r_.passed_over += static_cast<int>(value.size());
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckKeysOf(const Section& section, const nlohmann::json& value) {
    for (const auto& [key, unused] : value.items()) {
      if (std::count(section.read.begin(), section.read.end(), key) > 0) continue;
      if (std::count(section.passed_over.begin(), section.passed_over.end(), key) > 0) {
        ++r_.passed_over;
        continue;
      }
      std::vector<absl::string_view> known = section.read;
      known.insert(known.end(), section.passed_over.begin(), section.passed_over.end());
      return Error(absl::StrCat(section.name, ".", key), "no key of torchtitan",
                   DidYouMean(key, known));
    }
    return absl::OkStatus();
  }

  const nlohmann::json* Find(absl::string_view section, absl::string_view key) const {
    const auto s = root_.find(std::string(section));
    if (s == root_.end()) return nullptr;
    const auto k = s->find(std::string(key));
    return k == s->end() || k->is_null() ? nullptr : &*k;
  }
  absl::StatusOr<int64_t> Integer(absl::string_view section, absl::string_view key, int64_t least,
                                  int64_t most, int64_t if_absent) const {
    const nlohmann::json* value = Find(section, key);
    if (value == nullptr) return if_absent;
    if (value->is_number_integer() && *value >= least && *value <= most) {
      return value->get<int64_t>();
    }
    return Error(absl::StrCat(section, ".", key), value->dump(), ": must be a whole number from ",
                 least, " to ", most);
  }
  absl::StatusOr<bool> Bool(absl::string_view section, absl::string_view key) const {
    const nlohmann::json* value = Find(section, key);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    return Error(absl::StrCat(section, ".", key), value->dump(), ": must be true or false");
  }
  // One of the known words, in torchtitan's case.
  absl::StatusOr<std::string> Word(absl::string_view section, absl::string_view key,
                                   const std::vector<absl::string_view>& known,
                                   absl::string_view if_absent) const {
    const nlohmann::json* value = Find(section, key);
    if (value == nullptr) return std::string(if_absent);
    const std::string word = value->is_string() ? value->get<std::string>() : value->dump();
    if (std::count(known.begin(), known.end(), word) > 0) return word;
    return Error(absl::StrCat(section, ".", key), "\"", word, "\": must be ",
                 absl::StrJoin(known, ", "), DidYouMean(word, known));
  }
  absl::StatusOr<int64_t> Degree(absl::string_view key, int64_t least = 1,
                                 int64_t if_absent = 1) const {
    return Integer("parallelism", key, least, kMostDegree, if_absent);
  }

  absl::Status TakeModel() {
    const nlohmann::json* name = Find("model", "name");
    if (name != nullptr && *name != "llama3") {
      return Error("model.name", name->dump(),
                   ": only llama3 is known here; nearest: "
                   "name = \"llama3\"");
    }
    std::vector<absl::string_view> flavors;
    for (const TorchtitanModel& m : kTorchtitanModels) flavors.push_back(m.flavor);
    PIPELAB_ASSIGN_OR_RETURN(const std::string flavor,
                             Word("model", "flavor", flavors, "debugmodel"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t tokens,
                             Integer("training", "seq_len", 1, kMostTokens, 2048));
    for (const TorchtitanModel& m : kTorchtitanModels) {
      if (m.flavor == flavor) r_.model = m.Config(tokens);
    }
    return absl::OkStatus();
  }

  absl::Status TakeDegrees() {
    for (const char* key : {"expert_parallel_degree", "expert_tensor_parallel_degree"}) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t expert, Degree(key));
      if (expert > 1) {
        return Error(absl::StrCat("parallelism.", key), expert,
                     ": experts have no counterpart here; nearest: 1");
      }
    }
    StepConfig& c = r_.config;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t tensor, Degree("tensor_parallel_degree"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t pipeline, Degree("pipeline_parallel_degree"));
    for (const auto& [size, of] : {std::make_pair(r_.model.kv_heads, "heads of keys"),
                                   std::make_pair(r_.model.tokens, "tokens of seq_len")}) {
      if (size % tensor == 0) continue;
      return Error("parallelism.tensor_parallel_degree", tensor, ": must divide the ", size, " ",
                   of, "; nearest: ", NearestDivisor(tensor, size));
    }
    c.tensor = static_cast<int>(tensor);
    c.pipeline = static_cast<int>(pipeline);
    c.sequence_parallel = tensor > 1;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t context, Degree("context_parallel_degree"));
    const int64_t parts = 2 * context * tensor;
    if (context > 1 && r_.model.tokens % parts != 0) {
      return Error("parallelism.context_parallel_degree", context, ": seq_len = ", r_.model.tokens,
                   " must be in ", parts,
                   " equal parts; nearest: seq_len = ", NearestMultiple(r_.model.tokens, parts));
    }
    c.context = static_cast<int>(context);
    PIPELAB_ASSIGN_OR_RETURN(const std::string rotate,
                             Word("parallelism", "context_parallel_rotate_method",
                                  {"allgather", "alltoall"}, "allgather"));
    if (context > 1 && rotate == "alltoall") c.context_exchange = ContextExchange::kRing;
    return TakeData(tensor * pipeline * context);
  }

  absl::Status TakeData(int64_t model_devices) {
    PIPELAB_ASSIGN_OR_RETURN(replicate_, Degree("data_parallel_replicate_degree"));
    PIPELAB_ASSIGN_OR_RETURN(shard_, Degree("data_parallel_shard_degree", -1, -1));
    if (shard_ == 0)
      return Error("parallelism.data_parallel_shard_degree",
                   "0: must be -1 (all) or at least 1; nearest: 1");
    const int64_t said = model_devices * replicate_ * std::max<int64_t>(shard_, 1);
    if (devices_ == 0 && shard_ < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--devices: missing; ", what_,
          ": data_parallel_shard_degree = -1 takes all GPUs, and does not say how many"));
    }
    const int64_t devices = devices_ == 0 ? said : devices_;
    if (shard_ > 0 ? devices != said : devices % said != 0) {
      return Error("parallelism", said, " GPUs by its degrees, which ",
                   shard_ > 0 ? "must be" : "must divide", " the ", devices,
                   " there are; nearest: --devices=", NearestMultiple(devices, said));
    }
    if (shard_ < 0) shard_ = devices / said;
    if (replicate_ * shard_ > kMostDegree)
      return Error("parallelism", "more than ", kMostDegree, " copies");
    r_.config.data = static_cast<int>(replicate_ * shard_);
    return absl::OkStatus();
  }

  absl::StatusOr<const TorchtitanSchedule*> FindSchedule() const {
    const nlohmann::json* value = Find("parallelism", "pipeline_parallel_schedule");
    std::vector<absl::string_view> names;
    for (const TorchtitanSchedule& s : kTorchtitanSchedules) {
      if (value == nullptr ||
          (value->is_string() && absl::EqualsIgnoreCase(value->get<std::string>(), s.name))) {
        return &s;
      }
      names.push_back(s.name);
    }
    return Error("parallelism.pipeline_parallel_schedule", value->dump(), ": unknown",
                 NearestOrAll(value->is_string() ? value->get<std::string>() : "", names));
  }

  absl::Status TakeSchedule() {
    StepConfig& c = r_.config;
    c.overlap_pipeline = false;
    const nlohmann::json* csv = Find("parallelism", "pipeline_parallel_schedule_csv");
    if (csv != nullptr && *csv != "") {
      return Error(
          "parallelism.pipeline_parallel_schedule_csv", csv->dump(),
          ": a schedule of its own is no part of this; nearest: pipelab simulate FILE.csv");
    }
    if (Find("parallelism", "pipeline_parallel_split_points") != nullptr) {
      return Error("parallelism.pipeline_parallel_split_points",
                   "is no longer valid in torchtitan; nearest: module_fqns_per_model_part");
    }
    PIPELAB_ASSIGN_OR_RETURN(const TorchtitanSchedule* schedule, FindSchedule());
    if (c.pipeline == 1) {
      return SetStages(StagesOfTransformers({r_.model.layers}), &r_);
    }
    c.scheme = std::string(schedule->scheme);
    PIPELAB_ASSIGN_OR_RETURN(std::vector<MegatronStage> stages, StagesOfSchedule(*schedule));
    const int64_t each = static_cast<int64_t>(stages.size()) / c.pipeline;
    if (each * c.pipeline != static_cast<int64_t>(stages.size()) ||
        schedule->one_stage != (each == 1) || (schedule->v_shaped && each != 2)) {
      const int64_t right = schedule->one_stage ? c.pipeline : 2 * c.pipeline;
      return Error("parallelism.pipeline_parallel_schedule", schedule->name, ": ", stages.size(),
                   " stages on ", c.pipeline, " devices; nearest: ", right, " stages");
    }
    if (!schedule->one_stage && !schedule->v_shaped) c.virtual_stages = static_cast<int>(each);
    const absl::Status set = SetStages(std::move(stages), &r_);
    if (set.ok()) return set;
    return Error("parallelism.pipeline_parallel_degree", set.message());
  }

  absl::StatusOr<std::vector<MegatronStage>> StagesOfSchedule(const TorchtitanSchedule& schedule) {
    const int64_t layers = r_.model.layers, pipeline = r_.config.pipeline;
    if (const nlohmann::json* parts = Find("parallelism", "module_fqns_per_model_part")) {
      absl::StatusOr<std::vector<MegatronStage>> stages = StagesOfModules(*parts, layers);
      if (stages.ok()) return stages;
      return Error("parallelism.module_fqns_per_model_part", stages.status().message());
    }
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t first,
        Integer("parallelism", "pipeline_parallel_first_stage_less_layers", 0, layers, 1));
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t last,
        Integer("parallelism", "pipeline_parallel_last_stage_less_layers", 0, layers, 1));
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t each,
        Integer("parallelism", "pipeline_parallel_layers_per_stage", 1, kMostLayers, 0));
    const auto stages_of = [all = layers + first + last](int64_t of_stage) {
      return (all + of_stage - 1) / of_stage;
    };
    int64_t stages = pipeline * (schedule.one_stage ? 1 : 2);
    if (each > 0) stages = stages_of(each);
    if (stages % pipeline != 0) {
      int64_t fewer = each;
      while (fewer > 1 && stages_of(fewer) % pipeline != 0) --fewer;
      return Error(
          "parallelism.pipeline_parallel_layers_per_stage", each, ": ", stages, " stages, which ",
          pipeline, " devices do not divide; nearest: ",
          stages_of(fewer) % pipeline == 0
              ? absl::StrCat(fewer)
              : absl::StrCat("pipeline_parallel_degree = ", NearestDivisor(pipeline, stages)));
    }
    absl::StatusOr<std::vector<MegatronStage>> made = TorchtitanStages(layers, stages, first, last);
    if (made.ok()) return made;
    return Error("parallelism.pipeline_parallel_degree", pipeline, ": ", made.status().message());
  }

  absl::Status TakeBatch() {
    StepConfig& c = r_.config;
    const bool old = Find("training", "batch_size") != nullptr;
    PIPELAB_ASSIGN_OR_RETURN(
        const int64_t local,
        Integer("training", old ? "batch_size" : "local_batch_size", 1, kMostBatch, 8));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t global,
                             Integer("training", "global_batch_size", -1, kMostBatch, -1));
    const int64_t unit = local * c.data, batch = global > 0 ? global : unit;
    if (batch % unit != 0) {
      return Error("training.global_batch_size", batch, ": must be a multiple of local_batch_size ",
                   local, " times ", c.data, " copies; nearest: ", NearestMultiple(batch, unit));
    }
    if (c.pipeline == 1) {
      c.micro_batch_size = local;
      c.micro_batches = static_cast<int>(batch / unit);
      return absl::OkStatus();
    }
    PIPELAB_ASSIGN_OR_RETURN(
        c.micro_batch_size,
        Integer("parallelism", "pipeline_parallel_microbatch_size", 1, kMostBatch, 1));
    if (local % c.micro_batch_size != 0) {
      return Error("parallelism.pipeline_parallel_microbatch_size", c.micro_batch_size,
                   ": must divide local_batch_size ", local,
                   "; nearest: ", NearestDivisor(c.micro_batch_size, local));
    }
    if (batch != unit) {
      return Error("training.global_batch_size", batch, ": ", batch / unit,
                   " passes of the pipeline make a step, and here one does; nearest: "
                   "local_batch_size = ",
                   batch / c.data);
    }
    c.micro_batches = static_cast<int>(local / c.micro_batch_size);
    return absl::OkStatus();
  }

  absl::Status TakeTypes() {
    PIPELAB_ASSIGN_OR_RETURN(const std::string numbers, Word("training", "mixed_precision_param",
                                                             {"bfloat16", "float32"}, "bfloat16"));
    r_.type = numbers == "float32" ? NumberType::kFp32 : NumberType::kBf16;
    const nlohmann::json* converters = Find("model", "converters");
    const std::string all = converters == nullptr ? "" : converters->dump();
    if (absl::StrContains(all, "float8")) r_.type = NumberType::kFp8;
    if (absl::StrContains(all, "mx")) {
      return Error("model.converters", all,
                   ": blocks of 32 have no counterpart here; nearest: [\"float8\"]");
    }
    PIPELAB_ASSIGN_OR_RETURN(const bool offload, Bool("training", "enable_cpu_offload"));
    if (offload) {
      return Error("training.enable_cpu_offload",
                   "true: nothing is kept on the host here; nearest: "
                   "false, with activation_checkpoint.mode = \"full\"");
    }
    PIPELAB_ASSIGN_OR_RETURN(const bool gathers, Bool("float8", "enable_fsdp_float8_all_gather"));
    if (gathers) {
      r_.assumptions.emplace_back(
          "enable_fsdp_float8_all_gather: parameters are gathered in 4 bytes a number");
    }
    PIPELAB_ASSIGN_OR_RETURN(const bool async, Bool("parallelism", "enable_async_tensor_parallel"));
    if (async) {
      r_.assumptions.emplace_back(
          "enable_async_tensor_parallel: tensor-parallel collectives are not hidden");
    }
    return absl::OkStatus();
  }

  absl::Status TakeSharding() {
    PIPELAB_ASSIGN_OR_RETURN(const std::string reshard,
                             Word("parallelism", "fsdp_reshard_after_forward",
                                  {"default", "always", "never"}, "default"));
    StepConfig& c = r_.config;
    // Weights are sharded over what divides the tokens, too.
    const int64_t shards = shard_ * c.context;
    if (shards == 1) return absl::OkStatus();
    if (replicate_ > 1) c.shards = static_cast<int>(shards);
    const bool kept = reshard == "never" || (reshard == "default" && c.pipeline > 1);
    c.sharding = kept ? Sharding::kGradients : Sharding::kFully;
    if (!kept && c.pipeline > 1) c.residency = Residency::kMicroBatch;
    return GatherByBlock(&r_);
  }

  absl::Status TakeRecomputation() {
    PIPELAB_ASSIGN_OR_RETURN(const std::string mode,
                             Word("activation_checkpoint", "mode",
                                  {"none", "selective", "full", "memory_budget"}, "selective"));
    if (mode == "full") r_.config.recompute = Recompute::kBlocks;
    if (mode == "full" || mode == "none") return absl::OkStatus();
    return Error("activation_checkpoint.mode", "\"", mode, "\"",
                 Find("activation_checkpoint", "mode") == nullptr ? ", the default" : "",
                 ": every second layer or product has no counterpart here; nearest: \"full\" or "
                 "\"none\"");
  }

  const nlohmann::json& root_;
  const std::string what_;
  const int64_t devices_;
  int64_t replicate_ = 1, shard_ = 1;
  Recipe r_;
};

}  // namespace

absl::StatusOr<Recipe> ReadTorchtitanToml(absl::string_view text, absl::string_view what,
                                          int64_t devices) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseToml(text, what));
  return TorchtitanReader(root, what, devices).Read();
}

}  // namespace pipelab
