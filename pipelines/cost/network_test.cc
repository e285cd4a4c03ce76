#include "pipelines/cluster/network.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cost/collectives.h"
#include "pipelines/cost/cost_table.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

const Link kFast{"", Nanoseconds(2), BytesPerSecond(100e9)};
const Link kSlow{"", Nanoseconds(50), BytesPerSecond(10e9)};

TEST(Network, PathsOfTheReadyMadeOnes) {
  const Network own = PrivateLinks(3, kFast);
  EXPECT_EQ(own.links.size(), 6u);
  EXPECT_EQ(CostOfPath(own, 0, 2).latency, Nanoseconds(2));
  EXPECT_EQ(CostOfPath(own, 0, 2).bandwidth, BytesPerSecond(100e9));
  const Network ports = SharedPorts(3, kSlow, kFast);
  EXPECT_EQ(ports.RouteOf(0, 1).uses, (std::vector<LinkUse>{0, 3}));
  EXPECT_EQ(ports.RouteOf(2, 1).uses, (std::vector<LinkUse>{4, 3}));
  EXPECT_EQ(CostOfPath(ports, 2, 1).latency, Nanoseconds(52));
  EXPECT_EQ(CostOfPath(ports, 2, 1).bandwidth, BytesPerSecond(10e9));
  // Devices 0 and 1 are a node, 2 and 3 the other: six links are private to pairs that nothing
  // uses, and both ways out of node 0 take the same uplink.
  const Network nodes = SharedUplinks(4, 2, kFast, kSlow);
  EXPECT_EQ(CostOfPath(nodes, 0, 1).latency, Nanoseconds(2));
  EXPECT_EQ(CostOfPath(nodes, 0, 2).latency, Nanoseconds(100));
  EXPECT_EQ(nodes.RouteOf(0, 3).uses, nodes.RouteOf(1, 2).uses);
  EXPECT_FALSE(nodes.RouteOf(0, 3).uses == nodes.RouteOf(3, 0).uses);
  for (const Network& n : {own, ports, nodes}) EXPECT_THAT(CheckNetwork(n), IsOk());
}

TEST(Network, RefusesWhatCannotBe) {
  const auto error = [](void (*change)(Network*)) {
    Network network = PrivateLinks(2, kFast);
    change(&network);
    return std::string(CheckNetwork(network).message());
  };
  EXPECT_THAT(error([](Network* n) { n->routes.pop_back(); }), HasSubstr("3 routes"));
  EXPECT_THAT(error([](Network* n) { n->RouteOf(0, 1).uses = {7}; }),
              HasSubstr("device 0 to device 1 has an unknown link: 7"));
  EXPECT_THAT(error([](Network* n) {
                n->RouteOf(1, 0).uses = {1, 0, 1};
              }),
              HasSubstr("device 1 to device 0 takes a link twice: 1"));
  EXPECT_THAT(error([](Network* n) {
                n->rings[{0, 1}].uses = {0, 1, {0, 2.0}};
              }),
              HasSubstr("the ring of devices 0,1 takes a link twice: 0"));
  EXPECT_THAT(error([](Network* n) {
                n->RouteOf(1, 0).uses = {{1, -0.5}};
              }),
              HasSubstr("device 1 to device 0 uses link 1 (1 to 0) with a load that is not above"));
  EXPECT_THAT(error([](Network* n) { n->RouteOf(0, 1).latency = Nanoseconds(-1); }),
              HasSubstr("device 0 to device 1 has a negative latency"));
  EXPECT_THAT(error([](Network* n) {
                n->rings[{1, 0}].ranks = 2;
              }),
              HasSubstr("the ring of devices 1,0 must have devices from 0 to 1, each above"));
  EXPECT_THAT(error([](Network* n) {
                n->rings[{0, 1}].ranks = 0;
              }),
              HasSubstr("the ring of devices 0,1 has 0 ranks"));
  EXPECT_THAT(error([](Network* n) {
                n->rings[{0, 1}].uses = {2};
              }),
              HasSubstr("the ring of devices 0,1 has an unknown link: 2"));
  EXPECT_THAT(error([](Network* n) { n->rings[{1}].overhead = Nanoseconds(-1); }),
              HasSubstr("the ring of devices 1 has a negative latency"));
  EXPECT_THAT(error([](Network* n) { n->links[1].bandwidth = BytesPerSecond(-1); }),
              HasSubstr("link 1 (1 to 0)"));
  EXPECT_THAT(error([](Network* n) { n->links[0].bandwidth = BytesPerSecond(0.0 / 0.0); }),
              HasSubstr("link 0"));
  EXPECT_THAT(error([](Network* n) { n->links[0].latency = Nanoseconds(-1); }),
              HasSubstr("link 0"));
}

TEST(Network, LoadsDivideABandwidth) {
  Network network = UnconnectedNetwork(3);
  network.links = {kFast, kSlow};
  network.RouteOf(0, 1) = {Nanoseconds(100), {{0, 40.0}, 1}};
  EXPECT_EQ(CostOfPath(network, 0, 1).latency, Nanoseconds(152));
  EXPECT_EQ(CostOfPath(network, 0, 1).bandwidth, BytesPerSecond(2.5e9));
  network.RouteOf(0, 1).uses = {0, {1, 0.05}};  // an eighth of each of two messages in five
  EXPECT_EQ(CostOfPath(network, 0, 1).bandwidth, BytesPerSecond(100e9));
  EXPECT_EQ(CostOfPath(network, 2, 1).latency, Nanoseconds(0));  // no links: no time
  EXPECT_EQ(CostOfPath(network, 2, 1).TransferTime(Bytes(1000)), Nanoseconds(0));
  EXPECT_THAT(CheckNetwork(network), IsOk());
}

TEST(Network, TimesDoNotOverflow) {
  EXPECT_EQ(TransferTime(10, BytesPerSecond(1)), Nanoseconds(int64_t{10'000'000'000}));
  EXPECT_EQ(TransferTime(1e300, BytesPerSecond(1)), Nanoseconds(int64_t{1} << 62));
}

// 2 (d - 1) latency + 2 (d - 1) / d bytes / bandwidth; half of it for each half.
TEST(CollectiveTime, HasTheClosedForm) {
  CostTable costs;
  costs.hop_latency = Nanoseconds(7);
  costs.bandwidth = BytesPerSecond(1e9);
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllReduce, {3}, Bytes(1000)), Nanoseconds(0));
  std::vector<int> devices{0};
  for (int d = 2; d <= 8; ++d) {
    devices.push_back(d - 1);
    const Bytes bytes = Bytes(840) * d;
    const Nanoseconds half((d - 1) * (7 + 840));
    EXPECT_EQ(CollectiveTime(costs, Collective::kAllReduce, devices, bytes), half * 2);
    EXPECT_EQ(CollectiveTime(costs, Collective::kReduceScatter, devices, bytes), half);
    EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, devices, bytes), half);
  }
  costs.bandwidth = BytesPerSecond(0);  // infinite
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllReduce, {0, 1}, Bytes(1000)), Nanoseconds(14));
}

TEST(CollectiveTime, SharesTheLinksOfItsOwnRing) {
  CostTable costs;
  costs.hop_latency = Nanoseconds(123456);  // not looked at: the network rules
  const Link port{"", Nanoseconds(0), BytesPerSecond(1e9)};
  // Ports of one's own are as good as links of one's own.
  costs.network = SharedPorts(4, port, port);
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 1, 2, 3}, Bytes(4000)),
            Nanoseconds(3000));
  // One bus for all: four transfers at a time have a quarter each.
  for (Route& route : costs.network.routes) {
    if (!route.uses.empty()) route.uses = {0};
  }
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 1, 2, 3}, Bytes(4000)),
            Nanoseconds(12000));
  // The slowest hop rules.
  costs.network = SharedPorts(4, port, port);
  costs.network.links[5].bandwidth = BytesPerSecond(0.25e9);  // into device 2
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 1, 2, 3}, Bytes(4000)),
            Nanoseconds(12000));
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 1, 3}, Bytes(3000)),
            Nanoseconds(2000));
  // Two nodes of two: ring order 0 1 2 3 leaves each node once, 0 2 1 3 twice.
  costs.network = SharedUplinks(4, 2, {"", Nanoseconds(0), BytesPerSecond(0)}, port);
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 1, 2, 3}, Bytes(4000)),
            Nanoseconds(3000));
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 2, 1, 3}, Bytes(4000)),
            Nanoseconds(6000));
}

// Two members of the program stand for 64 ranks, eight of which share a card.
TEST(CollectiveTime, TakesTheNetworksRing) {
  CostTable costs;
  costs.network = PrivateLinks(3, {"", Nanoseconds(0), BytesPerSecond(1e9)});
  costs.network.links.push_back({"card", Nanoseconds(999), BytesPerSecond(4e9)});
  RingRoute& ring = costs.network.rings[{0, 2}];
  ring.ranks = 64;
  ring.step_latency = Nanoseconds(3);
  ring.overhead = Nanoseconds(100);
  ring.uses = {{static_cast<int>(costs.network.links.size()) - 1, 8.0}};  // 2 ns a byte
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 2}, Bytes(6400)),
            Nanoseconds(100 + 63 * 3 + 6300 * 2));
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllReduce, {2, 0}, Bytes(6400)),
            Nanoseconds(100 + 126 * 3 + 2 * 6300 * 2));
  ring.all_reduce = 4;
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllReduce, {2, 0}, Bytes(6400)),
            Nanoseconds(100 + 126 * 3 + 2 * 6300 * 2 / 4));
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 1}, Bytes(6400)), Nanoseconds(3200));
  const CollectiveCost cost =
      CostOfCollective(costs, Collective::kReduceScatter, {0, 2}, Bytes(6400));
  EXPECT_EQ(cost.latency, Nanoseconds(100 + 63 * 3));
  EXPECT_EQ(cost.sent, 6300);
  ring.ranks = 1;
  EXPECT_EQ(CollectiveTime(costs, Collective::kAllGather, {0, 2}, Bytes(6400)), Nanoseconds(0));
}

}  // namespace
}  // namespace pipelab
