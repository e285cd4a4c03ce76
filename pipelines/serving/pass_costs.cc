#include "pipelines/serving/pass_costs.h"

#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/token_cache.h"
#include "pipelines/cost/chain_partition.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Layers of one key have the same operations.
std::string KeyOf(const LayerSpec& layer) {
  const auto sizes = [](const std::vector<int64_t>& shape) { return absl::StrJoin(shape, "x"); };
  std::string key = absl::StrCat(layer.kind, " ", sizes(layer.output_shape));
  for (const auto& shape : layer.input_shapes) absl::StrAppend(&key, " ", sizes(shape));
  for (const ParameterSpec& p : layer.parameters) absl::StrAppend(&key, " ", sizes(p.shape));
  for (const auto& [name, value] : layer.attributes) absl::StrAppend(&key, " ", name, "=", value);
  return key;
}

// Whether its products are those that 4-bit weights serve.
bool InBlock(const LayerSpec& layer) {
  return layer.kind == kGptAttention || layer.kind == kGptMlp;
}

Bytes WeightBytesOf(const LayerSpec& layer, const ServingCostOptions& options) {
  Bytes bytes;
  for (const ParameterSpec& p : layer.parameters) {
    if (options.int4_group > 0 && InBlock(layer) && p.shape.size() == 2) {
      bytes += Int4MatmulOperation(1, p.shape[1], p.shape[0], options.int4_group).packed;
    } else {
      bytes += Bytes(BytesOf(options.machine.type)) * p.size();
    }
  }
  return bytes;
}

absl::Status CheckStages(const ModelGraph& graph, const ModelPartition& partition,
                         const ServingCostOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph));
  if (!partition.stages.IsChain()) {
    return absl::InvalidArgumentError("passes of inference need stages that are a chain");
  }
  for (const LayerSpec& layer : graph.layers) {
    if (options.int4_group > 0 && layer.kind == kGptExperts) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--int4_group=", options.int4_group, ": not with experts (layer \"", layer.name, "\")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Kinds of layers, and what each takes for the pass that was asked for last: stages ask for the
// same one in turn.
class ServingCosts::LayerCache {
 public:
  explicit LayerCache(const ServingCostOptions& options) : options_(options) {}

  size_t KindOf(const LayerSpec& layer) {
    const auto [found, is_new] = kind_of_key_.emplace(KeyOf(layer), kinds_.size());
    if (is_new) kinds_.push_back({layer, {}, {}});
    return found->second;
  }

  // Whether the machine has times for all that passes do.
  absl::Status Check() {
    for (Kind& kind : kinds_) {
      PIPELAB_RETURN_IF_ERROR(TimeOf(&kind, {{0, 0, 1, true}}).status());
    }
    return absl::OkStatus();
  }

  // [kind]
  const std::vector<Nanoseconds>& Times(const std::vector<TokenRun>& runs) {
    if (runs == runs_ && !times_.empty()) return times_;
    runs_ = runs;
    times_.clear();
    for (Kind& kind : kinds_) times_.push_back(TimeOf(&kind, runs).value());  // Check was OK
    return times_;
  }

 private:
  struct Attention {
    Flops flops;
    int64_t numbers = 0;
  };
  struct Kind {
    LayerSpec layer;
    std::unordered_map<int64_t, std::vector<Operation>> by_rows;
    std::unordered_map<int64_t, Attention> by_first;  // of single tokens
  };

  absl::StatusOr<Nanoseconds> TimeOf(Kind* kind, const std::vector<TokenRun>& runs) {
    const bool head = kind->layer.output_shape.empty();
    const int64_t rows = head ? PredictionsOf(runs) : RowsOf(runs);
    if (rows == 0) return Nanoseconds(0);
    std::vector<Operation> operations = OperationsOf(kind, rows);
    for (Operation& o : operations) {
      if (o.kind != OperationKind::kAttention) continue;
      o.flops = Flops(0);
      o.numbers = 0;
      for (const TokenRun& run : runs) {
        const Attention of_run = AttentionOf(kind, run);
        o.flops += of_run.flops;
        o.numbers += of_run.numbers;
      }
    }
    const absl::StatusOr<Nanoseconds> time =
        RunTime(options_.machine.device, options_.machine.type, operations);
    if (time.ok()) return time;
    return absl::Status(time.status().code(), absl::StrCat("layer \"", kind->layer.name,
                                                           "\": ", time.status().message()));
  }

  const std::vector<Operation>& OperationsOf(Kind* kind, int64_t rows) {
    const auto [found, is_new] = kind->by_rows.try_emplace(rows);
    if (!is_new) return found->second;
    found->second = kind->layer.operations(1, TokenSlice{0, rows}).forward;
    if (options_.int4_group == 0 || !InBlock(kind->layer)) return found->second;
    for (Operation& o : found->second) {
      if (o.kind == OperationKind::kMatmul) {
        o = Int4MatmulOperation(o.m, o.n, o.k, options_.int4_group);
      }
    }
    return found->second;
  }

  static Attention AttentionOf(Kind* kind, const TokenRun& run) {
    if (run.count == 1) {
      const auto [found, is_new] = kind->by_first.try_emplace(run.first);
      if (is_new) found->second = ComputeAttention(kind->layer, run);
      return found->second;
    }
    return ComputeAttention(kind->layer, run);
  }

  static Attention ComputeAttention(const LayerSpec& layer, const TokenRun& run) {
    Attention sum;
    for (const Operation& o : layer.operations(1, TokenSlice{run.first, run.count}).forward) {
      if (o.kind != OperationKind::kAttention) continue;
      sum.flops += o.flops;
      sum.numbers += o.numbers;
    }
    return sum;
  }

  const ServingCostOptions options_;
  std::unordered_map<std::string, size_t> kind_of_key_;
  std::vector<Kind> kinds_;
  std::vector<TokenRun> runs_;
  std::vector<Nanoseconds> times_;
};

absl::StatusOr<ServingCosts> ServingCosts::Make(const ModelGraph& graph,
                                                const ModelPartition& partition,
                                                const ServingCostOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckStages(graph, partition, options));
  ServingCosts costs;
  costs.link_ = options.link;
  costs.number_bytes_ = BytesOf(options.machine.type);
  costs.layers_ = std::make_shared<LayerCache>(options);
  for (const std::vector<int>& layers : partition.layers) {
    Stage stage;
    for (const int i : layers) {
      const LayerSpec& layer = graph.layers[i];
      const size_t kind = costs.layers_->KindOf(layer);
      if (stage.layers.size() <= kind) stage.layers.resize(kind + 1);
      ++stage.layers[kind];
      stage.weights += WeightBytesOf(layer, options);
      PIPELAB_ASSIGN_OR_RETURN(const int64_t numbers, CacheNumbers(layer));
      stage.cache_of_token += Bytes(costs.number_bytes_) * numbers;
    }
    const int edge = static_cast<int>(costs.stages_.size());
    if (edge < static_cast<int>(partition.edge_layer.size())) {
      stage.hidden = graph.layers[partition.edge_layer[edge]].output_shape.back();
    }
    costs.stages_.push_back(std::move(stage));
  }
  PIPELAB_RETURN_IF_ERROR(costs.layers_->Check());
  return costs;
}

Nanoseconds ServingCosts::Compute(int stage, const std::vector<TokenRun>& runs) const {
  const std::vector<Nanoseconds>& times = layers_->Times(runs);
  const std::vector<int64_t>& layers = stages_[stage].layers;
  Nanoseconds sum;
  for (size_t kind = 0; kind < layers.size(); ++kind) sum += times[kind] * layers[kind];
  return sum;
}

Bytes ServingCosts::MessageBytes(int stage, const std::vector<TokenRun>& runs) const {
  const int64_t hidden = stages_[stage].hidden;
  if (hidden == 0) return Bytes(4) * PredictionsOf(runs);
  return Bytes(number_bytes_) * hidden * RowsOf(runs);
}

Bytes ServingCosts::CacheBytes(int stage, const ServingOptions& options) const {
  return stages_[stage].cache_of_token * options.cache_tokens * options.slots * options.groups;
}

ServingTimes ServingCosts::Times() const {
  ServingTimes times;
  times.latency = link_.latency;
  times.compute = [costs = *this](int stage, const std::vector<TokenRun>& runs) {
    return costs.Compute(stage, runs);
  };
  times.transfer = [costs = *this](int stage, const std::vector<TokenRun>& runs) {
    return costs.link_.TransferTime(costs.MessageBytes(stage, runs));
  };
  return times;
}

CostTable ServingCosts::Table(const PassPlan& plan) const {
  CostTable table;
  table.of_passes = true;
  table.hop_latency = link_.latency;
  table.bandwidth = link_.bandwidth;
  for (int s = 0; s < num_stages(); ++s) {
    StageMemory& memory = table.stages.emplace_back().memory;
    memory.weights = WeightBytes(s);
    memory.statistics = CacheBytes(s, plan.options);  // what goes on from pass to pass
    memory.state = memory.weights + memory.statistics;
  }
  table.edge_bytes.assign(num_stages(), Bytes(0));  // a pass has its own
  for (const Pass& pass : plan.passes) {
    SliceCosts& of_pass = table.slices.emplace_back();
    for (int s = 0; s < num_stages(); ++s) {
      of_pass.stages.emplace_back().forward = Compute(s, pass.runs);
      of_pass.edge_bytes.push_back(MessageBytes(s, pass.runs));
    }
    table.releases.push_back(pass.release);
  }
  return table;
}

absl::StatusOr<ModelPartition> CutForPass(const ModelGraph& graph, int stages,
                                          const ServingCostOptions& options,
                                          const std::vector<TokenRun>& runs) {
  std::vector<int> each(graph.layers.size());
  std::iota(each.begin(), each.end(), 0);
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition layers, MakePartition(graph, each));
  PIPELAB_ASSIGN_OR_RETURN(const ServingCosts costs, ServingCosts::Make(graph, layers, options));
  std::vector<double> times;
  for (const int layer : each) {
    times.push_back(static_cast<double>(costs.Compute(layer, runs).value()));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> first, PartitionChain(times, stages));
  return MakeRangePartition(graph, first);
}

}  // namespace pipelab
