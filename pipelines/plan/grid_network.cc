#include "pipelines/plan/grid_network.h"

#include <algorithm>

#include "pipelines/cluster/grid_links.h"
#include "pipelines/plan/grid_cut.h"

namespace pipelab {
namespace {

// A ring over all of a group takes on a ring over the program's members as long as it should.
PathCost RingOfMembers(const PathCost& hop, int64_t data, int64_t members) {
  const double of_all = static_cast<double>(data - 1) / static_cast<double>(data);
  const double of_members = static_cast<double>(members - 1) / static_cast<double>(members);
  return {Nanoseconds(hop.latency.value() * (data - 1) / (members - 1)),
          BytesPerSecond(hop.bandwidth.value() * of_members / of_all)};
}

// The largest message, whole.
Bytes LargestEdge(const CostTable& costs) {
  Bytes largest;
  for (const Bytes bytes : costs.edge_bytes) largest = std::max(largest, bytes);
  return largest;
}

// Every device of a tensor-parallel group has all rows of an output, or with sequence parallelism
// its own alone.
bool DividesMessages(const GridConfig& c) {
  return c.tensor > 1 && !c.sequence_parallel && !c.whole_messages;
}

// What a message takes beside the links between its stages. Its send and receive are a call of the
// communication library of their own. Where the devices of a tensor-parallel group send a T-th of
// the rows each, the receivers put them together within their group (Narayanan et al. 2021, section
// 4.1), by one collective more.
Nanoseconds MessageOverhead(const GridModel& model, const GridConfig& c, const CostTable& costs) {
  const Nanoseconds call = CallOverhead(model);
  if (!DividesMessages(c)) return call;
  return call + call +
         RingTime(TensorGroupOf(model, c.split()).hop, c.tensor, Collective::kAllGather,
                  LargestEdge(costs));
}

}  // namespace

int MembersOf(const GridModel& model, const GridConfig& c) {
  return model.fold_data && c.data % 2 == 0 ? 2 : c.data;
}

Nanoseconds CallOverhead(const GridModel& model) {
  const auto& overhead = model.cluster->device.collective_overhead;
  return overhead.has_value() ? overhead->value : Nanoseconds(0);
}

GridLinks::GridLinks(const GridModel& model, const GridConfig& config, const CostTable& costs)
    : model_(model), config_(config), overhead_(MessageOverhead(model, config, costs)) {}

PathCost GridLinks::MessageHop(int from, int to) const {
  const GridConfig& c = config_;
  const int64_t copies = int64_t{c.tensor} * c.data;
  const int64_t sent_parts = DividesMessages(c) ? c.tensor : 1;
  PathCost cost = NeighbourHop(*model_.cluster, from * copies, to * copies, copies);
  cost.latency += overhead_;
  cost.bandwidth = BytesPerSecond(cost.bandwidth.value() * static_cast<double>(sent_parts));
  return cost;
}

PathCost GridLinks::MemberHop(int members) const {
  const GridConfig& c = config_;
  if (c.data == 1) return {};
  // Gradients and weights travel in the products' numbers; tables count 4 bytes each.
  PathCost ring = RingOfMembers(RingHop(*model_.cluster, {c.data, c.tensor}), c.data, members);
  ring.bandwidth =
      BytesPerSecond(ring.bandwidth.value() * 4 / static_cast<double>(BytesOf(model_.type)));
  return ring;
}

Network GridLinks::NetworkOf(int members) const {
  Network network = UnconnectedNetwork(config_.pipeline * members);
  const PathCost ring = MemberHop(members);
  for (int p = 0; p < config_.pipeline; ++p) {
    for (int q = 0; q < config_.pipeline; ++q) {
      const PathCost cost = p == q ? ring : MessageHop(p, q);
      for (int i = 0; i < members; ++i) {
        for (int j = 0; j < members; ++j) {
          if (p == q && i == j) continue;
          network.RouteOf(p * members + i, q * members + j).uses = {
              static_cast<int>(network.links.size())};
          network.links.push_back({"", cost.latency, cost.bandwidth});
        }
      }
    }
  }
  return network;
}

}  // namespace pipelab
