#include "pipelines/cost/layer_times.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/exchange_overlap.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The time of the calls, without their transfers.
Nanoseconds OverheadOf(const DeviceSpec& device, const std::vector<TensorCollective>& collectives) {
  Nanoseconds sum;
  if (!device.collective_overhead.has_value()) return sum;
  const Nanoseconds whole = device.collective_overhead->value;
  for (const TensorCollective& c : collectives) {
    if (c.kind == Collective::kHop) continue;
    const bool half = c.kind == Collective::kReduceScatter || c.kind == Collective::kAllGather;
    sum += half ? Nanoseconds(whole.value() / 2) : whole;
  }
  return sum;
}

// What is left of `collectives` that go in parts beside those of the products which take or make
// their rows. One part is multiplied before anything has come, or after all has gone.
Nanoseconds Exposed(Nanoseconds collectives, Nanoseconds products, int64_t parts) {
  return std::max(Nanoseconds(0), collectives + Nanoseconds(products.value() / parts) - products);
}

// Rows that are gathered and scattered for products; none where experts' are exchanged.
bool MovesRows(const std::vector<TensorCollective>& collectives) {
  return std::all_of(collectives.begin(), collectives.end(), [](const TensorCollective& c) {
    return c.kind == Collective::kReduceScatter || c.kind == Collective::kAllGather;
  });
}

// `context`: those among the devices with the other tokens. `beside`: the collectives run beside
// the operations, so that the longer of the two counts.
absl::StatusOr<Nanoseconds> PassTime(const LayerSpec& layer, const Machine& machine,
                                     const std::vector<Operation>& operations,
                                     const TensorGroup& group,
                                     const std::vector<TensorCollective>& collectives,
                                     const std::vector<TensorCollective>& context,
                                     bool beside = false) {
  const int64_t count = static_cast<int64_t>(collectives.size() + context.size());
  const auto named = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("layer \"", layer.name, "\": ", status.message()));
  };
  const bool overlapped = group.overlapped && MovesRows(collectives);
  Nanoseconds attention, products;  // what hops and what rows run beside
  for (const Operation& o : operations) {
    const bool beside_hops = o.kind == OperationKind::kAttention && !context.empty();
    const bool beside_rows = o.kind == OperationKind::kMatmul && overlapped;
    if (!beside_hops && !beside_rows) continue;
    const absl::StatusOr<Nanoseconds> time = OperationTime(machine.device, machine.type, o);
    if (!time.ok()) return named(time.status());
    (beside_hops ? attention : products) += *time;
  }
  Nanoseconds rows =
      group.TimeOf(collectives, machine.type) + OverheadOf(machine.device, collectives);
  if (overlapped) rows = Exposed(rows, products, group.split.degree);
  const Nanoseconds exchange = rows +
                               group.ContextGroup().TimeOf(context, machine.type, attention) +
                               OverheadOf(machine.device, context);
  absl::StatusOr<Nanoseconds> time =
      RunTime(machine.device, machine.type, operations, count, beside ? Nanoseconds(0) : exchange);
  if (time.ok()) return beside ? std::max(*time, exchange) : *time;
  return named(time.status());
}

}  // namespace

Nanoseconds TensorGroup::TimeOf(const std::vector<TensorCollective>& collectives, NumberType type,
                                Nanoseconds attention) const {
  Nanoseconds sum;
  for (const TensorCollective& c : collectives) {
    // Bytes are counted with 4 a number.
    const Bytes bytes(c.bytes.value() / 4 * BytesOf(type));
    if (c.kind == Collective::kHop) {
      const Nanoseconds beside(std::llround(c.beside * static_cast<double>(attention.value())));
      sum += std::max(Nanoseconds(0), hop.latency + hop.TransferTime(bytes) - beside);
    } else if (c.kind == Collective::kAllToAll) {
      sum += expert_path.latency + expert_path.TransferTime(bytes);
    } else {
      sum += RingTime(hop, split.degree, c.kind, bytes);
    }
  }
  return sum;
}

Bytes TensorGroup::TrafficOf(const std::vector<TensorCollective>& collectives,
                             NumberType type) const {
  Bytes sum;
  for (const TensorCollective& c : collectives) {
    const Bytes bytes(c.bytes.value() / 4 * BytesOf(type));
    sum += c.kind == Collective::kHop
               ? bytes
               : RingTraffic(bytes, c.kind == Collective::kAllToAll ? split.experts : split.degree,
                             c.kind == Collective::kAllReduce);
  }
  return sum;
}

StageCost::TensorTraffic TensorGroup::TrafficOf(const TensorShare& share, NumberType type) const {
  const TensorGroup context = ContextGroup();
  return {
      TrafficOf(share.forward, type) + context.TrafficOf(share.context.forward, type),
      TrafficOf(share.backward_input, type) + context.TrafficOf(share.context.backward_input, type),
      TrafficOf(share.backward_weight, type) +
          context.TrafficOf(share.context.backward_weight, type),
      Bytes(0)};
}

absl::StatusOr<LayerTimes> TimesOf(const LayerSpec& layer, const Machine& machine, int64_t samples,
                                   TokenSlice slice, const TensorGroup& group) {
  const TensorShare share = ShareOf(layer, samples, slice, group.split);
  const LayerOperations& operations = share.operations;
  LayerTimes times;
  PIPELAB_ASSIGN_OR_RETURN(times.forward, PassTime(layer, machine, operations.forward, group,
                                                   share.forward, share.context.forward));
  PIPELAB_ASSIGN_OR_RETURN(times.backward_input,
                           PassTime(layer, machine, operations.backward_input, group,
                                    share.backward_input, share.context.backward_input));
  PIPELAB_ASSIGN_OR_RETURN(
      times.backward_weight,
      PassTime(layer, machine, operations.backward_weight, group, share.backward_weight,
               share.context.backward_weight, /*beside=*/!machine.device.own_kernels));
  times.traffic = group.TrafficOf(share, machine.type);
  std::vector<TensorCollective> exchanges;
  for (const TensorCollective& c : share.forward) {
    if (c.kind == Collective::kAllToAll) exchanges.push_back(c);
  }
  times.exchange = group.TimeOf(exchanges, machine.type) + OverheadOf(machine.device, exchanges);
  return times;
}

LayerTimes WithHiddenExchanges(LayerTimes times, const LayerTimes& before,
                               const TensorGroup& group) {
  const Nanoseconds both = times.exchange;
  MergedBlock block;
  block.exchange = Nanoseconds(both.value() / 2);
  block.attention = {before.forward, before.backward_input, before.backward_weight};
  block.experts = {times.forward - both, times.backward_input - both, times.backward_weight};
  const Nanoseconds hidden = HiddenExchanges(block, group.delayed_weights);
  times.merged_saving = Nanoseconds(hidden.value() / 2);
  const Nanoseconds of_pass(
      static_cast<int64_t>(static_cast<double>(hidden.value()) / 2 * group.merged));
  times.forward -= of_pass;
  times.backward_input -= of_pass;
  return times;
}

absl::StatusOr<LayerTimes> TimesInGraph(const ModelGraph& graph, int index, const Machine& machine,
                                        int64_t samples, TokenSlice slice,
                                        const TensorGroup& group) {
  const LayerSpec& layer = graph.layers[index];
  PIPELAB_ASSIGN_OR_RETURN(const LayerTimes times, TimesOf(layer, machine, samples, slice, group));
  const bool merges = group.merged > 0 || group.merges;
  if (!merges || layer.inputs.empty() || times.exchange == Nanoseconds(0)) return times;
  PIPELAB_ASSIGN_OR_RETURN(const LayerTimes before,
                           TimesOf(graph.layers[layer.inputs[0]], machine, samples, slice, group));
  return WithHiddenExchanges(times, before, group);
}

Nanoseconds MeasuredTime(const std::vector<Operation>& pass) {
  Nanoseconds sum;
  for (const Operation& o : pass) {
    if (o.kind == OperationKind::kMeasured) sum += o.time;
  }
  return sum;
}

absl::StatusOr<Nanoseconds> StepTime(const Machine& machine, int64_t parameters, int64_t numbers) {
  if (parameters == 0) return Nanoseconds(0);
  // Weights and moments are kept with 4 bytes whatever the products' type.
  return OperationTime(machine.device, NumberType::kFp32,
                       MemoryOperation(OperationKind::kOptimizer, parameters * numbers));
}

}  // namespace pipelab
