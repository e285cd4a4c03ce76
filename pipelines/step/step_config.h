// What a user can choose about a training step, and nothing else: the scheme and its sizes, the
// grid of devices, how parameters and activations are kept, and what runs beside compute.
//
//   PIPELAB_ASSIGN_OR_RETURN(StepConfig c, ParseStepConfig("config", "1f1b:P=4,T=2,D=8,M=16"));
//   c.ToString()     // "1f1b:P=4,T=2,D=8,V=1,b=1,M=16"
//
// Text, JSON (step_config_json.h) and the command line's flags are three spellings of one value,
// and each reads back to it. In the text form the scheme comes first, then KEY=VALUE and words,
// separated by commas. What is left out has its default:
//
//   P, T, D         devices of the pipeline, of a tensor-parallel group, data-parallel copies (1)
//   C               devices that divide each sample's tokens, in each copy (1)
//   context_exchange
//                   gather: attention gathers the keys and values of all tokens; ring: they travel
//                   from device to device beside it (models/graph/context_ring.h); heads:
//                   all-to-alls give each device all tokens of 1/C of its heads
//   E               of these C x D, so many in a row divide the experts of a layer (1)
//   whole_experts   tensor-parallel groups do not split experts: E are of T x C x D devices, a
//                   multiple of T (Megatron-LM's expert tensor parallel size of 1)
//   V               virtual stages: stages that a device holds of one pipeline (0: the scheme's)
//   b, M            samples of a micro-batch of one copy, micro-batches of a step (1)
//   dispatch        how rows go to experts on other devices: rows (default), each chosen one by
//                   itself; once_per_node: a token once to each node, and there once to each
//                   device, that has experts of it (DeepEP, HybridEP)
//   exchanges       of these rows: waited (default) for, or beside the passes of another
//                   micro-batch, beside_delayed with weight gradients put off to lengthen them
//                   (Megatron-Core's overlap_moe_expert_parallel_comm, delay_wgrad_compute):
//                   exchange_overlap.h
//   sharding        replicated, optimizer (ZeRO-1), gradients (ZeRO-2), fully (ZeRO-3, FSDP)
//   shards          ranks that divide what is sharded, with D C / shards sets that have the same
//                   (hybrid sharding, Zhao et al. 2023); gradients are summed within a set, then
//                   their parts between sets (0: all)
//   state           bytes of a weight and of a gradient: 4+4 (default), 2+4, 2+2, 1+2, ..., the
//                   narrow ones with +cast where sharded parts have 4 (cost/state_numbers.h)
//   recompute       none, selective (attention's core, or modules), full, blocks
//   modules         of recompute=selective on Megatron-LM's kernels: parts of each block that are
//                   rebuilt, with + between them (models/specs/recomputed_modules.h):
//                   core_attn+layernorm
//   rebuilt         how many first blocks of each stage recompute=blocks rebuilds (0: all)
//   rebuilt_every   it rebuilds every so many-th block of a device (1)
//   rebuilt_together
//                   it rebuilds so many blocks at a time, of which the first one's input alone is
//                   kept (1)
//   early_recompute of recompute=full: stages are rebuilt where a device would wait, at most so
//                   many before their turn (Mario, PPoPP 2025; recompute_gaps.h) (0)
//   published       of schemes that make their order for the passes' times: the order for equal
//                   ones, as released code has it
//   split_head      of schedules that split backwards: the head is split, too. By default its
//                   weight part runs with its input part, in I; with sharded gradients it must be
//                   split
//   sequence        sequence parallelism within tensor-parallel groups
//   batch_norm      synchronised or own: what data-parallel copies normalise by
//   local_heads     of stages that learn locally: linear (default) or convolution
//   cut             where stages may begin and what is balanced: blocks (default), layers,
//                   flops_variance or memory (stage_cut.h)
//   layout          groups or layers of each stage instead: "3+2+2+3", "0-2+6/3-5"; options of the
//                   command line have ',' and ';' in the place of '+' and '/'
//   group, replicas, slices, update, concatenation
//                   what only some schemes have (SchemeParams)
//   slice_exchange  of token slices of equal lengths: the devices of the pipeline spread the
//                   attention of those that they have at a time evenly (SlimPipe's context
//                   exchange); ir/slice_exchange.h
//   vocabulary_barriers
//                   embedding and head are divided by words among the devices of the pipeline, with
//                   1 or 2 barriers a micro-batch (Vocab-2, Vocab-1; vocabulary_parts.h) (0: whole)
//   vocabulary_exchange
//                   between these parts and the ends of the chain: messages (default), as programs
//                   run it, or collectives, a price alone
//   gathers_each    sharded weights are gathered for each micro-batch
//   tensor_overlap  of sequence parallelism: rows are gathered and scattered beside the products
//                   that take or make them (Megatron-LM's --tp-comm-overlap): layer_times.h
//   no_pipeline_overlap, no_data_overlap
//                   messages, or reductions and gathers, never run beside compute
//   steady_overlap  messages run beside compute only between a device's first backward and its last
//                   forward (Megatron-Core's overlap_p2p_comm without its warm-up and flush)
//   whole_messages  each rank of a tensor-parallel group sends all rows of a message
//   ranks           which ranks lie side by side on the cluster, innermost first: tp-dp-pp
//                   (default); tp-pp-dp: each replica on devices of its own; tp-dp-mirror: pipeline
//                   device P - 1 - p beside p (RankOrder)
//   execution       plain, or what Megatron-LM of 2022 lost (execution.h): megatron2022, or some of
//                   its parts, "calls+inputs"
//   model, cluster, dtype
//                   where the command line does not give them
//
// The scheme is a name of the catalogue, or a file with the user's own schedule, "mine.csv",
// "mine.json" or "mine.txt": P, V and M then come from the file.
//
// Ranks are (p D + d) T + t: tensor groups are innermost, then data, then the pipeline; with
// ranks=tp-pp-dp they are (d P + p) T + t, with tp-dp-mirror (q D + d) T + t with q = 0 2 4 .. 5
// 3 1. With context parallelism C T is in the place of T, and c T + t in that of t.
#ifndef PIPELAB_PIPELINES_STEP_STEP_CONFIG_H_
#define PIPELAB_PIPELINES_STEP_STEP_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/batch_norm_copies.h"
#include "models/graph/context_part.h"
#include "models/graph/tensor_parallel.h"
#include "models/zoo/local_heads.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/state_numbers.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// kFull: GPipe's, a whole stage at a time, before its backward (Huang et al. 2019). kBlocks:
// Megatron-LM's full recomputation, a block at a time, within the backward.
enum class Recompute : uint8_t { kNone, kSelective, kFull, kBlocks };
const char* RecomputeName(Recompute recompute);  // "none", "selective", "full", "blocks"
absl::StatusOr<Recompute> FindRecompute(absl::string_view name);

const char* BatchNormName(BatchNormCopies batch_norm);  // "synchronised", "own"
absl::StatusOr<BatchNormCopies> FindBatchNorm(absl::string_view name);

// Where a model is cut into stages (stage_cut.h).
enum class CutRule : uint8_t { kBlocks, kLayers, kFlopsVariance, kMemory };
const char* CutRuleName(CutRule rule);  // "blocks"
absl::StatusOr<CutRule> FindCutRule(absl::string_view name);

const char* RankOrderName(RankOrder order);  // "tp-dp-pp"
absl::StatusOr<RankOrder> FindRankOrder(absl::string_view name);

const char* ContextExchangeName(ContextExchange exchange);  // "gather", "ring", "heads"
absl::StatusOr<ContextExchange> FindContextExchange(absl::string_view name);
enum class Dispatch : uint8_t { kRows, kOncePerNode };
const char* DispatchName(Dispatch dispatch);  // "rows", "once_per_node"
absl::StatusOr<Dispatch> FindDispatch(absl::string_view name);

enum class Exchanges : uint8_t { kWaited, kBeside, kBesideDelayed };
const char* ExchangesName(Exchanges exchanges);  // "waited"
absl::StatusOr<Exchanges> FindExchanges(absl::string_view name);

enum class VocabularyExchange : uint8_t { kMessages, kCollectives };
const char* VocabularyExchangeName(VocabularyExchange exchange);  // "messages"
absl::StatusOr<VocabularyExchange> FindVocabularyExchange(absl::string_view name);

struct StepConfig {
  std::string scheme = "1f1b";
  int pipeline = 1, tensor = 1, context = 1, data = 1, experts = 1;
  int virtual_stages = 0;
  int64_t micro_batch_size = 1;
  int micro_batches = 1;
  Sharding sharding = Sharding::kReplicated;
  int shards = 0;
  StateNumbers state;
  Recompute recompute = Recompute::kNone;
  std::string modules;
  int rebuilt_blocks = 0, rebuilt_every = 1, rebuilt_together = 1, early_recompute = 0;
  bool published_order = false, split_head = false;
  bool sequence_parallel = false, whole_experts = false;
  ContextExchange context_exchange = ContextExchange::kGather;
  Dispatch dispatch = Dispatch::kRows;
  Exchanges exchanges = Exchanges::kWaited;
  BatchNormCopies batch_norm = BatchNormCopies::kSynchronised;
  LocalHead local_heads = LocalHead::kLinear;
  CutRule cut = CutRule::kBlocks;
  std::string layout;
  int group_size = 0, replicas = 0, slices = 0, update_interval = 0;
  bool slice_exchange = false;
  int vocabulary_barriers = 0;
  VocabularyExchange vocabulary_exchange = VocabularyExchange::kMessages;
  Concatenation concatenation = Concatenation::kDirect;
  Residency residency = Residency::kRun;
  bool overlap_pipeline = true, overlap_data = true, overlap_tensor = false, whole_messages = false;
  bool steady_overlap = false;
  RankOrder ranks = RankOrder::kTensorDataPipeline;
  uint32_t execution = 0;  // ExecutionParts
  std::string model, cluster, dtype;

  // Samples of a step, and ranks.
  int64_t batch() const { return micro_batch_size * micro_batches * data; }
  int64_t devices() const { return int64_t{pipeline} * tensor * copies(); }
  // Ranks with the same weights, or the same part of them: what sums gradients, and shards.
  int copies() const { return context * data; }
  // The ranks among these that divide what is sharded.
  int sharing() const { return shards == 0 ? copies() : shards; }
  bool divides_vocabulary() const { return vocabulary_barriers > 0; }
  TensorParallel split() const {
    return {tensor,
            sequence_parallel,
            context,
            experts,
            whole_experts,
            context_exchange,
            dispatch == Dispatch::kOncePerNode};
  }
  // The ranks of a tensor-parallel group have the same rows of a message.
  bool has_equal_messages() const { return tensor > 1 && !sequence_parallel; }
  // They send a part of it each.
  bool divided_messages() const { return has_equal_messages() && !whole_messages; }
  // Whether the scheme is a file.
  bool has_schedule_file() const;
  // Whether forwards are computed again: all of them, or all between embedding and loss.
  bool recomputes_forwards() const {
    return recompute == Recompute::kFull || (recompute == Recompute::kBlocks && rebuilt().all());
  }
  RebuiltPart rebuilt() const { return {rebuilt_blocks, rebuilt_every, rebuilt_together}; }

  // The scheme, P, T, D, V, b and M, and what is not its default.
  std::string ToString() const;
};

bool operator==(const StepConfig& a, const StepConfig& b);

// InvalidArgument where blocks are counted, or modules named, that are not rebuilt.
absl::Status CheckRebuiltBlocks(const StepConfig& config);

// InvalidArgument naming option, word and what would be right.
absl::StatusOr<StepConfig> ParseStepConfig(absl::string_view option, absl::string_view text);

// Sizes as MakeSchedule takes them, of a pipeline whose devices are groups of `members`.
SchemeParams SchemeSizes(const StepConfig& config, int members = 1);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_STEP_CONFIG_H_
