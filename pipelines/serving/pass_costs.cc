#include "pipelines/serving/pass_costs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "models/graph/operation.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/token_cache.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cost/chain_partition.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kTokenBytes = 4;

// Layers of equal words cost the same.
std::string WordsOf(const LayerSpec& layer) {
  std::string words = absl::StrCat(layer.kind, " ", absl::StrJoin(layer.output_shape, ","));
  for (const auto& [name, value] : layer.attributes) absl::StrAppend(&words, " ", name, "=", value);
  for (const ParameterSpec& p : layer.parameters) {
    absl::StrAppend(&words, " ", absl::StrJoin(p.shape, ","));
  }
  return words;
}

// Of a product's weights, where they are known.
bool HasWeights(const Operation& o) {
  return o.kind == OperationKind::kMatmul && o.groups == 1 && o.k > 0 && o.n > 0;
}

// Another run of the same operation.
void Merge(const Operation& more, Operation* sum) {
  sum->flops += more.flops;
  sum->numbers += more.numbers;
  sum->packed += more.packed;
  if (!HasWeights(*sum)) return;
  sum->m += more.m;
  sum->numbers -= sum->k * sum->n;  // read once
}

void Pack(int64_t group, Operation* o) {
  const Operation packed = Int4MatmulOperation(o->m, o->n, o->k, group);
  o->numbers -= o->k * o->n;
  o->packed = packed.packed;
}

// The last token of each run that predicts: what a head looks at.
std::vector<TokenRun> LastTokens(const std::vector<TokenRun>& runs) {
  std::vector<TokenRun> last;
  for (const TokenRun& run : runs) {
    if (run.predicts) last.push_back({run.slot, run.end() - 1, 1, true});
  }
  return last;
}

int64_t NumberBytes(NumberType type) { return BytesOf(type); }

// Of one layer in a pass.
absl::StatusOr<Nanoseconds> LayerTime(const PassCostOptions& options, const LayerSpec& layer,
                                      const std::vector<TokenRun>& all) {
  const bool head = layer.kind == kGptHead;
  const std::vector<TokenRun> runs = head ? LastTokens(all) : all;
  std::vector<Operation> pass;
  for (const TokenRun& run : runs) {
    const LayerOperations of_run = layer.operations(1, TokenSlice{run.first, run.count});
    size_t place = 0;
    for (const Operation& o : of_run.forward) {
      if (o.kind == OperationKind::kLoss) continue;  // there are no targets
      if (o.own && !options.machine.device.own_kernels) continue;
      if (place == pass.size()) {
        pass.push_back(o);
      } else {
        Merge(o, &pass[place]);
      }
      ++place;
    }
  }
  for (Operation& o : pass) {
    if (options.int4_group > 0 && !head && HasWeights(o)) Pack(options.int4_group, &o);
  }
  return RunTime(options.machine.device, options.machine.type, pass);
}

}  // namespace

absl::StatusOr<PassCosts> PassCosts::Make(const ModelGraph& graph, const ModelPartition& partition,
                                          const PassCostOptions& options) {
  PassCosts costs;
  costs.options_ = options;
  costs.hidden_ = graph.layers[0].output_shape.back();
  const std::vector<TokenRun> token = {{0, 0, 1, true}};
  for (const std::vector<int>& layers : partition.layers) {
    Stage& stage = costs.stages_.emplace_back();
    std::map<std::string, size_t> kinds;
    for (const int i : layers) {
      const LayerSpec& layer = graph.layers[i];
      PIPELAB_ASSIGN_OR_RETURN(const int64_t numbers, CacheNumbers(layer));
      stage.cache_numbers += numbers;
      const bool packs = options.int4_group > 0 && layer.kind != kGptHead;
      for (const ParameterSpec& p : layer.parameters) {
        const bool matrix = packs && p.shape.size() == 2 && !layer.inputs.empty();
        stage.weights +=
            matrix ? Int4MatmulOperation(1, p.shape[1], p.shape[0], options.int4_group).packed
                   : Bytes(p.size() * NumberBytes(options.machine.type));
      }
      const auto [at, is_new] = kinds.emplace(WordsOf(layer), stage.kinds.size());
      if (is_new) {
        PIPELAB_RETURN_IF_ERROR(LayerTime(options, layer, token).status());
        stage.kinds.push_back({layer, 0});
      }
      ++stage.kinds[at->second].count;
    }
  }
  return costs;
}

absl::StatusOr<ModelPartition> CutForPass(const ModelGraph& graph, int stages,
                                          const PassCostOptions& options,
                                          const std::vector<TokenRun>& runs) {
  std::vector<double> costs;
  for (const LayerSpec& layer : graph.layers) {
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds time, LayerTime(options, layer, runs));
    costs.push_back(static_cast<double>(time.value()));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> first, PartitionChain(costs, stages));
  return MakeRangePartition(graph, first);
}

Nanoseconds PassCosts::Compute(int stage, const std::vector<TokenRun>& runs) const {
  Nanoseconds time;
  for (const Kind& kind : stages_[stage].kinds) {
    const absl::StatusOr<Nanoseconds> one = LayerTime(options_, kind.layer, runs);
    CHECK(one.ok()) << one.status();  // Make has tried the machine
    time += *one * kind.count;
  }
  return time;
}

Bytes PassCosts::MessageBytes(int stage, const std::vector<TokenRun>& runs) const {
  if (stage + 1 == static_cast<int>(stages_.size())) {
    return Bytes(PredictionsOf(runs) * kTokenBytes);
  }
  return Bytes(RowsOf(runs) * hidden_ * NumberBytes(options_.machine.type));
}

Nanoseconds PassCosts::Transfer(int stage, const std::vector<TokenRun>& runs) const {
  return options_.link.TransferTime(MessageBytes(stage, runs));
}

ServingTimes PassCosts::Times() const {
  ServingTimes times;
  times.compute = [this](int stage, const std::vector<TokenRun>& runs) {
    return Compute(stage, runs);
  };
  times.transfer = [this](int stage, const std::vector<TokenRun>& runs) {
    return Transfer(stage, runs);
  };
  times.latency = options_.link.latency;
  return times;
}

CostTable PassCosts::Table(const PassPlan& plan) const {
  CostTable table;
  table.of_passes = true;
  table.hop_latency = options_.link.latency;
  table.bandwidth = options_.link.bandwidth;
  const int stages = static_cast<int>(stages_.size());
  for (int s = 0; s < stages; ++s) {
    StageCost& stage = table.stages.emplace_back();
    stage.memory.weights = WeightBytes(s);
    stage.memory.state = WeightBytes(s) + CacheBytes(s, plan.options);
  }
  table.edge_bytes.assign(stages, Bytes(0));  // to the next stage, and from the last to the first
  for (const Pass& pass : plan.passes) {
    SliceCosts& of_pass = table.slices.emplace_back();
    for (int s = 0; s < stages; ++s) {
      of_pass.stages.emplace_back().forward = Compute(s, pass.runs);
      of_pass.edge_bytes.push_back(MessageBytes(s, pass.runs));
    }
    table.releases.push_back(pass.release);
  }
  return table;
}

Bytes PassCosts::CacheBytes(int stage, const ServingOptions& options) const {
  return Bytes(stages_[stage].cache_numbers * NumberBytes(options_.machine.type)) *
         (int64_t{options.groups} * options.slots * options.cache_tokens);
}

Bytes PassCosts::WeightBytes(int stage) const { return stages_[stage].weights; }

}  // namespace pipelab
