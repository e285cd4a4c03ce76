#include "pipelines/recipes/megatron_flags.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/megatron_options.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostDegree = 1 << 20;
constexpr int64_t kMostBatch = 1 << 24;

// Words of the tokenizers that need no file to know them.
int64_t WordsOfTokenizer(absl::string_view type) {
  if (type == "GPT2BPETokenizer") return 50257;
  return type == "Llama2Tokenizer" ? 32000 : 0;
}

class MegatronReader {
 public:
  MegatronReader(const MegatronOptions& options, int64_t devices)
      : o_(options), devices_(devices) {}

  absl::StatusOr<Recipe> Read() {
    PIPELAB_RETURN_IF_ERROR(TakeModel());
    PIPELAB_RETURN_IF_ERROR(TakeDegrees());
    PIPELAB_RETURN_IF_ERROR(TakeVocabulary());
    PIPELAB_RETURN_IF_ERROR(TakeStages());
    PIPELAB_RETURN_IF_ERROR(TakeBatch());
    PIPELAB_RETURN_IF_ERROR(TakeTypes());
    PIPELAB_RETURN_IF_ERROR(TakeRecomputation());
    PIPELAB_RETURN_IF_ERROR(TakeSharding());
    r_.assumptions.insert(r_.assumptions.end(), o_.without().begin(), o_.without().end());
    r_.passed_over = o_.passed_over();
    return std::move(r_);
  }

 private:
  void Assume(std::string what) { r_.assumptions.push_back(std::move(what)); }

  absl::Status TakeModel() {
    GptConfig& m = r_.model;
    PIPELAB_ASSIGN_OR_RETURN(m.layers, o_.Integer("num-layers", 1, kMostLayers));
    PIPELAB_ASSIGN_OR_RETURN(m.hidden, o_.Integer("hidden-size", 1, kMostHidden));
    PIPELAB_RETURN_IF_ERROR(TakeHeads());
    const bool swiglu = o_.Has("swiglu"), geglu = o_.Has("quick-geglu");
    if (swiglu && (geglu || o_.Has("squared-relu"))) {
      return o_.Error("swiglu", "not with --", geglu ? "quick-geglu" : "squared-relu",
                      "; give one of them");
    }
    if (swiglu) m.feed_forward_kind = FeedForwardKind::kSwiGlu;
    if (geglu) m.feed_forward_kind = FeedForwardKind::kGeGlu;
    if (o_.Has("squared-relu")) Assume("--squared-relu: costs what a GELU does");
    // Megatron-LM's own default, in its rounding.
    const int64_t narrow =
        static_cast<int64_t>(4.0 * static_cast<double>(m.hidden) * 2 / 3 / 64) * 64;
    PIPELAB_ASSIGN_OR_RETURN(m.feed_forward,
                             o_.Integer("ffn-hidden-size", 1, 64 * kMostHidden,
                                        swiglu ? std::max<int64_t>(narrow, 1) : 4 * m.hidden));
    PIPELAB_ASSIGN_OR_RETURN(const std::string norm,
                             o_.Word("normalization", {"LayerNorm", "RMSNorm"}, "LayerNorm"));
    m.norm = norm == "RMSNorm" ? NormKind::kRms : NormKind::kLayer;
    TakeBiases();
    m.tied_embeddings = !o_.Has("untie-embeddings-and-output-weights");
    PIPELAB_RETURN_IF_ERROR(TakeDropout());
    return TakePositions();
  }

  absl::Status TakeHeads() {
    GptConfig& m = r_.model;
    PIPELAB_ASSIGN_OR_RETURN(m.heads, o_.Integer("num-attention-heads", 1, kMostHidden));
    if (!o_.Has("kv-channels") && m.hidden % m.heads != 0) {
      return o_.Error("num-attention-heads", "must divide --hidden-size ", m.hidden,
                      "; nearest: --num-attention-heads ", NearestDivisor(m.heads, m.hidden));
    }
    PIPELAB_ASSIGN_OR_RETURN(m.head_size, o_.Integer("kv-channels", 1, kMostHidden,
                                                     std::max<int64_t>(m.hidden / m.heads, 1)));
    m.kv_heads = m.heads;
    if (o_.Has("group-query-attention")) {
      PIPELAB_ASSIGN_OR_RETURN(m.kv_heads, o_.Integer("num-query-groups", 1, kMostHidden, 1));
    } else if (o_.Has("num-query-groups")) {
      Assume("--num-query-groups: without --group-query-attention all heads have their own keys");
    }
    if (m.heads % m.kv_heads == 0) return absl::OkStatus();
    return o_.Error("num-query-groups", "must divide --num-attention-heads ", m.heads,
                    "; nearest: --num-query-groups ", NearestDivisor(m.kv_heads, m.heads));
  }

  void TakeBiases() {
    GptConfig& m = r_.model;
    if (!o_.Has("disable-bias-linear")) return;
    if (m.feed_forward_kind == FeedForwardKind::kGelu) {
      Assume("--disable-bias-linear: products have biases, as those around a GELU have here");
      return;
    }
    m.biases = o_.Has("add-qkv-bias") ? Biases::kQueryKeyValue : Biases::kNone;
  }

  absl::Status TakeDropout() {
    PIPELAB_ASSIGN_OR_RETURN(r_.model.dropout, o_.Number("hidden-dropout", 0, 0.999, 0.1));
    PIPELAB_ASSIGN_OR_RETURN(const double attention, o_.Number("attention-dropout", 0, 0.999, 0.1));
    if ((attention > 0) == (r_.model.dropout > 0)) return absl::OkStatus();
    Assume(absl::StrCat("--attention-dropout ", attention, ": is as --hidden-dropout, ",
                        r_.model.dropout));
    return absl::OkStatus();
  }

  absl::Status TakePositions() {
    GptConfig& m = r_.model;
    PIPELAB_ASSIGN_OR_RETURN(m.tokens, o_.Integer("seq-length", 1, kMostTokens));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t most,
                             o_.Integer("max-position-embeddings", 1, int64_t{1} << 30));
    if (most < m.tokens) {
      return o_.Error("max-position-embeddings",
                      "must be at least --seq-length; nearest: ", "--max-position-embeddings ",
                      m.tokens);
    }
    PIPELAB_ASSIGN_OR_RETURN(
        std::string type, o_.Word("position-embedding-type", {"learned_absolute", "rope", "none"},
                                  "learned_absolute"));
    if (o_.Has("use-rotary-position-embeddings")) type = "rope";
    m.positions = type == "learned_absolute" ? Positions::kLearned : Positions::kNone;
    if (type != "rope") {
      if (type == "learned_absolute" && most > m.tokens) {
        Assume(absl::StrCat("--max-position-embeddings: the table has ", m.tokens, " positions"));
      }
      return absl::OkStatus();
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t base,
                             o_.Integer("rotary-base", 1, int64_t{1000000000000}, 10000));
    m.rotary_base = static_cast<double>(base);
    if (m.head_size % 2 == 0) return absl::OkStatus();
    return o_.Error("position-embedding-type", "heads of ", m.head_size,
                    " numbers; rotary positions take an even number; nearest: --kv-channels ",
                    m.head_size + 1);
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
    c.whole_messages = tensor > 1 && !c.sequence_parallel;
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
    if (context > 1 && comm != "p2p" && comm != "all_gather") {
      Assume(absl::StrCat("--cp-comm-type ", comm,
                          ": keys and values are gathered in front of attention (all_gather)"));
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

  absl::Status TakeVocabulary() {
    const int64_t tensor = r_.config.tensor;
    if (o_.Has("padded-vocab-size")) {
      PIPELAB_ASSIGN_OR_RETURN(r_.model.vocabulary,
                               o_.Integer("padded-vocab-size", 1, kMostVocabulary));
      if (r_.model.vocabulary % tensor == 0) return absl::OkStatus();
      return o_.Error("padded-vocab-size", "--tensor-model-parallel-size ", tensor,
                      " must divide it; nearest: --padded-vocab-size ",
                      NearestMultiple(r_.model.vocabulary, tensor));
    }
    const std::string tokenizer =
        o_.Has("tokenizer-type") ? o_.Text("tokenizer-type").value_or("") : "";
    int64_t words = WordsOfTokenizer(tokenizer);
    if (o_.Has("vocab-size") || words == 0) {
      if (!o_.Has("vocab-size")) {
        return o_.Error("vocab-size", "missing; ",
                        tokenizer.empty() ? "no tokenizer is named that says it"
                                          : "the tokenizer's file is not read",
                        "; such as --vocab-size 128256");
      }
      PIPELAB_ASSIGN_OR_RETURN(words, o_.Integer("vocab-size", 1, kMostVocabulary));
      if (tokenizer == "NullTokenizer") ++words;  // the end of a document
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t multiple,
                             o_.Integer("make-vocab-size-divisible-by", 1, kMostVocabulary, 128));
    const int64_t unit = multiple * tensor;
    r_.model.vocabulary = (words + unit - 1) / unit * unit;
    return absl::OkStatus();
  }

  // Of one device, in order; 1 without interleaving.
  absl::StatusOr<int64_t> VirtualStages(int64_t counted_layers) {
    const char* each = "num-layers-per-virtual-pipeline-stage";
    const char* number = "num-virtual-stages-per-pipeline-rank";
    const char* layout = "pipeline-model-parallel-layout";
    for (const auto& [a, b] : {std::make_pair(each, number), std::make_pair(each, layout),
                               std::make_pair(number, layout)}) {
      if (o_.Has(a) && o_.Has(b)) return o_.Error(a, "not with --", b, "; give one of them");
    }
    if (!o_.Has(each)) return o_.Integer(number, 1, kMostLayers, 1);
    PIPELAB_ASSIGN_OR_RETURN(const int64_t layers, o_.Integer(each, 1, kMostLayers));
    for (const char* uneven :
         {"decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"}) {
      if (o_.Has(uneven)) return o_.Error(each, "not with --", uneven, "; nearest: --", number);
    }
    const int64_t on_device = counted_layers / r_.config.pipeline;
    if (on_device % layers == 0 && on_device > 0) return on_device / layers;
    return o_.Error(each, "must divide the ", on_device,
                    " layers of a pipeline device; nearest: --", each, " ",
                    NearestDivisor(layers, std::max<int64_t>(on_device, 1)));
  }

  absl::Status TakeStages() {
    StepConfig& c = r_.config;
    const int64_t layers = r_.model.layers;
    std::vector<MegatronStage> stages;
    int64_t each = 1;
    if (o_.Has("pipeline-model-parallel-layout")) {
      PIPELAB_RETURN_IF_ERROR(VirtualStages(layers).status());
      PIPELAB_ASSIGN_OR_RETURN(stages, StagesOfLayout());
      each = static_cast<int64_t>(stages.size()) / c.pipeline;
    } else {
      const int64_t extra = int64_t{o_.Has("account-for-embedding-in-pipeline-split")} +
                            int64_t{o_.Has("account-for-loss-in-pipeline-split")};
      PIPELAB_ASSIGN_OR_RETURN(each, VirtualStages(layers + extra));
      PIPELAB_ASSIGN_OR_RETURN(stages, DividedStages(each));
    }
    const absl::Status set = SetStages(std::move(stages), &r_);
    if (!set.ok()) return o_.Error("pipeline-model-parallel-layout", set.message());
    return TakeSchedule(each);
  }

  absl::StatusOr<std::vector<MegatronStage>> StagesOfLayout() {
    constexpr char kLayout[] = "pipeline-model-parallel-layout";
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, o_.Text(kLayout));
    absl::StatusOr<std::vector<MegatronStage>> stages = ParseMegatronLayout(text);
    if (!stages.ok()) return o_.Error(kLayout, stages.status().message());
    int64_t layers = 0;
    for (const MegatronStage& s : *stages) layers += s.transformers;
    if (layers != r_.model.layers) {
      return o_.Error(kLayout, "has ", layers, " layers; nearest: --num-layers ", layers);
    }
    if (stages->size() % r_.config.pipeline == 0) return stages;
    return o_.Error(kLayout, stages->size(), " stages on ", r_.config.pipeline,
                    " pipeline devices; nearest: --pipeline-model-parallel-size ",
                    NearestDivisor(r_.config.pipeline, static_cast<int64_t>(stages->size())));
  }

  // Equal numbers, but for what is said of the two ends.
  absl::StatusOr<std::vector<MegatronStage>> DividedStages(int64_t each) {
    const int64_t pipeline = r_.config.pipeline, layers = r_.model.layers;
    const bool embedding = o_.Has("account-for-embedding-in-pipeline-split");
    const bool loss = o_.Has("account-for-loss-in-pipeline-split");
    PIPELAB_ASSIGN_OR_RETURN(const int64_t first,
                             o_.Integer("decoder-first-pipeline-num-layers", 1, layers, 0));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t last,
                             o_.Integer("decoder-last-pipeline-num-layers", 1, layers, 0));
    if ((first > 0 || last > 0) && (embedding || loss)) {
      return o_.Error(
          first > 0 ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers",
          "not with --account-for-", embedding ? "embedding" : "loss",
          "-in-pipeline-split; nearest: --pipeline-model-parallel-layout");
    }
    const int64_t rest = layers + embedding + loss - first - last;
    const int64_t others = pipeline - (first > 0) - (last > 0);
    if (others < 0 || rest < 0 ||
        (others == 0 ? rest != 0 : rest == 0 || rest % (others * each) != 0)) {
      return o_.Error("num-layers", rest, " layers do not divide among ",
                      std::max<int64_t>(others, 0) * each, " stages; nearest: --num-layers ",
                      layers - rest + NearestMultiple(rest, std::max<int64_t>(others, 1) * each));
    }
    for (const int64_t of_end : {first, last}) {
      if (of_end % each == 0) continue;
      return o_.Error(
          "num-virtual-stages-per-pipeline-rank", "must divide the ", of_end,
          " layers of the first or last device; nearest: ", NearestDivisor(each, of_end));
    }
    std::vector<int64_t> counts;
    for (int64_t s = 0; s < pipeline * each; ++s) {
      const int64_t device = s % pipeline;
      counts.push_back(device == 0 && first > 0             ? first / each
                       : device == pipeline - 1 && last > 0 ? last / each
                                                            : rest / (others * each));
    }
    counts.front() -= embedding;
    counts.back() -= loss;
    return StagesOfTransformers(counts);
  }

  absl::Status TakeSchedule(int64_t each) {
    StepConfig& c = r_.config;
    c.scheme = each > 1 ? "interleaved" : "1f1b";
    c.virtual_stages = each > 1 ? static_cast<int>(each) : 0;
    const bool blocking = o_.Has("no-overlap-p2p-communication");
    c.overlap_pipeline = each > 1 && !blocking;
    const int least = blocking ? 3 : 2;
    if (each > 1 && c.pipeline < least) {
      return o_.Error("pipeline-model-parallel-size", "interleaved stages ask for at least ", least,
                      " devices", blocking ? " with --no-overlap-p2p-communication" : "",
                      "; nearest: --pipeline-model-parallel-size ", least);
    }
    if (each == 1) return absl::OkStatus();
    const char* group = "microbatch-group-size-per-virtual-pipeline-stage";
    PIPELAB_ASSIGN_OR_RETURN(const int64_t size, o_.Integer(group, 1, kMostBatch, c.pipeline));
    if (size < c.pipeline) {
      return o_.Error(group, "must be at least --pipeline-model-parallel-size; nearest: --", group,
                      " ", c.pipeline);
    }
    if (size != c.pipeline) c.group_size = static_cast<int>(size);
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
        return o_.Error("fp8-recipe", "blocks of 32 have no counterpart here; nearest: tensorwise");
      }
      r_.type = NumberType::kFp8;
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::string optimizer,
                             o_.Word("optimizer", {"adam", "sgd"}, "adam"));
    PIPELAB_ASSIGN_OR_RETURN(const double momentum, o_.Number("sgd-momentum", 0, 1, 0.9));
    if (optimizer == "sgd") r_.optimizer_tensors = momentum > 0 ? 1 : 0;
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string attention,
        o_.Word("attention-backend", {"auto", "fused", "flash", "unfused", "local"}, "auto"));
    const bool unfused = attention == "unfused" || attention == "local";
    if (unfused && !o_.Has("use-flash-attn")) r_.attention = AttentionKernels::kUnfused;
    return absl::OkStatus();
  }

  absl::Status TakeRecomputation() {
    PIPELAB_ASSIGN_OR_RETURN(std::string kind,
                             o_.Word("recompute-granularity", {"full", "selective"}, ""));
    if (o_.Has("recompute-activations")) kind = "selective";
    if (kind == "selective") {
      if (o_.Has("recompute-method")) {
        return o_.Error("recompute-method",
                        "not with selective recomputation; nearest: without it");
      }
      if (o_.Has("recompute-modules")) {
        const absl::StatusOr<std::string> modules = o_.Text("recompute-modules");
        if (!modules.ok() || *modules != "core_attn") {
          return o_.Error("recompute-modules",
                          "of these only core_attn has a counterpart here; "
                          "nearest: --recompute-modules core_attn, or "
                          "--recompute-granularity full");
        }
      }
      if (r_.attention == AttentionKernels::kUnfused) {
        r_.config.recompute = Recompute::kSelective;
      } else {
        Assume("--recompute-granularity selective: fused attention keeps no scores to rebuild");
      }
    }
    return kind == "full" ? TakeFullRecomputation() : absl::OkStatus();
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
    if (method == "uniform" && layers != 1) {
      return o_.Error("recompute-num-layers",
                      "here each layer keeps its own input; nearest: --recompute-num-layers 1");
    }
    if (method == "block" && layers < most) r_.config.rebuilt_blocks = static_cast<int>(layers);
    r_.config.recompute = Recompute::kBlocks;
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
    c.sharding = torch || (fsdp && strategy == "optim_grads_params") ? Sharding::kFully
                 : fsdp && strategy == "optim_grads"                 ? Sharding::kGradients
                 : optimizer || (fsdp && strategy == "optim")        ? Sharding::kOptimizer
                                                                     : Sharding::kReplicated;
    if (c.data == 1) c.sharding = Sharding::kReplicated;
    const bool gathers = o_.Has("overlap-param-gather"), reduces = o_.Has("overlap-grad-reduce");
    if (gathers && !optimizer && !fsdp) {
      return o_.Error("overlap-param-gather", "requires --use-distributed-optimizer");
    }
    if (gathers && !reduces) {
      return o_.Error("overlap-param-gather", "requires --overlap-grad-reduce");
    }
    c.overlap_data = reduces || torch;
    if (gathers && c.sharding == Sharding::kOptimizer) {
      Assume("--overlap-param-gather: gathers of new weights end the step, and are not hidden");
    }
    return GatherByBlock(&r_);
  }

  const MegatronOptions& o_;
  const int64_t devices_;
  Recipe r_;
};

}  // namespace

absl::StatusOr<std::vector<MegatronStage>> EvenStages(int64_t layers, int64_t stages) {
  if (stages < 1 || layers % stages != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(stages, " stages do not divide ", layers, " layers"));
  }
  return StagesOfTransformers(std::vector<int64_t>(stages, layers / stages));
}

absl::StatusOr<Recipe> ReadMegatronFlags(absl::string_view text, absl::string_view what,
                                         int64_t devices) {
  PIPELAB_ASSIGN_OR_RETURN(const MegatronOptions options, MegatronOptions::Parse(text, what));
  return MegatronReader(options, devices).Read();
}

}  // namespace pipelab
