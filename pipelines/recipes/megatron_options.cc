#include "pipelines/recipes/megatron_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pipelines/recipes/megatron_option_names.h"
#include "pipelines/recipes/shell_options.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/embedded_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// What megatron_flags.cc reads.
constexpr absl::string_view kRead[] = {
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
    "add-qkv-bias",
    "attention-backend",
    "attention-dropout",
    "bf16",
    "context-parallel-size",
    "cp-comm-type",
    "data-parallel-sharding-strategy",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "disable-bias-linear",
    "ffn-hidden-size",
    "fp16",
    "fp8-format",
    "fp8-recipe",
    "global-batch-size",
    "group-query-attention",
    "hidden-dropout",
    "hidden-size",
    "kv-channels",
    "make-vocab-size-divisible-by",
    "max-position-embeddings",
    "micro-batch-size",
    "microbatch-group-size-per-virtual-pipeline-stage",
    "nnodes",
    "no-overlap-p2p-communication",
    "normalization",
    "nproc-per-node",
    "num-attention-heads",
    "num-layers",
    "num-layers-per-virtual-pipeline-stage",
    "num-query-groups",
    "num-virtual-stages-per-pipeline-rank",
    "optimizer",
    "overlap-grad-reduce",
    "overlap-param-gather",
    "padded-vocab-size",
    "pipeline-model-parallel-layout",
    "pipeline-model-parallel-size",
    "position-embedding-type",
    "quick-geglu",
    "recompute-activations",
    "recompute-granularity",
    "recompute-method",
    "recompute-modules",
    "recompute-num-layers",
    "rotary-base",
    "seq-length",
    "sequence-parallel",
    "sgd-momentum",
    "squared-relu",
    "swiglu",
    "tensor-model-parallel-size",
    "tokenizer-type",
    "untie-embeddings-and-output-weights",
    "use-distributed-optimizer",
    "use-flash-attn",
    "use-megatron-fsdp",
    "use-rotary-position-embeddings",
    "use-torch-fsdp2",
    "use-tp-pp-dp-mapping",
    "vocab-size",
};

// Priced without them.
struct Without {
  absl::string_view name, how;
};
constexpr Without kWithout[] = {
    {"apply-residual-connection-post-layernorm", "residuals are added as in GPT-2"},
    {"cross-entropy-fusion-impl", "the loss is Megatron-LM's own, in 4 bytes a number"},
    {"cross-entropy-loss-fusion", "the loss is Megatron-LM's own, in 4 bytes a number"},
    {"cuda-graph-impl", "kernels are launched one by one, or give --launches=graphs"},
    {"cuda-graph-scope", "kernels are launched one by one, or give --launches=graphs"},
    {"enable-cuda-graph", "kernels are launched one by one, or give --launches=graphs"},
    {"external-cuda-graph", "kernels are launched one by one, or give --launches=graphs"},
    {"ddp-reduce-scatter-with-fp32-accumulation", "gradients are summed in 4 bytes a number"},
    {"defer-embedding-wgrad-compute", "no weight gradient is deferred"},
    {"delay-wgrad-compute", "no weight gradient is delayed"},
    {"first-last-layers-bf16", "all layers compute with the same numbers"},
    {"num-layers-at-end-in-bf16", "all layers compute with the same numbers"},
    {"num-layers-at-start-in-bf16", "all layers compute with the same numbers"},
    {"fp8-param-gather", "parameters are kept and gathered in 4 bytes a number"},
    {"fsdp-double-buffer", "gathered weights have one buffer"},
    {"grad-reduce-in-bf16", "gradients are summed in 4 bytes a number"},
    {"no-rope-freq", "every layer has rotary positions"},
    {"no-scatter-gather-tensors-in-pipeline", "messages are whole, as in Megatron Core"},
    {"overlap-param-gather-with-optimizer-step", "gathers follow the optimizer's step"},
    {"rampup-batch-size", "the step is one of the full batch"},
    {"tp-comm-overlap", "tensor-parallel collectives are not hidden"},
    {"use-checkpoint-args", "the checkpoint's arguments are not read"},
    {"use-mp-args-from-checkpoint-args", "the checkpoint's arguments are not read"},
    {"use-legacy-models", "the step is one of Megatron Core"},
};

// What no step here has, unless its value is the harmless one, with what would do.
struct Refused {
  absl::string_view name, harmless, why;
};
constexpr absl::string_view kExperts =
    "experts have no counterpart here; nearest: a dense model, without it";
constexpr absl::string_view kNoOffload =
    "nothing is kept on the host here; nearest: without it, or --recompute-granularity full";
constexpr absl::string_view kHybrid =
    "models of unlike layers have no counterpart here; nearest: without it, all layers alike";
constexpr Refused kRefused[] = {
    {"batch-size", "", "is no longer valid in Megatron-LM; nearest: --micro-batch-size"},
    {"checkpoint-activations", "",
     "is no longer valid in Megatron-LM; nearest: --recompute-granularity full"},
    {"model-parallel-size", "",
     "is no longer valid in Megatron-LM; nearest: --tensor-model-parallel-size"},
    {"warmup", "", "is no longer valid in Megatron-LM; nearest: --lr-warmup-fraction"},
    {"hierarchical-context-parallel-sizes", "1",
     "context parallelism in two levels has no counterpart here; nearest: without it"},
    {"expert-model-parallel-size", "1",
     "expert parallelism has no counterpart here; nearest: 1, and a dense model"},
    {"num-experts", "0", kExperts},
    {"moe-shared-expert-intermediate-size", "0", kExperts},
    {"overlap-moe-expert-parallel-comm", "", kExperts},
    {"multi-latent-attention", "",
     "latent attention has no counterpart here; nearest: --group-query-attention"},
    {"mtp-num-layers", "0",
     "heads for further tokens have no counterpart here; nearest: without it"},
    {"window-size", "",
     "windows have no counterpart here; nearest: without it, full attention of --seq-length"},
    {"window-attn-skip-freq", "", "windows have no counterpart here; nearest: without it"},
    {"qk-layernorm", "", "norms of queries and keys have no counterpart here; nearest: without it"},
    {"qk-l2-norm", "", "norms of queries and keys have no counterpart here; nearest: without it"},
    {"softmax-type", "vanilla", "has no counterpart here; nearest: vanilla"},
    {"mrope-section", "", "has no counterpart here; nearest: --position-embedding-type rope"},
    {"no-position-embedding", "",
     "is deprecated in Megatron-LM; nearest: --position-embedding-type none"},
    {"encoder-num-layers", "", "encoders have no counterpart here; nearest: --num-layers"},
    {"decoder-num-layers", "", "encoders have no counterpart here; nearest: --num-layers"},
    {"encoder-seq-length", "", "encoders have no counterpart here; nearest: --seq-length"},
    {"decoder-seq-length", "", "encoders have no counterpart here; nearest: --seq-length"},
    {"heterogeneous-layers-config-path", "", kHybrid},
    {"heterogeneous-layers-config-encoded-json", "", kHybrid},
    {"hybrid-attention-ratio", "0.0", kHybrid},
    {"hybrid-mlp-ratio", "0.0", kHybrid},
    {"hybrid-override-pattern", "", kHybrid},
    {"is-hybrid-model", "", kHybrid},
    {"spec", "local", "layers of your own have no counterpart here; nearest: without it"},
    {"retro-add-retriever", "", "retrieval has no counterpart here; nearest: without it"},
    {"vision-pretraining", "", "reads command lines of GPTs; nearest: --model=vit-s-4"},
    {"perform-rl-step", "", "reads command lines of pre-training; nearest: without it"},
    {"fp4-format", "", "4-bit numbers have no counterpart here; nearest: --fp8-format hybrid"},
    {"fp32-residual-connection", "",
     "residuals have the other activations' type here; nearest: without it"},
    {"cpu-offloading-num-layers", "0", kNoOffload},
    {"optimizer-cpu-offload", "", kNoOffload},
    {"distribute-saved-activations", "",
     "what is kept for recomputation is whole here; nearest: --sequence-parallel"},
    {"num-distributed-optimizer-instances", "1",
     "the optimizer's state is divided over all copies here; nearest: 1"},
    {"enable-full-sharding-in-hsdp", "",
     "shards over a part of the copies have no counterpart here; nearest: without it"},
    {"use-precision-aware-optimizer", "",
     "the optimizer's values have 4 bytes here; nearest: without it"},
    {"main-grads-dtype", "fp32", "gradients have 4 bytes here; nearest: fp32"},
    {"main-params-dtype", "fp32", "the optimizer's values have 4 bytes here; nearest: fp32"},
    {"exp-avg-dtype", "fp32", "the optimizer's values have 4 bytes here; nearest: fp32"},
    {"exp-avg-sq-dtype", "fp32", "the optimizer's values have 4 bytes here; nearest: fp32"},
    {"yaml-cfg", "", "a YAML file is not read; nearest: its values as options"},
};

std::vector<absl::string_view> PassedOver() {
  std::vector<absl::string_view> names;
  for (const EmbeddedText& text : MegatronOptionNames()) {
    for (const absl::string_view name :
         absl::StrSplit(text.text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      names.push_back(name);
    }
  }
  return names;
}

bool IsPassedOver(absl::string_view name) {
  static const auto* names = new std::vector<absl::string_view>(PassedOver());
  return std::find(names->begin(), names->end(), name) != names->end() ||
         absl::StartsWith(name, "retro-") || absl::StartsWith(name, "inprocess-") ||
         absl::StartsWith(name, "inference-");
}

template <typename Table>
const auto* FindIn(const Table& table, absl::string_view name) {
  const auto* found = std::find_if(std::begin(table), std::end(table),
                                   [&](const auto& entry) { return entry.name == name; });
  return found == std::end(table) ? nullptr : found;
}

bool IsRead(absl::string_view name) {
  return std::find(std::begin(kRead), std::end(kRead), name) != std::end(kRead);
}

}  // namespace

absl::StatusOr<MegatronOptions> MegatronOptions::Parse(absl::string_view text,
                                                       absl::string_view what) {
  MegatronOptions options;
  options.what_ = std::string(what);
  PIPELAB_ASSIGN_OR_RETURN(std::vector<ShellOption> all, ParseShellOptions(text, what));
  if (all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": no options; must be Megatron-LM's, such as --num-layers 32"));
  }
  for (ShellOption& o : all) {
    std::string name = o.name.substr(2);
    // torchrun takes both.
    const std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
    if (dashed == "nproc-per-node" || (IsPassedOver(dashed) && !IsPassedOver(name))) name = dashed;
    PIPELAB_RETURN_IF_ERROR(options.CheckName(name));
    // Behind torchrun's own options comes the program.
    const bool of_torchrun = name == "nnodes" || name == "nproc-per-node";
    if (of_torchrun && o.values.size() > 1) o.values.resize(1);
    options.given_[name] = std::move(o.values);
  }
  PIPELAB_RETURN_IF_ERROR(options.Sort());
  return options;
}

absl::Status MegatronOptions::CheckName(const std::string& name) const {
  if (IsRead(name) || IsPassedOver(name) || FindIn(kWithout, name) != nullptr ||
      FindIn(kRefused, name) != nullptr) {
    return absl::OkStatus();
  }
  std::vector<absl::string_view> known(std::begin(kRead), std::end(kRead));
  for (const Without& w : kWithout) known.push_back(w.name);
  for (const Refused& r : kRefused) known.push_back(r.name);
  for (const absl::string_view passed : PassedOver()) known.push_back(passed);
  return absl::InvalidArgumentError(absl::StrCat(what_, ": --", name, ": no option of Megatron-LM",
                                                 DidYouMean(name, known, "--")));
}

absl::Status MegatronOptions::Sort() {
  for (const auto& [name, values] : given_) {
    if (IsPassedOver(name)) ++passed_over_;
    if (const Without* w = FindIn(kWithout, name); w != nullptr) {
      without_.push_back(absl::StrCat("--", name, ": ", w->how));
    }
    const Refused* r = FindIn(kRefused, name);
    const std::string value = absl::StrJoin(values, " ");
    if (r == nullptr || (!r->harmless.empty() && value == r->harmless)) continue;
    return Error(name, r->why);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MegatronOptions::Text(absl::string_view name) const {
  const auto found = given_.find(name);
  if (found == given_.end()) return Error(name, "missing");
  const std::vector<std::string>& values = found->second;
  if (values.size() == 1 && !absl::StartsWith(values[0], "$")) return values[0];
  if (values.empty()) return Error(name, "its value is missing");
  if (values.size() > 1) return Error(name, "takes one value");
  return Error(name, "a variable that the text does not set; put its value");
}

absl::StatusOr<int64_t> MegatronOptions::Integer(absl::string_view name, int64_t least,
                                                 int64_t most,
                                                 absl::optional<int64_t> if_absent) const {
  if (!Has(name) && if_absent.has_value()) return *if_absent;
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, Text(name));
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= least && value <= most) return value;
  return Error(name, "must be a whole number from ", least, " to ", most);
}

absl::StatusOr<double> MegatronOptions::Number(absl::string_view name, double least, double most,
                                               double if_absent) const {
  if (!Has(name)) return if_absent;
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, Text(name));
  double value = 0;
  if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return value;
  return Error(name, "must be a number from ", least, " to ", most);
}

absl::StatusOr<std::string> MegatronOptions::Word(absl::string_view name,
                                                  const std::vector<absl::string_view>& known,
                                                  absl::string_view if_absent) const {
  if (!Has(name)) return std::string(if_absent);
  PIPELAB_ASSIGN_OR_RETURN(std::string text, Text(name));
  if (std::find(known.begin(), known.end(), text) != known.end()) return text;
  return Error(name, "must be ", absl::StrJoin(known, ", "), DidYouMean(text, known));
}

}  // namespace pipelab
