#include "pipelines/recipes/torchtitan_toml.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/torchtitan_keys.h"
#include "pipelines/recipes/torchtitan_names.h"
#include "pipelines/recipes/torchtitan_schedule.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"
#include "tools/base/toml.h"

namespace pipelab {
namespace {

constexpr int64_t kMostTorchtitanDegree = 1 << 16;
constexpr int64_t kMostTorchtitanBatch = 1 << 24;

class TorchtitanReader {
 public:
  TorchtitanReader(const nlohmann::json& root, absl::string_view what, int64_t devices)
      : keys_(root, what), what_(what), devices_(devices) {}

  absl::StatusOr<Recipe> Read() {
    PIPELAB_RETURN_IF_ERROR(keys_.Check());
    r_.not_priced = keys_.not_priced();
    r_.unknown = keys_.unknown();
    r_.passed_over = keys_.passed_over();
    PIPELAB_RETURN_IF_ERROR(TakeModel());
    PIPELAB_RETURN_IF_ERROR(TakeDegrees());
    PIPELAB_RETURN_IF_ERROR(TakeTorchtitanSchedule(keys_, &r_));
    PIPELAB_RETURN_IF_ERROR(TakeBatch());
    PIPELAB_RETURN_IF_ERROR(TakeTypes());
    PIPELAB_RETURN_IF_ERROR(TakeSharding());
    PIPELAB_RETURN_IF_ERROR(TakeRecomputation());
    return std::move(r_);
  }
  const std::vector<std::string>& unknown() const { return keys_.unknown(); }

 private:
  template <typename... Parts>
  absl::Status Error(absl::string_view place, const Parts&... parts) const {
    return keys_.Error(place, parts...);
  }
  absl::StatusOr<int64_t> Degree(absl::string_view key, int64_t least = 1,
                                 int64_t if_absent = 1) const {
    return keys_.Integer("parallelism", key, least, kMostTorchtitanDegree, if_absent);
  }

  absl::Status TakeModel() {
    std::vector<absl::string_view> names, flavors;
    for (const TorchtitanModel& m : TorchtitanModels()) {
      if (std::count(names.begin(), names.end(), m.name) == 0) names.push_back(m.name);
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::string name, keys_.Word("model", "name", names, "llama3"));
    for (const TorchtitanModel& m : TorchtitanModels()) {
      if (m.name == name) flavors.push_back(m.flavor);
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::string flavor,
                             keys_.Word("model", "flavor", flavors, "debugmodel"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t tokens,
                             keys_.Integer("training", "seq_len", 1, kMostTokens, 2048));
    for (const TorchtitanModel& m : TorchtitanModels()) {
      if (m.name == name && m.flavor == flavor) r_.model = m.config;
    }
    r_.model.tokens = tokens;
    return absl::OkStatus();
  }

  absl::Status TakeDegrees() {
    StepConfig& c = r_.config;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t tensor, Degree("tensor_parallel_degree"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t pipeline, Degree("pipeline_parallel_degree"));
    for (const auto& [size, of] :
         {std::make_pair(r_.model.kv_heads > 0 ? r_.model.kv_heads : r_.model.heads,
                         "heads of keys"),
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
                             keys_.Word("parallelism", "context_parallel_rotate_method",
                                        {"allgather", "alltoall"}, "allgather"));
    if (context > 1 && rotate == "alltoall") c.context_exchange = ContextExchange::kRing;
    PIPELAB_RETURN_IF_ERROR(TakeData(tensor * pipeline * context));
    return TakeExperts();
  }

  // Experts are divided among the ranks that shard weights, those of C included, and of T where
  // experts are not split.
  absl::Status TakeExperts() {
    StepConfig& c = r_.config;
    const std::string place = "parallelism.expert_parallel_degree";
    PIPELAB_ASSIGN_OR_RETURN(const int64_t experts, Degree("expert_parallel_degree"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t tensor, Degree("expert_tensor_parallel_degree"));
    if (experts == 1) return absl::OkStatus();
    const int64_t all = r_.model.experts.experts;
    if (all == 0) {
      return Error(place, experts, ": the model has no experts; nearest: 1");
    }
    if (tensor != 1 && tensor != c.tensor) {
      return Error("parallelism.expert_tensor_parallel_degree", tensor,
                   ": must be 1 or tensor_parallel_degree, ", c.tensor, "; nearest: 1");
    }
    if (all % experts != 0) {
      return Error(place, experts, ": must divide the ", all,
                   " experts; nearest: ", NearestDivisor(experts, all));
    }
    c.whole_experts = tensor < c.tensor;
    const int64_t unit = int64_t{c.context} * (c.whole_experts ? c.tensor : 1);
    if (experts % unit == 0 && shard_ * unit % experts == 0) {
      c.experts = static_cast<int>(experts);
      return absl::OkStatus();
    }
    return Error(place, experts, ": must be ", unit, " times a divisor of the ", shard_,
                 " of data_parallel_shard_degree; nearest: ",
                 unit * NearestDivisor(std::max<int64_t>(1, experts / unit), shard_));
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
    if (replicate_ * shard_ > kMostTorchtitanDegree)
      return Error("parallelism", "more than ", kMostTorchtitanDegree, " copies");
    r_.config.data = static_cast<int>(replicate_ * shard_);
    return absl::OkStatus();
  }

  absl::Status TakeBatch() {
    StepConfig& c = r_.config;
    const bool old = keys_.Find("training", "batch_size") != nullptr;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t local,
                             keys_.Integer("training", old ? "batch_size" : "local_batch_size", 1,
                                           kMostTorchtitanBatch, 8));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t global, keys_.Integer("training", "global_batch_size",
                                                                 -1, kMostTorchtitanBatch, -1));
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
    PIPELAB_ASSIGN_OR_RETURN(c.micro_batch_size,
                             keys_.Integer("parallelism", "pipeline_parallel_microbatch_size", 1,
                                           kMostTorchtitanBatch, 1));
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
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string numbers,
        keys_.Word("training", "mixed_precision_param", {"bfloat16", "float32"}, "bfloat16"));
    r_.type = numbers == "float32" ? NumberType::kFp32 : NumberType::kBf16;
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string sums,
        keys_.Word("training", "mixed_precision_reduce", {"bfloat16", "float32"}, "float32"));
    sums_ = sums == "float32" ? 4 : 2;
    const nlohmann::json* converters = keys_.Find("model", "converters");
    const std::string all = converters == nullptr ? "" : converters->dump();
    const bool blocks = absl::StrContains(all, "mx");
    if (blocks || absl::StrContains(all, "float8")) r_.type = NumberType::kFp8;
    if (blocks) {
      r_.not_priced.push_back(
          absl::StrCat("model.converters ", all, ": products and casts are those of float8"));
    }
    PIPELAB_ASSIGN_OR_RETURN(const bool offload, keys_.Bool("training", "enable_cpu_offload"));
    if (offload) {
      r_.not_priced.emplace_back("training.enable_cpu_offload: all stays on the device");
    }
    PIPELAB_ASSIGN_OR_RETURN(const bool gathers,
                             keys_.Bool("float8", "enable_fsdp_float8_all_gather"));
    if (gathers) {
      r_.not_priced.emplace_back(
          "enable_fsdp_float8_all_gather: parameters are gathered in 4 bytes a number");
    }
    PIPELAB_ASSIGN_OR_RETURN(const bool async,
                             keys_.Bool("parallelism", "enable_async_tensor_parallel"));
    if (async) {
      r_.not_priced.emplace_back(
          "enable_async_tensor_parallel: tensor-parallel collectives are not hidden");
    }
    return absl::OkStatus();
  }

  absl::Status TakeSharding() {
    PIPELAB_ASSIGN_OR_RETURN(const std::string reshard,
                             keys_.Word("parallelism", "fsdp_reshard_after_forward",
                                        {"default", "always", "never"}, "default"));
    StepConfig& c = r_.config;
    // Weights are sharded over what divides the tokens, too.
    const int64_t shards = shard_ * c.context;
    if (shards == 1) return absl::OkStatus();
    if (replicate_ > 1) c.shards = static_cast<int>(shards);
    const bool kept = reshard == "never" || (reshard == "default" && c.pipeline > 1);
    c.sharding = kept ? Sharding::kGradients : Sharding::kFully;
    if (r_.type != NumberType::kFp32) c.state = {/*weights=*/2, sums_, /*cast=*/true};
    if (!kept && c.pipeline > 1) c.residency = Residency::kMicroBatch;
    return GatherByBlock(&r_);
  }

  absl::Status TakeRecomputation() {
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string mode,
        keys_.Word("activation_checkpoint", "mode", {"none", "selective", "full", "memory_budget"},
                   "selective"));
    StepConfig& c = r_.config;
    if (mode == "full") c.recompute = Recompute::kBlocks;
    if (mode == "full" || mode == "none") return absl::OkStatus();
    const nlohmann::json* option = keys_.Find("activation_checkpoint", "selective_ac_option");
    const std::string wanted = option == nullptr     ? "2"
                               : option->is_string() ? option->get<std::string>()
                                                     : option->dump();
    if (mode == "memory_budget") {
      r_.not_priced.emplace_back(
          "activation_checkpoint.mode = \"memory_budget\": is priced as \"selective\" with "
          "selective_ac_option = \"op\"");
    }
    if (mode == "memory_budget" || wanted == "op") {
      c.recompute = Recompute::kSelective;
      c.modules = "every_second_product";
      return absl::OkStatus();
    }
    if (!absl::SimpleAtoi(wanted, &c.rebuilt_every) || c.rebuilt_every < 1) {
      return Error("activation_checkpoint.selective_ac_option", "\"", wanted,
                   "\": must be \"op\" or a whole number of at least 1, such as \"2\"");
    }
    c.recompute = Recompute::kBlocks;
    return absl::OkStatus();
  }

  TorchtitanKeys keys_;
  const std::string what_;
  const int64_t devices_;
  int64_t replicate_ = 1, shard_ = 1;
  int64_t sums_ = 4;  // bytes of a gradient
  Recipe r_;
};

}  // namespace

absl::StatusOr<Recipe> ReadTorchtitanToml(absl::string_view text, absl::string_view what,
                                          int64_t devices) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseToml(text, what));
  TorchtitanReader reader(root, what, devices);
  return WithUnknown(reader.unknown(), reader.Read());
}

}  // namespace pipelab
