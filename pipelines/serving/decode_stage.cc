#include "pipelines/serving/decode_stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<std::unique_ptr<DecodeStage>> DecodeStage::Create(const ModelGraph& graph,
                                                                 const ModelPartition& partition,
                                                                 int stage, Backend* backend,
                                                                 const DecodeOptions& options) {
  const PassPlan& plan = *options.plan;
  if (options.prompts->size() != plan.requests.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.prompts->size(), " prompts for a plan of ", plan.requests.size(), " requests"));
  }
  for (size_t r = 0; r < plan.requests.size(); ++r) {
    if (static_cast<int64_t>((*options.prompts)[r].size()) == plan.requests[r].prompt) continue;
    return absl::InvalidArgumentError(absl::StrCat("prompt ", r, " has ",
                                                   (*options.prompts)[r].size(), " tokens, and ",
                                                   plan.requests[r].prompt, " in the plan"));
  }
  LayerStageOptions layers;
  layers.forward_only = layers.cached = true;
  layers.batch_tokens = 1;  // there is no loss to scale
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<LayerStage> made,
                           LayerStage::Create(graph, partition, stage, backend, layers));
  const bool first = partition.stages.in_edges[stage].empty();
  const bool last = partition.loss_stage == stage;
  return std::unique_ptr<DecodeStage>(
      new DecodeStage(std::move(made), first, last, backend, options));
}

DecodeStage::DecodeStage(std::unique_ptr<LayerStage> stage, bool first, bool last, Backend* backend,
                         const DecodeOptions& options)
    : stage_(std::move(stage)), first_(first), last_(last), backend_(backend), options_(options) {
  if (first_) newest_.resize(options_.plan->requests.size(), -1);
  if (last_) chosen_.resize(options_.plan->requests.size());
}

// The schedule's edge that carries is the last one at either end (WithStages).
TensorSpec DecodeStage::InputSpec(int in_edge, int pass) const {
  const std::vector<Pass>& passes = options_.plan->passes;
  if (in_edge < stage_->num_in_edges()) {
    TensorSpec spec = stage_->InputSpec(in_edge, 0);
    spec.shape[0] = RowsOf(passes[pass].runs);
    return spec;
  }
  const int32_t source = passes[pass].source;
  return {DataType::kInt32, {source < 0 ? 0 : PredictionsOf(passes[source].runs)}};
}

TensorSpec DecodeStage::OutputSpec(int out_edge, int pass) const {
  const Pass& of = options_.plan->passes[pass];
  if (out_edge < stage_->num_out_edges()) {
    TensorSpec spec = stage_->OutputSpec(out_edge, 0);
    spec.shape[0] = RowsOf(of.runs);
    return spec;
  }
  return {DataType::kInt32, {PredictionsOf(of.runs)}};
}

absl::StatusOr<std::vector<int32_t>> DecodeStage::TokensOf(const Pass& pass,
                                                           const Tensor& carried) {
  if (!carried.empty()) {
    const Pass& source = options_.plan->passes[pass.source];
    const std::vector<int32_t> ids = HostIds(carried);
    auto id = ids.begin();
    for (size_t i = 0; i < source.runs.size() && id != ids.end(); ++i) {
      if (source.runs[i].predicts) newest_[source.requests[i]] = *id++;
    }
  }
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < pass.runs.size(); ++i) {
    const TokenRun& run = pass.runs[i];
    const std::vector<int32_t>& prompt = (*options_.prompts)[pass.requests[i]];
    const auto size = static_cast<int64_t>(prompt.size());
    if (run.end() <= size) {
      tokens.insert(tokens.end(), prompt.begin() + run.first, prompt.begin() + run.end());
    } else if (run.first >= size && run.count == 1 && newest_[pass.requests[i]] >= 0) {
      tokens.push_back(newest_[pass.requests[i]]);
    } else {
      return absl::InternalError(absl::StrCat("request ", pass.requests[i], ", tokens ", run.first,
                                              " to ", run.end() - 1, ": they are not there yet"));
    }
  }
  return tokens;
}

Tensor DecodeStage::Choose(const Pass& pass, absl::Span<const float> logits) {
  const int64_t count = PredictionsOf(pass.runs);
  if (count == 0) return Tensor();
  const size_t words = logits.size() / static_cast<size_t>(count);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < pass.runs.size(); ++i) {
    if (!pass.runs[i].predicts) continue;
    const int32_t request = pass.requests[i];
    ids.push_back(options_.choose(request, pass.runs[i].end() - 1,
                                  logits.subspan(ids.size() * words, words)));
    chosen_[request].push_back(ids.back());
  }
  const Tensor tokens =
      backend_->arena().Allocate(DataType::kInt32, {count}, MemoryKind::kActivation);
  SetHostIds(tokens, ids);
  return tokens;
}

Bytes DecodeStage::CacheBytes() const {
  Bytes bytes;
  for (const LayerStash& cache : caches_) {
    for (const Tensor& t : cache.tensors) bytes += Bytes(t.bytes());
  }
  return bytes;
}

absl::StatusOr<std::vector<Tensor>> DecodeStage::Forward(const Action& a,
                                                         std::vector<Tensor> inputs, bool) {
  const PassPlan& plan = *options_.plan;
  const Pass& pass = plan.passes[a.micro_batch];
  Tensor carried;
  if (static_cast<int>(inputs.size()) > stage_->num_in_edges()) {
    carried = std::move(inputs.back());
    inputs.pop_back();
  }
  std::vector<int32_t> tokens;
  if (first_) {
    PIPELAB_ASSIGN_OR_RETURN(tokens, TokensOf(pass, carried));
  }
  std::vector<TokenRun> runs = pass.runs;  // slots of all groups, one behind the other
  for (TokenRun& run : runs) run.slot += pass.group * plan.options.slots;
  CachedPass cached;
  cached.runs = runs;
  cached.tokens = tokens;
  cached.slots = int64_t{plan.options.groups} * plan.options.slots;
  cached.slot_tokens = plan.options.cache_tokens;
  std::vector<float> logits;
  PIPELAB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                           stage_->RunPass(cached, std::move(inputs), &caches_, &logits));
  if (last_) outputs.push_back(Choose(pass, logits));
  return outputs;
}

}  // namespace pipelab
