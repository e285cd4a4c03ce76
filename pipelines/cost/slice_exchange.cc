#include "pipelines/cost/slice_exchange.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "glog/logging.h"

namespace pipelab {
namespace {

// Layers that attend to earlier tokens.
std::vector<AttentionRow> RowsOfLayers(const ModelGraph& graph, const std::vector<int>& layers,
                                       int64_t degree) {
  std::vector<AttentionRow> rows;
  for (const int i : layers) {
    const LayerSpec& layer = graph.layers[i];
    if (layer.attributes.count("kv_heads") == 0) continue;
    const int64_t heads = WholeAttribute(layer, "heads") / degree;
    const int64_t size = WholeAttribute(layer, "head_size");
    rows.push_back({heads * size, 2 * WholeAttribute(layer, "kv_heads") / degree * size, heads});
  }
  return rows;
}

// A pass of one slice takes the time of another with more or fewer chunks before it, and what its
// messages take longer than its attention.
class StageSpread {
 public:
  StageSpread(const std::vector<AttentionRow>& rows, int64_t tokens, int64_t bytes_of_number,
              const TensorGroup& group, std::vector<StageCost> of_slices)
      : rows_(rows),
        tokens_(tokens),
        bytes_of_number_(bytes_of_number),
        group_(group),
        of_slices_(std::move(of_slices)) {}

  StageCost Of(const SliceExchange& e, int slice) const {
    const StageCost& as = of_slices_[e.chunks];
    const Nanoseconds waits = Exposed(e, false, Attention(e.chunks, &StageCost::forward));
    StageCost cost = of_slices_[slice];
    cost.forward = as.forward + waits;
    cost.recompute = as.recompute + waits;
    cost.backward_input =
        as.backward_input + Exposed(e, true, Attention(e.chunks, &StageCost::backward_input));
    cost.tensor_traffic.forward += AllBytes(e, false);
    cost.tensor_traffic.backward_input += AllBytes(e, true);
    for (Bytes* peak :
         {&cost.memory.forward_peak, &cost.memory.forward_drop_peak, &cost.memory.recompute_peak}) {
      *peak += LargestLayer(e, false);
    }
    for (Bytes* peak : {&cost.memory.backward_peak, &cost.memory.backward_input_peak}) {
      *peak += LargestLayer(e, true);
    }
    return cost;
  }

 private:
  // To a slice's own chunk, which is half masked, and to so many before it.
  Nanoseconds Attention(int chunks, Nanoseconds StageCost::*pass) const {
    const Nanoseconds all = of_slices_.back().*pass - of_slices_.front().*pass;
    const double each =
        static_cast<double>(all.value()) / static_cast<double>(of_slices_.size() - 1);
    return Nanoseconds(std::llround(each * (chunks + 0.5)));
  }
  Bytes BytesOf(const SliceExchange& e, const AttentionRow& row, bool backward) const {
    return ExchangeBytes(e, row, tokens_, bytes_of_number_, backward);
  }
  Bytes AllBytes(const SliceExchange& e, bool backward) const {
    Bytes sum;
    for (const AttentionRow& row : rows_) sum += BytesOf(e, row, backward);
    return sum;
  }
  Bytes LargestLayer(const SliceExchange& e, bool backward) const {
    Bytes most;
    for (const AttentionRow& row : rows_) most = std::max(most, BytesOf(e, row, backward));
    return most;
  }
  // Queries and keys go, and a result comes.
  Nanoseconds Exposed(const SliceExchange& e, bool backward, Nanoseconds attention) const {
    if (e.partners == 0) return Nanoseconds(0);
    const PathCost& path = group_.slice_path;
    const auto layers = static_cast<int64_t>(rows_.size());
    const Nanoseconds messages =
        path.latency * (2 * e.partners * layers) + path.TransferTime(AllBytes(e, backward));
    return std::max(Nanoseconds(0), messages - attention);
  }

  const std::vector<AttentionRow>& rows_;
  const int64_t tokens_, bytes_of_number_;
  const TensorGroup& group_;
  const std::vector<StageCost> of_slices_;
};

}  // namespace

std::vector<SliceExchange> SpreadChunks(const std::vector<int>& chunks) {
  std::vector<SliceExchange> spread(chunks.size());
  std::vector<std::set<size_t>> partners(chunks.size());
  for (size_t d = 0; d < chunks.size(); ++d) spread[d].chunks = chunks[d];
  const auto less = [](const SliceExchange& a, const SliceExchange& b) {
    return a.chunks < b.chunks;
  };
  while (true) {
    const auto least = std::min_element(spread.begin(), spread.end(), less);
    const auto most = std::max_element(spread.begin(), spread.end(), less);
    if (most->chunks - least->chunks < 2) break;
    --most->chunks;
    ++most->given;
    ++least->chunks;
    ++least->received;
    partners[most - spread.begin()].insert(least - spread.begin());
    partners[least - spread.begin()].insert(most - spread.begin());
  }
  for (size_t d = 0; d < chunks.size(); ++d) {
    spread[d].partners = static_cast<int>(partners[d].size());
  }
  return spread;
}

std::vector<SliceExchange> ExchangesAt(int devices, int slices, int first) {
  CHECK(0 <= first && first < slices);
  std::vector<int> chunks;
  for (int d = 0; d < devices; ++d) chunks.push_back(((first - d) % slices + slices) % slices);
  return SpreadChunks(chunks);
}

Bytes ExchangeBytes(const SliceExchange& e, const AttentionRow& row, int64_t tokens,
                    int64_t bytes_of_number, bool backward) {
  const int64_t chunks = e.given + e.received;
  const Bytes sums = Bytes(4) * row.sums * tokens * e.partners;
  const Bytes queries = Bytes(bytes_of_number) * row.query * tokens * e.partners;
  const Bytes keys = Bytes(bytes_of_number) * row.keys * tokens * chunks;
  // Forward: queries and keys against outputs and sums. Backward: queries, the output's gradient,
  // log-sum-exps, the products of output and gradient, and keys, against gradients of queries and
  // keys.
  return backward ? queries * 2 + sums * 2 + keys : queries + std::max(keys, sums);
}

void SpreadAttention(const ModelGraph& graph, const std::vector<std::vector<int>>& layers,
                     int64_t tokens, int64_t bytes_of_number, const TensorGroup& group,
                     CostTable* table) {
  const auto slices = static_cast<int>(table->slices.size());
  std::vector<std::vector<SliceExchange>> exchanges;  // [first device's slice][device]
  for (int first = 0; first < slices; ++first) {
    exchanges.push_back(ExchangesAt(group.slice_devices, slices, first));
  }
  for (size_t s = 0; s < layers.size(); ++s) {
    std::vector<StageCost> of_slices;
    for (const SliceCosts& slice : table->slices) of_slices.push_back(slice.stages[s]);
    const std::vector<AttentionRow> rows = RowsOfLayers(graph, layers[s], group.split.degree);
    const StageSpread spread(rows, tokens, bytes_of_number, group, std::move(of_slices));
    const int device = static_cast<int>(s) % group.slice_devices;
    for (int i = 0; i < slices; ++i) {
      table->slices[i].stages[s] = spread.Of(exchanges[(i + device) % slices][device], i);
    }
  }
}

}  // namespace pipelab
