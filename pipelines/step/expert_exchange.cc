#include "pipelines/step/expert_exchange.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/graph/expert_parallel.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

RoutedRows RowsOf(const LayerSpec& layer) {
  return {RoutedExperts(layer), WholeAttribute(layer, "chosen"), WholeAttribute(layer, "nodes"),
          WholeAttribute(layer, "most_nodes")};
}

bool Alike(const RoutedRows& a, const RoutedRows& b) {
  return a.experts == b.experts && a.chosen == b.chosen && a.nodes == b.nodes &&
         a.most_nodes == b.most_nodes;
}

}  // namespace

absl::Status CheckDispatch(const ModelGraph& graph, const StepConfig& c) {
  if (c.dispatch == Dispatch::kRows) return absl::OkStatus();
  const auto error = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("dispatch=", DispatchName(c.dispatch), ": ", why));
  };
  if (c.experts == 1) return error("needs experts over several devices; give E too");
  const absl::optional<RoutedRows> rows = RowsOfExperts(graph);
  for (const LayerSpec& layer : graph.layers) {
    if (RoutedExperts(layer) == 0 || Alike(RowsOf(layer), *rows)) continue;
    return error(
        absl::StrCat("tokens of layer \"", layer.name,
                     "\" choose otherwise than those of the first with experts; give rows"));
  }
  return absl::OkStatus();
}

absl::optional<RoutedRows> RowsOfExperts(const ModelGraph& graph) {
  for (const LayerSpec& layer : graph.layers) {
    if (RoutedExperts(layer) > 0) return RowsOf(layer);
  }
  return absl::nullopt;
}

constexpr absl::string_view kMergedScheme = "interleaved_merged";

double MergedShare(const StepConfig& c) {
  // The simulator knows which passes the scheme merges.
  if (c.exchanges == Exchanges::kWaited || c.scheme == kMergedScheme) return 0;
  const int virtual_stages = std::max(1, c.virtual_stages);
  const int group = LargestGroup(c.pipeline, c.micro_batches, c.group_size);
  const int alone = 2 * (c.pipeline - 1) + (virtual_stages - 1) * group + 1;
  const int forwards = c.micro_batches * virtual_stages;
  return static_cast<double>(std::max(0, forwards - alone)) / forwards;
}

absl::Status CheckExchanges(const ModelGraph& graph, const StepConfig& c) {
  const absl::Status dispatch = CheckDispatch(graph, c);
  return dispatch.ok() ? CheckHiddenExchanges(c) : dispatch;
}

absl::Status CheckHiddenExchanges(const StepConfig& c) {
  if (c.exchanges == Exchanges::kWaited) return absl::OkStatus();
  const auto error = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("exchanges=", ExchangesName(c.exchanges), ": ", why));
  };
  if (c.experts == 1) return error("needs experts over several devices; give E too");
  const bool alone = c.scheme == "1f1b" && c.pipeline == 1;
  if (!alone && c.scheme != "interleaved" && c.scheme != kMergedScheme) {
    return error(absl::StrCat(c.scheme, " of P=", c.pipeline,
                              " does not merge micro-batches; 1f1b of P=1, interleaved and ",
                              kMergedScheme, " do"));
  }
  if (c.recompute == Recompute::kFull || c.recompute == Recompute::kBlocks) {
    return error(absl::StrCat("not with recompute=", RecomputeName(c.recompute)));
  }
  if (c.cut == CutRule::kLayers) return error("not with cut=layers, which parts blocks");
  return absl::OkStatus();
}

}  // namespace pipelab
