#include "pipelines/step/layer_time_memo.h"

#include <algorithm>

#include "models/graph/context_parallel.h"
#include "pipelines/step/expert_exchange.h"
#include "tools/base/status_macros.h"

namespace pipelab {

ExpertKey ExpertKeyOf(const StepConfig& c) {
  if (c.experts == 1) return {1, false, 1, RankOrder(), Dispatch(), Exchanges(), 0};
  // Else the ranks of a pipeline device lie side by side.
  const int between = c.ranks == RankOrder::kTensorPipelineData ? c.pipeline : 1;
  return {c.experts, c.whole_experts, between, c.ranks, c.dispatch, c.exchanges, MergedShare(c)};
}

LayerTimeMemo::LayerTimeMemo(const ModelGraph& graph, const std::vector<int>& alike,
                             const Machine& machine)
    : graph_(graph), machine_(machine) {
  for (int i = 0; i < static_cast<int>(alike.size()); ++i) {
    if (alike[i] == i) {
      kind_of_layer_.push_back(static_cast<int>(kinds_.size()));
      Kind& kind = kinds_.emplace_back();
      kind.layer = i;
      kind.context = ExchangesContext(i);
      const std::vector<ParameterSpec>& parameters = graph.layers[i].parameters;
      kind.experts = std::any_of(parameters.begin(), parameters.end(),
                                 [](const ParameterSpec& p) { return p.experts > 0; });
    } else {
      kind_of_layer_.push_back(kind_of_layer_[alike[i]]);
    }
    ++kinds_[kind_of_layer_[i]].count;
  }
}

// A layer that does nothing together with the devices of the other tokens does not notice how
// others do.
bool LayerTimeMemo::ExchangesContext(int layer) const {
  TensorParallel split{1, false, 2};
  if (!CheckContextParallel(graph_, split).ok()) return true;
  const TensorShare share = ShareOf(graph_.layers[layer], 1, TokenSlice(), split);
  return !share.context.forward.empty() || !share.context.backward_input.empty();
}

LayerSizes LayerSizesOf(const StepConfig& c) {
  return {c.tensor,           c.sequence_parallel, c.overlap_tensor,  c.context,
          c.context_exchange, ExpertKeyOf(c),      c.micro_batch_size};
}

StepConfig WithoutTimesAlone(StepConfig config) {
  config.exchanges = Exchanges::kWaited;
  config.dispatch = Dispatch::kRows;
  config.overlap_tensor = false;
  config.ranks = RankOrder::kTensorDataPipeline;
  return config;
}

absl::StatusOr<const LayerTimes*> LayerTimeMemo::TimesOf(const LayerSizes& sizes, Group group,
                                                         int layer) {
  Kind& kind = kinds_[kind_of_layer_[layer]];
  LayerSizes own = sizes;
  // An exchange of experts may run beside the attention before it, which notices the context's.
  if (!kind.experts) {
    std::get<ExpertKey>(own) = ExpertKeyOf(StepConfig());
    if (!kind.context) std::get<ContextExchange>(own) = ContextExchange();
  }
  const auto found = kind.times.find(own);
  if (found != kind.times.end()) return &found->second;
  LayerTimes times;
  if (std::get<Exchanges>(std::get<ExpertKey>(own)) != Exchanges::kWaited) {
    PIPELAB_ASSIGN_OR_RETURN(times, Hidden(own, group(), kind.layer));
  } else {
    PIPELAB_ASSIGN_OR_RETURN(
        times, pipelab::TimesOf(graph_.layers[kind.layer], machine_, std::get<int64_t>(own),
                                TokenSlice(), group()));
  }
  return &kind.times.emplace(own, times).first->second;
}

absl::StatusOr<LayerTimes> LayerTimeMemo::Hidden(LayerSizes sizes, const TensorGroup& group,
                                                 int layer) {
  ExpertKey& experts = std::get<ExpertKey>(sizes);
  std::get<Exchanges>(experts) = Exchanges::kWaited;
  std::get<double>(experts) = 0;
  const auto same = [&] { return group; };  // what hides is no part of TimesOf
  PIPELAB_ASSIGN_OR_RETURN(const LayerTimes* waited, TimesOf(sizes, same, layer));
  const LayerTimes times = *waited;
  const std::vector<int>& inputs = graph_.layers[layer].inputs;
  if (inputs.empty() || times.exchange == Nanoseconds(0)) return times;
  PIPELAB_ASSIGN_OR_RETURN(const LayerTimes* before, TimesOf(sizes, same, inputs[0]));
  return WithHiddenExchanges(times, *before, group);
}

absl::StatusOr<const LayerTimes*> LayerTimeMemo::TimesOf(const StepConfig& config, Group group,
                                                         int layer) {
  return TimesOf(LayerSizesOf(config), group, layer);
}

absl::StatusOr<Nanoseconds> LayerTimeMemo::WorkOf(const StepConfig& config, Group group) {
  const LayerSizes sizes = LayerSizesOf(config);
  if (const auto known = work_.find(sizes); known != work_.end()) return known->second;
  Nanoseconds work;
  for (const Kind& kind : kinds_) {
    PIPELAB_ASSIGN_OR_RETURN(const LayerTimes* times, TimesOf(sizes, group, kind.layer));
    work += (times->forward + times->backward_input + times->backward_weight) * kind.count;
  }
  work_.emplace(sizes, work);
  return work;
}

}  // namespace pipelab
