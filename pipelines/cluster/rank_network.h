// The one price of moving bytes on a cluster: which links the messages and collectives of a program
// are on, and what they take there, from the cluster, the placement of ranks and the data type.
//
//   // Pipeline x data x tensor parallelism: rank = (p D + d) T + t, or RankOrder's other one. With
//   // context parallelism D counts its C devices too: d = d' C + c.
//   RankGrid grid;
//   grid.pipeline = 8;  grid.data = 4;  grid.tensor = 2;  grid.members = 2;
//   RankNetwork ranks(&cluster, grid);
//   costs.network = ranks.Of(program);
//   ranks.Message(0, 1).TransferTime(bytes);      // undisturbed, between pipeline devices 0 and 1
//
// The program may have fewer devices than there are ranks: one for a tensor-parallel group, whose
// members do the same at the same time, and `members` for the D data-parallel copies of a pipeline
// device. A route is that of one rank, and its loads count the others: where four ranks leave a
// node over one card at one time, a byte of the rank's message is a load of four on the card.
// Messages, rings and other pipeline devices that are on a link at one time then share it
// (cluster/network.h).
//
// Copies are taken to lie alike: the links are those of the first one, also where blocks of ranks
// straddle nodes.
//
// How transfers of a level share it (Sharing, cluster.h): kPair has a link for each ordered pair of
// ranks, kDevice a port out and a port in for each rank, kUnit one of each for the units of the
// level below, and kMesh and kTorus a link for each hop. `through` is one more link for all
// transfers of a unit of the level.
//
// Rings. The collectives of a library run over all ranks that the program's devices stand for, in
// ascending order: those of a set that shares state, of one place in each set, or of all copies.
// Between units a ring leaves each unit once. Where every rank has a port of its own there
// (kDevice), the library runs as many rings at once as the group has ranks in a unit, and each of
// their ports carries its part: 16 ranks on two nodes of eight cards use all eight. Rings of a
// level may have their own connection (ClusterLevel::ring). A step of a ring takes the latency of
// its slowest hop; the call of the library, DeviceSpec::collective_overhead, is paid once.
//
// Rings carry numbers of `type`, for each 4 bytes of a cost table's gradients and weights: kFp32 is
// their bytes as they are (StateNumbers, pipelines/cost/state_numbers.h).
#ifndef PIPELAB_PIPELINES_CLUSTER_RANK_NETWORK_H_
#define PIPELAB_PIPELINES_CLUSTER_RANK_NETWORK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/graph/collective.h"  // IWYU pragma: export
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/network.h"
#include "pipelines/ir/program.h"

namespace pipelab {

// Which ranks lie side by side: the name's first ones innermost, as in Megatron-LM.
enum class RankOrder : uint8_t {
  kTensorDataPipeline,  // rank = (p D + d) T + t: replicas share a node, pipelines cross nodes
  kTensorPipelineData,  // rank = (d P + p) T + t: a pipeline has its nodes, sums cross them
  // As the first, with pipeline device P - 1 - p beside p: both hold a bidirectional scheme's
  // copies of a stage, whose sums then stay within a node.
  kTensorDataMirrored,
};

struct RankGrid {
  int pipeline = 1;
  int64_t tensor = 1, data = 1;
  RankOrder order = RankOrder::kTensorDataPipeline;
  // C, of `data`: devices with parts of the same samples' tokens, which lie side by side, in groups
  // of T. With tp-pp-dp each pipeline device has them together.
  int64_t context = 1;
  // So many ranks of `data` that follow one another have different experts, and sum those with the
  // ranks that have the same.
  int64_t experts = 1;
  // Ranks of `data` that share state, which lie side by side, in sets (Program::shards). 0: all.
  int64_t shards = 0;
  int members = 1;  // devices of the program for each pipeline device
  // So many of these that follow one another stand for a set; divides the shards. 0: all.
  int set_members = 0;
  // The ranks of a tensor-parallel group send a part of a message each
  // (CostTable::divided_messages), and the receivers gather it within their group: by one more
  // call, of at most so many bytes.
  bool divided_messages = false;
  Bytes largest_message;
  // Messages are in calls (Program::calls), whose end has the gathers (MessageGather).
  bool message_calls = false;
  // The numbers that rings carry.
  NumberType type = NumberType::kFp32;

  int64_t ranks() const { return pipeline * tensor * data; }
  int64_t copies() const { return tensor * data; }  // ranks of a pipeline device
  int64_t together() const { return tensor * context; }
  int64_t sharing() const { return shards == 0 ? data : shards; }
  int sharing_members() const { return set_members == 0 ? members : set_members; }
  // The first rank of a tensor-parallel group.
  int64_t rank(int64_t p, int64_t d = 0) const;
  // Ranks of a pipeline device among so many consecutive ranks, from a multiple of that.
  int64_t copies_within(int64_t ranks) const;
};

// Ranks first, first + stride, ...: `size` of them.
struct RankGroup {
  int64_t size = 1, stride = 1;
};

class RankNetwork {
 public:
  // The grid is within the cluster: CHECKed.
  RankNetwork(const ClusterSpec* cluster, const RankGrid& grid);

  // Links and routes of the program's messages, and a ring for each set of devices that has a
  // collective. The program's device of pipeline device p and member i is p * members + i.
  Network Of(const Program& program) const;
  // The routes of all pairs of devices.
  Network OfAllPairs() const;

  // Undisturbed. Between two different pipeline devices, from each rank of one to its like.
  PathCost Message(int from, int to) const;
  // A step of the ring of the first `copies` of a pipeline device, which share what is sharded; 0:
  // of all.
  PathCost DataRing(int pipeline_device, int64_t copies = 0) const;
  // The same of those that have the same experts.
  PathCost ExpertRing(int pipeline_device, int64_t copies = 0) const;
  // A step of the ring of a pipeline's devices.
  PathCost PipelineRing() const;
  // What a call of the communication library takes besides its links.
  Nanoseconds CallOverhead() const;
  // Within a tensor-parallel group, by the bytes of what is gathered or sent to all. A call that is
  // no all-reduce takes half of the overhead, as in the layers' passes (cost/layer_times.h).
  PathCost MessageGather() const;
  Nanoseconds SmallBroadcast() const;

 private:
  class Builder;
  Nanoseconds MessageOverhead() const;
  PathCost RingOfCopies(int pipeline_device, int64_t copies, int64_t stride) const;

  const ClusterSpec* cluster_;
  RankGrid grid_;
  Nanoseconds message_overhead_;
};

// The links between the first `num_devices` devices, each a rank of its own. InvalidArgument for
// fewer than one or more than there are. The cluster is valid: CHECKed.
absl::StatusOr<Network> MakeNetwork(const ClusterSpec& cluster, int num_devices);

// One step of a ring of such ranks, where all ranks of the cluster are in groups like it: its
// latency, and the bandwidth that a rank has. Nothing is sent in a group of one: bandwidth 0
// (infinite). The group is within the cluster: CHECKed.
PathCost RingStep(const ClusterSpec& cluster, RankGroup group);

// Tokens that each choose `chosen` different experts, all equally likely. Experts are in `nodes`
// consecutive groups, and a token's lie in `most_nodes` of them (0: no such limit).
struct RoutedRows {
  int64_t experts = 0, chosen = 0;
  int64_t nodes = 0, most_nodes = 0;

  // The chance that a token chooses one or more of `held` consecutive experts, which begin at a
  // multiple of `held`: without the limit 1 - C(experts - held, chosen) / C(experts, chosen).
  double Reaches(int64_t held) const;
};

// All of these ranks, ascending, send a part to each other one, in so many groups like it at one
// time: the latency of the farthest, and bytes a second of what a rank has for all, itself too. The
// slowest link rules, and all transfers run at once (DeepEP's of 16 to 64 H800 get 43 to 47 of 50
// GB/s of a network card for what crosses it).
//
// With `rows` a token goes to each unit of a level (a node) once, to the rank that has the sender's
// place there, and on to each unit within, down to devices (DeepSeek-AI, "DeepSeek-V3 technical
// report", 2024, section 3.2.2; way back: sums by the same ways). Bytes are still those of all
// chosen rows: the path is so much wider. Latencies of the levels add up. The units of a level are
// taken to have equal parts of the ranks.
PathCost ExchangePath(const ClusterSpec& cluster, const std::vector<int64_t>& ranks, int64_t groups,
                      const absl::optional<RoutedRows>& rows = absl::nullopt);

// `bytes` in all over d ranks by steps of such a ring: 2 (d - 1) of an all-reduce, d - 1 of the
// others, bytes / d in each (Thakur, Rabenseifner and Gropp 2005, section 4).
Nanoseconds RingTime(const PathCost& step, int64_t d, Collective kind, Bytes bytes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_RANK_NETWORK_H_
