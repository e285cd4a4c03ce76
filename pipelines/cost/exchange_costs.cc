#include "pipelines/cost/exchange_costs.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/graph/model_slices.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Words>
absl::Status ExchangeError(const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat("slice_exchange: ", words...));
}

// That each attention layer meets one alike in every other stage.
absl::Status CheckLayers(const ModelGraph& graph, const ModelPartition& partition) {
  const LayerSpec* first = nullptr;
  std::vector<int> counts(partition.num_stages());
  for (int stage = 0; stage < partition.num_stages(); ++stage) {
    for (const int i : partition.layers[stage]) {
      const LayerSpec& layer = graph.layers[i];
      if (!layer.split.context_collectives) continue;
      if (layer.attributes.count("kv_heads") == 0) {
        return ExchangeError("layer \"", layer.name, "\": a ", layer.kind,
                             " attends to its own slices");
      }
      ++counts[stage];
      if (first == nullptr) first = &layer;
      if (WholeAttribute(layer, "window") > 0) {
        return ExchangeError("layer \"", layer.name, "\": has a window of ",
                             WholeAttribute(layer, "window"), " tokens, and must see all");
      }
      for (const char* size : {"heads", "kv_heads", "head_size"}) {
        const int64_t own = WholeAttribute(layer, size), other = WholeAttribute(*first, size);
        if (own == other) continue;
        return ExchangeError("layer \"", layer.name, "\": ", size, " is ", own,
                             ", and must be the ", other, " of \"", first->name, "\"");
      }
    }
    if (counts[stage] == counts[0] && counts[stage] > 0) continue;
    return ExchangeError("stage ", stage, " has ", counts[stage], " attention layers, stage 0 ",
                         counts[0], ": each must have as many, and one at least; give a layout");
  }
  return absl::OkStatus();
}

std::vector<int64_t> ShareCounts(const std::vector<ChunkShare>& shares) {
  std::vector<int64_t> counts;
  counts.reserve(shares.size());
  for (const ChunkShare& share : shares) counts.push_back(share.count);
  return counts;
}

}  // namespace

absl::Status AddExchangeCosts(const ModelGraph& graph, const ModelPartition& partition,
                              int64_t micro_batch_size, const StageCostOptions& options,
                              const Program& program, CostTable* table) {
  for (const int64_t length : options.slices) {
    if (length == options.slices[0]) continue;
    return ExchangeError("token slices of ", absl::StrJoin(options.slices, ","),
                         " tokens: must be equal; take a number of slices that divides the tokens");
  }
  PIPELAB_RETURN_IF_ERROR(CheckLayers(graph, partition));
  PIPELAB_ASSIGN_OR_RETURN(
      const std::vector<TokenSlice> slices,
      SlicesOfModel(graph, options.slices,
                    options.tensor.split.scatters_rows() ? options.tensor.split.degree : 1));
  // Passes that exchange alike cost the same.
  std::map<std::tuple<int, int, std::vector<int64_t>, std::vector<int64_t>>, int32_t> known;
  table->exchanges = {};
  for (const PassExchange& pass : program.exchanges) {
    const int stage = pass.action.stage, k = pass.action.slice;
    const auto [it, added] = known.emplace(
        std::make_tuple(stage, k, ShareCounts(pass.given), ShareCounts(pass.received)),
        known.size());
    table->exchanges.of_pass.push_back(it->second);
    if (!added) continue;
    TokenSlice slice = slices[k];
    slice.given = std::get<2>(it->first);
    slice.received = std::get<3>(it->first);
    PIPELAB_ASSIGN_OR_RETURN(StageCost cost, ComputeStageCost(graph, partition, stage,
                                                              micro_batch_size, slice, options));
    table->exchanges.costs.push_back(std::move(cost));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
