#include "pipelines/recipes/megatron_flags.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/specs/recomputed_modules.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/megatron_options.h"
#include "pipelines/recipes/megatron_parts.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kOfTorchtitan = "every_second_product";
constexpr int64_t kMostDegree = kMostMegatronDegree, kMostBatch = kMostMegatronBatch;

class MegatronReader {
 public:
  MegatronReader(const MegatronOptions& options, int64_t devices)
      : o_(options), devices_(devices) {}

  absl::StatusOr<Recipe> Read() {
    PIPELAB_RETURN_IF_ERROR(TakeKernels());
    PIPELAB_RETURN_IF_ERROR(TakeMegatronModel(o_, &r_));
    PIPELAB_RETURN_IF_ERROR(TakeDegrees());
    PIPELAB_RETURN_IF_ERROR(TakeMegatronExpertDegrees(o_, &r_));
    PIPELAB_RETURN_IF_ERROR(TakeMegatronVocabulary(o_, &r_));
    PIPELAB_RETURN_IF_ERROR(TakeMegatronStages(o_, &r_));
    PIPELAB_RETURN_IF_ERROR(TakeBatch());
    PIPELAB_RETURN_IF_ERROR(TakeTypes());
    PIPELAB_RETURN_IF_ERROR(TakeMegatronLaunches(o_, &r_));
    PIPELAB_RETURN_IF_ERROR(TakeRecomputation());
    PIPELAB_RETURN_IF_ERROR(TakeMegatronExchanges(o_, &r_));
    PIPELAB_RETURN_IF_ERROR(TakeSharding());
    r_.not_priced.insert(r_.not_priced.end(), o_.not_priced().begin(), o_.not_priced().end());
    r_.unknown = o_.unknown();
    r_.passed_over = o_.NotAsked();
    r_.passed_over.insert(r_.passed_over.end(), o_.passed_over().begin(), o_.passed_over().end());
    std::sort(r_.passed_over.begin(), r_.passed_over.end());
    return std::move(r_);
  }

 private:
  void NotPriced(std::string what) { r_.not_priced.push_back(std::move(what)); }

  absl::Status TakeKernels() {
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string attention,
        o_.Word("attention-backend", {"auto", "fused", "flash", "unfused", "local"}, "auto"));
    const bool unfused = attention == "unfused" || attention == "local";
    if (unfused && !o_.Has("use-flash-attn")) r_.attention = AttentionImplementation::kUnfused;
    PIPELAB_ASSIGN_OR_RETURN(const std::string loss,
                             o_.Word("cross-entropy-fusion-impl", {"native", "te"}, "native"));
    if (!o_.Has("cross-entropy-loss-fusion")) {
      r_.loss = LossImplementation::kUnfused;
    } else if (loss == "te") {
      r_.loss = LossImplementation::kTransformerEngine;
    }
    return absl::OkStatus();
  }

  absl::Status TakeDegrees() {
    StepConfig& c = r_.config;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t tensor,
                             o_.Integer("tensor-model-parallel-size", 1, kMostDegree, 1));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t pipeline,
                             o_.Integer("pipeline-model-parallel-size", 1, kMostDegree, 1));
    c.tensor = static_cast<int>(tensor);
    c.pipeline = static_cast<int>(pipeline);
    const GptConfig& m = r_.model;
    for (const auto& [name, size] : {std::make_pair("num-attention-heads", m.heads),
                                     std::make_pair("num-query-groups", m.kv_heads),
                                     std::make_pair("ffn-hidden-size", m.feed_forward)}) {
      if (size % tensor == 0) continue;
      return o_.Error("tensor-model-parallel-size", "must divide --", name, " ", size,
                      "; nearest: --tensor-model-parallel-size ", NearestDivisor(tensor, size));
    }
    c.sequence_parallel = o_.Has("sequence-parallel") && tensor > 1;
    if (c.sequence_parallel && m.tokens % tensor != 0) {
      return o_.Error("sequence-parallel", "--tensor-model-parallel-size ", tensor,
                      " must divide --seq-length ", m.tokens, "; nearest: --seq-length ",
                      NearestMultiple(m.tokens, tensor));
    }
    c.overlap_tensor = o_.Has("tp-comm-overlap") && tensor > 1;
    if (c.overlap_tensor && !c.sequence_parallel) {
      return o_.Error("tp-comm-overlap", "requires --sequence-parallel");
    }
    c.whole_messages = pipeline > 1 && c.has_equal_messages();
    if (o_.Has("use-tp-pp-dp-mapping")) c.ranks = RankOrder::kTensorPipelineData;
    PIPELAB_RETURN_IF_ERROR(TakeContext());
    return TakeDevices(tensor * pipeline * c.context);
  }

  absl::Status TakeContext() {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t context,
                             o_.Integer("context-parallel-size", 1, kMostDegree, 1));
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string comm,
        o_.Word("cp-comm-type", {"p2p", "all_gather", "a2a", "a2a+p2p"}, "p2p"));
    const int64_t parts = 2 * context * (r_.config.sequence_parallel ? r_.config.tensor : 1);
    if (context > 1 && r_.model.tokens % parts != 0) {
      return o_.Error("context-parallel-size", "--seq-length ", r_.model.tokens, " must be in ",
                      parts, " equal parts; nearest: --seq-length ",
                      NearestMultiple(r_.model.tokens, parts));
    }
    if (context > 1 && comm == "p2p") r_.config.context_exchange = ContextExchange::kRing;
    if (context > 1 && comm == "a2a") {
      if (r_.model.latent.rank > 0) {  // Transformer Engine 2.11 refuses it (SimuMax, docs/b200)
        return o_.Error("cp-comm-type",
                        "heads of latent attention (--multi-latent-attention) are not exchanged; "
                        "nearest: p2p");
      }
      r_.config.context_exchange = ContextExchange::kHeads;
    }
    if (context > 1 && comm == "a2a+p2p") {
      NotPriced(
          "--cp-comm-type a2a+p2p: keys and values are gathered in front of attention "
          "(all_gather)");
    }
    r_.config.context = static_cast<int>(context);
    return absl::OkStatus();
  }

  absl::Status TakeDevices(int64_t model_devices) {
    int64_t devices = devices_;
    if (devices == 0) {
      if (!o_.Has("nproc-per-node")) {
        return absl::InvalidArgumentError(
            "--devices: missing; the GPUs of the run, which neither the options nor a torchrun "
            "among them say");
      }
      PIPELAB_ASSIGN_OR_RETURN(const int64_t each, o_.Integer("nproc-per-node", 1, kMostDegree));
      PIPELAB_ASSIGN_OR_RETURN(const int64_t nodes, o_.Integer("nnodes", 1, kMostDegree, 1));
      devices = each * nodes;
    }
    if (devices % model_devices != 0 || devices / model_devices > kMostDegree) {
      return o_.Error("pipeline-model-parallel-size", r_.config.tensor, " x ", r_.config.pipeline,
                      r_.config.context > 1 ? absl::StrCat(" x ", r_.config.context) : "",
                      " devices of a copy must divide all ", devices,
                      "; nearest: --devices=", NearestMultiple(devices, model_devices));
    }
    r_.config.data = static_cast<int>(devices / model_devices);
    return absl::OkStatus();
  }

  absl::Status TakeBatch() {
    StepConfig& c = r_.config;
    PIPELAB_ASSIGN_OR_RETURN(c.micro_batch_size, o_.Integer("micro-batch-size", 1, kMostBatch));
    const int64_t unit = c.micro_batch_size * c.data;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t batch,
                             o_.Integer("global-batch-size", 1, kMostBatch, unit));
    if (batch % unit != 0) {
      return o_.Error("global-batch-size", "must be a multiple of --micro-batch-size ",
                      c.micro_batch_size, " times ", c.data,
                      " data-parallel copies; nearest: --global-batch-size ",
                      NearestMultiple(batch, unit));
    }
    const int64_t count = batch / unit, group = c.group_size > 0 ? c.group_size : c.pipeline;
    c.micro_batches = static_cast<int>(count);
    if (c.scheme != "interleaved") return absl::OkStatus();
    const int64_t left = count % group;
    if (count >= group && (left == 0 || left >= c.pipeline)) return absl::OkStatus();
    return o_.Error("global-batch-size", count,
                    " micro-batches; interleaved stages take them in groups of ", group,
                    "; nearest: --global-batch-size ", NearestMultiple(count, group) * unit);
  }

  absl::Status TakeTypes() {
    const bool fp16 = o_.Has("fp16"), bf16 = o_.Has("bf16");
    if (fp16 && bf16) return o_.Error("fp16", "not with --bf16; give one of them");
    r_.type = fp16 ? NumberType::kFp16 : bf16 ? NumberType::kBf16 : NumberType::kFp32;
    if (o_.Has("fp8-format")) {
      PIPELAB_RETURN_IF_ERROR(o_.Word("fp8-format", {"e4m3", "hybrid"}, "").status());
      PIPELAB_ASSIGN_OR_RETURN(
          const std::string recipe,
          o_.Word("fp8-recipe", {"tensorwise", "delayed", "blockwise", "mxfp8"}, "delayed"));
      if (recipe == "mxfp8") {
        NotPriced("--fp8-recipe mxfp8: products and casts are those of tensorwise");
      }
      r_.type = NumberType::kFp8;
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::string optimizer,
                             o_.Word("optimizer", {"adam", "sgd"}, "adam"));
    PIPELAB_ASSIGN_OR_RETURN(const double momentum, o_.Number("sgd-momentum", 0, 1, 0.9));
    if (optimizer == "sgd") r_.optimizer_tensors = momentum > 0 ? 1 : 0;
    return TakeState();
  }

  // By default bf16 gradients are summed in 4 bytes, and fp16 gradients in 2.
  absl::Status TakeState() {
    const bool wide = o_.Has("accumulate-allreduce-grads-in-fp32"),
               narrow = o_.Has("grad-reduce-in-bf16");
    if (narrow && (wide || !o_.Has("bf16"))) {
      return o_.Error("grad-reduce-in-bf16",
                      wide ? "not with --accumulate-allreduce-grads-in-fp32; give one of them"
                           : "requires --bf16");
    }
    if (r_.type == NumberType::kFp32) return absl::OkStatus();
    r_.config.state.weights = 2;
    r_.config.state.gradients = narrow || (o_.Has("fp16") && !wide) ? 2 : 4;
    return absl::OkStatus();
  }

  absl::Status TakeRecomputation() {
    PIPELAB_ASSIGN_OR_RETURN(const std::string kind,
                             o_.Word("recompute-granularity", {"full", "selective"}, ""));
    const bool experts = o_.Has("moe-layer-recompute");  // the old name of the module moe
    if (kind == "full" && experts) {
      return o_.Error("moe-layer-recompute", "not with --recompute-granularity full");
    }
    if (kind == "selective" || o_.Has("recompute-activations") || experts) {
      return TakeModules(experts);
    }
    return kind == "full" ? TakeFullRecomputation() : absl::OkStatus();
  }

  absl::Status TakeModules(bool experts) {
    constexpr char kModules[] = "recompute-modules";
    if (o_.Has("recompute-method")) {
      return o_.Error("recompute-method", "not with selective recomputation; nearest: without it");
    }
    std::vector<std::string> wanted = {"core_attn"};
    if (o_.Has(kModules)) wanted = o_.Values(kModules);
    if (experts) wanted.emplace_back("moe");
    std::vector<std::string> modules;
    for (absl::string_view name : RecomputedModuleNames()) {
      if (name == kOfTorchtitan || std::count(wanted.begin(), wanted.end(), name) == 0) continue;
      modules.emplace_back(name);
      wanted.erase(std::remove(wanted.begin(), wanted.end(), name), wanted.end());
    }
    for (const std::string& name : wanted) {
      NotPriced(absl::StrCat("--", kModules, " ", name, ": is kept, and not rebuilt"));
    }
    if (modules.empty()) return absl::OkStatus();
    StepConfig& c = r_.config;
    c.recompute = Recompute::kSelective;
    c.modules = absl::StrJoin(modules, "+");
    if (r_.attention == AttentionImplementation::kUnfused && c.modules == "core_attn") {
      c.modules.clear();
    }
    return absl::OkStatus();
  }

  absl::Status TakeFullRecomputation() {
    if (!o_.Has("recompute-method")) {
      return o_.Error("recompute-granularity",
                      "requires --recompute-method; nearest: "
                      "--recompute-method uniform --recompute-num-layers 1");
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::string method,
                             o_.Word("recompute-method", {"uniform", "block"}, ""));
    if (!o_.Has("recompute-num-layers")) {
      return o_.Error("recompute-method", "requires --recompute-num-layers; nearest: 1");
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t layers,
                             o_.Integer("recompute-num-layers", 1, kMostLayers));
    int64_t most = 1;
    for (const MegatronStage& s : r_.stages) most = std::max(most, s.transformers);
    StepConfig& c = r_.config;
    if (method == "uniform") c.rebuilt_together = static_cast<int>(std::min(layers, most));
    if (method == "block" && layers < most) c.rebuilt_blocks = static_cast<int>(layers);
    c.recompute = Recompute::kBlocks;
    return absl::OkStatus();
  }

  absl::Status TakeSharding() {
    StepConfig& c = r_.config;
    const bool optimizer = o_.Has("use-distributed-optimizer");
    const bool fsdp = o_.Has("use-megatron-fsdp"), torch = o_.Has("use-torch-fsdp2");
    if (torch && (optimizer || c.pipeline > 1)) {
      return o_.Error("use-torch-fsdp2",
                      optimizer ? "not with --use-distributed-optimizer; give one of them"
                                : "not with a pipeline; nearest: --pipeline-model-parallel-size 1");
    }
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string strategy,
        o_.Word("data-parallel-sharding-strategy",
                {"no_shard", "optim", "optim_grads", "optim_grads_params"}, "no_shard"));
    const bool kept = o_.Has("torch-fsdp2-no-reshard-after-forward");
    c.sharding = (torch && !kept) || (fsdp && strategy == "optim_grads_params") ? Sharding::kFully
                 : torch || (fsdp && strategy == "optim_grads") ? Sharding::kGradients
                 : optimizer || (fsdp && strategy == "optim")   ? Sharding::kOptimizer
                                                                : Sharding::kReplicated;
    if (c.copies() == 1) c.sharding = Sharding::kReplicated;
    const bool gathers = o_.Has("overlap-param-gather"), reduces = o_.Has("overlap-grad-reduce");
    if (gathers && !optimizer && !fsdp) {
      return o_.Error("overlap-param-gather", "requires --use-distributed-optimizer");
    }
    if (gathers && !reduces) {
      return o_.Error("overlap-param-gather", "requires --overlap-grad-reduce");
    }
    c.overlap_data = reduces || torch;
    PIPELAB_RETURN_IF_ERROR(TakeInstances());
    if (gathers && c.sharding == Sharding::kOptimizer) {
      NotPriced("--overlap-param-gather: gathers of new weights end the step, and are not hidden");
    }
    if (c.pipeline == 1 && c.sharding == Sharding::kFully && !(c.rebuilt() == RebuiltPart())) {
      c.rebuilt_blocks = 0;
      c.rebuilt_together = 1;
      NotPriced("--recompute-num-layers: beside FSDP each layer keeps its input and is rebuilt");
    }
    return GatherByBlock(&r_);
  }

  // Sets of copies, each of which divides what is sharded among its own.
  absl::Status TakeInstances() {
    constexpr char kInstances[] = "num-distributed-optimizer-instances";
    StepConfig& c = r_.config;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t sets, o_.Integer(kInstances, 1, kMostDegree, 1));
    if (sets == 1) return absl::OkStatus();
    // Copies with the same experts are the fewest.
    const int64_t copies = c.copies() / std::max<int64_t>(1, c.split().expert_copies());
    if (copies % sets != 0) {
      return o_.Error(kInstances, "must divide the ", copies, " ranks with the same weights",
                      c.experts > 1 ? " of experts" : "", "; nearest: --", kInstances, " ",
                      NearestDivisor(sets, copies));
    }
    if (c.sharding == Sharding::kReplicated) {
      return o_.Error(kInstances, "requires --use-distributed-optimizer");
    }
    c.shards = static_cast<int>(c.copies() / sets);
    if (c.shards > 1) return absl::OkStatus();
    c.shards = 0;  // each has all
    c.sharding = Sharding::kReplicated;
    return absl::OkStatus();
  }

  const MegatronOptions& o_;
  const int64_t devices_;
  Recipe r_;
};

}  // namespace

absl::StatusOr<Recipe> ReadMegatronFlags(absl::string_view text, absl::string_view what,
                                         int64_t devices, const ScriptChoice& choice) {
  PIPELAB_ASSIGN_OR_RETURN(
      const MegatronOptions options,
      MegatronOptions::Parse(text, what, choice, /*of_launcher=*/devices == 0));
  return WithUnknown(options.unknown(), MegatronReader(options, devices).Read());
}

}  // namespace pipelab
