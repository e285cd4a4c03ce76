// Shared links: timelines worked out by hand, and a second fluid model that shares nothing with
// the first.
#include "pipelines/sim/transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

struct Sent {
  int from = 0, to = 0;
  int64_t bytes = 0, time = 0;
  int ring = -1;  // in the place of from and to
};

using Rings = std::vector<std::vector<int>>;

std::vector<LinkUse> UsesOf(const Network& network, const Rings& rings, const Sent& sent) {
  if (sent.ring < 0) return network.RouteOf(sent.from, sent.to).uses;
  return RingOf(network, rings[sent.ring]).uses;
}

// A link of `rate` bytes a nanosecond.
Link LinkOf(double rate, int64_t latency = 0) {
  return {"", Nanoseconds(latency), BytesPerSecond(rate * 1e9)};
}

Network NetworkOf(int devices, std::vector<Link> links) {
  Network network = UnconnectedNetwork(devices);
  network.links = std::move(links);
  return network;
}

// [message] When each arrives. `sent` is in the order of time, each ring once at most.
std::vector<int64_t> ArrivalsOf(const Network& network, const std::vector<Sent>& sent,
                                const Rings& rings = {}) {
  Program program;
  program.schedule.placement.num_devices = network.num_devices;
  std::vector<size_t> of_message, of_ring(rings.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    const Sent& s = sent[i];
    if (s.ring >= 0) {
      of_ring[s.ring] = i;
      continue;
    }
    of_message.push_back(i);
    Message m;
    m.from_device = static_cast<int16_t>(s.from);
    m.to_device = static_cast<int16_t>(s.to);
    program.messages.push_back(m);
  }
  CostTable costs;
  costs.network = network;
  Transfers transfers(program, costs, rings);
  std::vector<int64_t> arrival(sent.size(), -7);
  int32_t messages = 0;
  for (size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].ring < 0) {
      arrival[i] = transfers.Send(messages++, sent[i].bytes, sent[i].time).arrival;
    } else if (transfers.IsShared(sent[i].ring)) {
      arrival[i] = Arrival::kUnknown;
      transfers.Begin(sent[i].ring, static_cast<double>(sent[i].bytes), sent[i].time);
    } else {
      const std::vector<LinkUse> uses = UsesOf(network, rings, sent[i]);
      arrival[i] =
          sent[i].time +
          TransferTime(static_cast<double>(sent[i].bytes), BandwidthOf(network, uses)).value();
    }
  }
  std::vector<Arrival> arrivals;
  while (transfers.pending()) transfers.Advance(&arrivals);
  for (const Arrival& a : arrivals) {
    const size_t i = a.ring >= 0 ? of_ring[a.ring] : of_message[a.message];
    EXPECT_EQ(arrival[i], Arrival::kUnknown) << "arrives twice";
    EXPECT_GE(a.begin, sent[i].time);
    arrival[i] = a.arrival;
  }
  return arrival;
}

// Devices 0 and 1 each send to device 2 through one port.
Network OnePort(double rate, int64_t latency = 0) {
  Network network = NetworkOf(3, {LinkOf(rate, latency)});
  network.RouteOf(0, 2).uses = network.RouteOf(1, 2).uses = {0};
  return network;
}

TEST(Transfers, TwoEqualOnesTakeTwiceAsLong) {
  EXPECT_THAT(ArrivalsOf(OnePort(1, 5), {{0, 2, 100, 0}, {1, 2, 100, 0}}), ElementsAre(205, 205));
  // Alone: as on a link of its own.
  EXPECT_THAT(ArrivalsOf(OnePort(1, 5), {{0, 2, 100, 0}, {1, 2, 100, 100}}), ElementsAre(105, 205));
  EXPECT_THAT(ArrivalsOf(OnePort(1, 5), {{0, 2, 100, 7}}), ElementsAre(112));
}

// An edge's latency delays its own messages, those of its gradients by their own, and no transfer.
TEST(Transfers, EdgesHaveLatenciesOfTheirOwn) {
  for (const bool shared : {false, true}) {
    Network network = shared ? OnePort(1, 5) : NetworkOf(3, {LinkOf(1, 5), LinkOf(1, 5)});
    if (!shared) {
      network.RouteOf(0, 2).uses = {0};
      network.RouteOf(1, 2).uses = {1};
    }
    Program program;
    program.schedule.placement.num_devices = 3;
    for (const auto& [from, edge, gradient] :
         {std::make_tuple(0, 0, false), {0, 1, false}, {0, 1, true}, {1, 1, true}}) {
      Message m;
      m.from_device = static_cast<int16_t>(from);
      m.to_device = 2;
      m.edge = edge;
      m.gradient = gradient;
      program.messages.push_back(m);
    }
    CostTable costs;
    costs.network = network;
    costs.edge_latency = {{Nanoseconds(0), Nanoseconds(0)}, {Nanoseconds(1000), Nanoseconds(30)}};
    Transfers transfers(program, costs);
    std::vector<int64_t> arrival(4);
    std::vector<Arrival> arrivals;
    for (int32_t m = 0; m < 4; ++m) {
      const Arrival a = transfers.Send(m, 100, m == 3 ? 400 : 0);
      if (a.arrival == Arrival::kUnknown) continue;
      arrival[m] = a.arrival;
    }
    while (transfers.pending()) transfers.Advance(&arrivals);
    for (const Arrival& a : arrivals) arrival[a.message] = a.arrival;
    EXPECT_THAT(arrival, ElementsAre(105, 205 + 1000, 305 + 30, 505 + 30)) << shared;
  }
}

TEST(Transfers, ALateOneSlowsTheEarlyOne) {
  // At 50 the first has 50 left and takes 100 for them; then the second has 50 left.
  EXPECT_THAT(ArrivalsOf(OnePort(1), {{0, 2, 100, 0}, {1, 2, 100, 50}}), ElementsAre(150, 200));
}

TEST(Transfers, AShortOneGivesBackItsShare) {
  EXPECT_THAT(ArrivalsOf(OnePort(2), {{0, 2, 300, 0}, {1, 2, 100, 0}}), ElementsAre(200, 100));
}

TEST(Transfers, ThreeOnTwoLinks) {
  // A on link 0 (1 byte/ns), B on both, C on link 1 (2 bytes/ns). A and B have 0.5 each, so C has
  // 1.5. At 100 A is over: B and C have 1 each. At 150 B is over: C has 2 for its last 50.
  Network network = NetworkOf(6, {LinkOf(1, 10), LinkOf(2, 1000)});
  network.RouteOf(0, 3).uses = {0};
  network.RouteOf(1, 4).uses = {0, 1};
  network.RouteOf(2, 5).uses = {1};
  EXPECT_THAT(ArrivalsOf(network, {{0, 3, 50, 0}, {1, 4, 100, 0}, {2, 5, 250, 0}}),
              ElementsAre(100 + 10, 150 + 1010, 175 + 1000));
}

TEST(Transfers, MessagesOfAPairFollowOneAnother) {
  // Both messages of device 0 are there at 0; they are one transfer at a time, so device 1 has
  // half of the port and not a third.
  EXPECT_THAT(ArrivalsOf(OnePort(1), {{0, 2, 100, 0}, {0, 2, 100, 0}, {1, 2, 150, 0}}),
              ElementsAre(200, 350, 300));
}

TEST(Transfers, TakeNoTimeWithoutBytesOrLimits) {
  EXPECT_THAT(ArrivalsOf(OnePort(1, 3), {{0, 2, 0, 9}, {0, 2, 0, 9}, {1, 2, 10, 9}}),
              ElementsAre(12, 12, 22));
  EXPECT_THAT(ArrivalsOf(OnePort(0, 3), {{0, 2, 1 << 30, 9}, {1, 2, 10, 9}}), ElementsAre(12, 12));
  Network nothing = NetworkOf(2, {});
  EXPECT_THAT(ArrivalsOf(nothing, {{0, 1, 100, 4}}), ElementsAre(4));
}

TEST(Transfers, EachDirectionIsALinkOfItsOwn) {
  const Network ports = SharedPorts(3, LinkOf(1), LinkOf(1));
  EXPECT_THAT(ArrivalsOf(ports, {{0, 1, 100, 0}, {1, 0, 100, 0}}), ElementsAre(100, 100));
  // Out of device 0 share; so do those into device 2.
  EXPECT_THAT(ArrivalsOf(ports, {{0, 1, 100, 0}, {0, 2, 100, 0}}), ElementsAre(200, 200));
  // The chain of ports 1 -> 2 <- 0 -> 1: all three share in pairs.
  EXPECT_THAT(ArrivalsOf(ports, {{0, 1, 100, 0}, {0, 2, 100, 0}, {1, 2, 100, 0}}),
              ElementsAre(200, 200, 200));
}

// Four ranks stand behind device 0 and send through one port of 4 bytes/ns; device 1 stands for
// one.
TEST(Transfers, LoadsAreBytesOnTheLink) {
  Network port = OnePort(4);
  port.RouteOf(0, 2).uses = {{0, 4.0}};
  EXPECT_THAT(ArrivalsOf(port, {{0, 2, 100, 0}}), ElementsAre(100));
  EXPECT_THAT(ArrivalsOf(port, {{1, 2, 100, 0}}), ElementsAre(25));
  // Equal rates r: 4 r + r = 4. At 125 the second is over; the first has 1 for the rest.
  EXPECT_THAT(ArrivalsOf(port, {{0, 2, 200, 0}, {1, 2, 100, 0}}), ElementsAre(225, 125));
  // Half of the load: 2 r + r = 4 until 75, then 2.
  port.RouteOf(0, 2).uses = {{0, 2.0}};
  EXPECT_THAT(ArrivalsOf(port, {{0, 2, 200, 0}, {1, 2, 100, 0}}), ElementsAre(125, 75));
  // A second link of 1 byte/ns holds device 1 back, and the first has what it leaves: (4 - 1) / 2.
  port.links.push_back(LinkOf(1));
  port.RouteOf(1, 2).uses = {0, 1};
  EXPECT_THAT(ArrivalsOf(port, {{0, 2, 150, 0}, {1, 2, 100, 0}}), ElementsAre(100, 100));
}

// Devices 0 and 1 sum over the card through which device 0 sends to 2.
TEST(Transfers, ARingSharesWithMessages) {
  Network card = NetworkOf(3, {LinkOf(1, 5), LinkOf(1)});
  card.RouteOf(0, 2).uses = {0};
  card.rings[{0, 1}] = {/*ranks=*/16, Nanoseconds(0), Nanoseconds(0), {0, 1}};
  const Rings rings = {{0, 1}};
  EXPECT_THAT(ArrivalsOf(card, {{0, 0, 100, 0, /*ring=*/0}}, rings), ElementsAre(100));
  EXPECT_THAT(ArrivalsOf(card, {{0, 0, 100, 0, 0}, {0, 2, 100, 0}}, rings), ElementsAre(200, 205));
  EXPECT_THAT(ArrivalsOf(card, {{0, 0, 100, 0, 0}, {0, 2, 30, 50}}, rings), ElementsAre(130, 115));
  // The card carries three rings like this one.
  card.rings[{0, 1}].uses = {{0, 3.0}, 1};
  EXPECT_THAT(ArrivalsOf(card, {{0, 0, 100, 0, 0}, {0, 2, 100, 0}}, rings), ElementsAre(400, 405));
  // Derived from the routes, which pass the card in neither direction: nothing is shared.
  card.rings.clear();
  card.RouteOf(0, 1).uses = {1};
  EXPECT_THAT(ArrivalsOf(card, {{0, 0, 100, 0, 0}, {0, 2, 100, 0}}, rings), ElementsAre(100, 105));
  card.RouteOf(1, 0).uses = {0};
  EXPECT_THAT(ArrivalsOf(card, {{0, 0, 100, 0, 0}, {0, 2, 100, 0}}, rings), ElementsAre(200, 205));
}

TEST(Transfers, RingsShareTheLinksOfPairs) {
  Program program;
  program.schedule.placement.num_devices = 4;
  Message m;
  m.from_device = 2;
  m.to_device = 3;
  program.messages = {m};
  CostTable costs;
  EXPECT_FALSE(Transfers(program, costs, Rings{{2, 3}}).IsShared(0));  // infinite
  costs.bandwidth = BytesPerSecond(1e9);
  EXPECT_TRUE(Transfers(program, costs, Rings{{2, 3}}).IsShared(0));
  EXPECT_FALSE(Transfers(program, costs, Rings{{1, 2}}).IsShared(0));
  Transfers both(program, costs, Rings{{0, 1}, {1, 2, 3}});
  EXPECT_FALSE(both.IsShared(0));
  ASSERT_TRUE(both.IsShared(1));
  EXPECT_EQ(both.Send(0, 100, 7).arrival, Arrival::kUnknown);
  both.Begin(1, 100, 7);
  std::vector<Arrival> arrivals;
  while (both.pending()) both.Advance(&arrivals);
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(arrivals[0].arrival, 207);
  EXPECT_EQ(arrivals[1].arrival, 207);
}

// A second model: continuous time, all rates anew at each event by raising them together until a
// link is full. [message] End of each transfer, without latency.
std::vector<double> SlowFluid(const Network& network, const std::vector<Sent>& sent,
                              const Rings& rings) {
  const size_t n = sent.size();
  std::vector<std::vector<LinkUse>> uses;
  for (const Sent& s : sent) uses.push_back(UsesOf(network, rings, s));
  std::vector<double> left, end(n, -1);
  for (const Sent& s : sent) left.push_back(static_cast<double>(s.bytes));
  double now = 0;
  for (size_t over = 0; over < n;) {
    std::vector<size_t> active;
    double next_start = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < n; ++i) {
      if (end[i] >= 0) continue;
      bool first = true;
      for (size_t j = 0; j < i; ++j) {
        first &= end[j] >= 0 || sent[i].ring >= 0 || sent[j].ring >= 0 ||
                 sent[j].from != sent[i].from || sent[j].to != sent[i].to;
      }
      const double time = static_cast<double>(sent[i].time);
      if (first && time <= now) active.push_back(i);
      if (time > now) next_start = std::min(next_start, time);
    }
    std::vector<double> rate(n, 0);
    std::vector<char> frozen(n, 0);
    std::vector<double> room;
    for (const Link& link : network.links) room.push_back(link.bandwidth.value() * 1e-9);
    for (size_t still = active.size(); still > 0;) {
      std::vector<double> users(room.size());
      for (size_t i : active) {
        for (const LinkUse& use : uses[i]) users[use.link] += frozen[i] ? 0 : use.load;
      }
      double rise = std::numeric_limits<double>::infinity();
      for (size_t l = 0; l < room.size(); ++l) {
        if (users[l] > 0) rise = std::min(rise, room[l] / users[l]);
      }
      for (size_t l = 0; l < room.size(); ++l) room[l] -= rise * users[l];
      for (size_t i : active) {
        if (frozen[i]) continue;
        rate[i] += rise;
        for (const LinkUse& use : uses[i]) frozen[i] |= room[use.link] < 1e-9;
        still -= frozen[i] ? 1 : 0;
      }
    }
    double step = next_start - now;
    for (size_t i : active) step = std::min(step, left[i] / rate[i]);
    now += step;
    for (size_t i : active) {
      left[i] -= rate[i] * step;
      if (left[i] > 1e-6) continue;
      end[i] = now;
      ++over;
    }
  }
  return end;
}

struct TransferCase {
  Network network;
  std::vector<Sent> sent;
  Rings rings;
};

// Loads of 1, or with rings and loads from 1/2 to 4.
TransferCase MakeCase(uint64_t seed, bool loads = false) {
  const CounterRng rng(seed, "random transfers");
  uint64_t n = 0;
  const int devices = 3 + static_cast<int>(rng.Below(n++, 4));
  const int links = 1 + static_cast<int>(rng.Below(n++, 4));
  TransferCase c{NetworkOf(devices, {}), {}, {}};
  for (int i = 0; i < links; ++i) {
    c.network.links.push_back(LinkOf(1.0 + static_cast<double>(rng.Below(n++, 8)) / 4));
  }
  const auto load = [&] { return loads ? static_cast<double>(1 + rng.Below(n++, 8)) / 2 : 1; };
  const auto random_uses = [&] {
    std::vector<LinkUse> uses;
    uses.emplace_back(static_cast<int>(rng.Below(n++, links)), load());
    const int second = static_cast<int>(rng.Below(n++, links));
    if (second != uses[0].link) uses.emplace_back(second, load());
    return uses;
  };
  for (Route& route : c.network.routes) route.uses = random_uses();
  int64_t time = 0;
  const uint64_t count = 2 + rng.Below(n++, 12);
  for (uint64_t i = 0; i < count; ++i) {
    time += static_cast<int64_t>(rng.Below(n++, 2000));
    const int from = static_cast<int>(rng.Below(n++, devices));
    const int to = static_cast<int>(rng.Below(n++, devices));
    c.sent.push_back({from, to, 1 + static_cast<int64_t>(rng.Below(n++, 5000)), time});
    if (!loads || rng.Below(n++, 3) > 0) continue;
    c.sent.back().ring = static_cast<int>(c.rings.size());
    c.rings.push_back({from, (from + 1) % devices});
    std::sort(c.rings.back().begin(), c.rings.back().end());
    if (rng.Below(n++, 2) > 0) c.network.rings[c.rings.back()].uses = random_uses();
  }
  return c;
}

TEST(Transfers, AgreeWithASecondModel) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const TransferCase c = MakeCase(seed, /*loads=*/seed % 2 == 1);
    const std::vector<int64_t> arrivals = ArrivalsOf(c.network, c.sent, c.rings);
    const std::vector<double> expected = SlowFluid(c.network, c.sent, c.rings);
    for (size_t i = 0; i < arrivals.size(); ++i) {
      // Each event is rounded by half a nanosecond at most, and a link passes 3 bytes in one.
      EXPECT_NEAR(static_cast<double>(arrivals[i]), expected[i],
                  3.0 * static_cast<double>(c.sent.size()))
          << "seed " << seed << ", message " << i;
    }
    EXPECT_EQ(arrivals, ArrivalsOf(c.network, c.sent, c.rings)) << seed;
    for (size_t i = 0; i < arrivals.size(); ++i) {
      const BytesPerSecond alone = BandwidthOf(c.network, UsesOf(c.network, c.rings, c.sent[i]));
      EXPECT_GE(arrivals[i],
                c.sent[i].time + TransferTime(static_cast<double>(c.sent[i].bytes), alone).value());
    }
  }
}

// All bytes pass each link at its bandwidth at most, and one link is never idle with work to do.
TEST(Transfers, ConserveBytes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    TransferCase c = MakeCase(seed);
    std::vector<int64_t> arrivals = ArrivalsOf(c.network, c.sent);
    for (size_t l = 0; l < c.network.links.size(); ++l) {
      const double rate = c.network.links[l].bandwidth.value() * 1e-9;
      // Between any start and any end, what began after the one and ended before the other fits.
      for (const Sent& first : c.sent) {
        for (int64_t last : arrivals) {
          double bytes = 0;
          for (size_t i = 0; i < c.sent.size(); ++i) {
            const std::vector<LinkUse>& uses = c.network.RouteOf(c.sent[i].from, c.sent[i].to).uses;
            const bool on_link =
                std::count(uses.begin(), uses.end(), LinkUse(static_cast<int>(l))) > 0;
            if (on_link && c.sent[i].time >= first.time && arrivals[i] <= last) {
              bytes += static_cast<double>(c.sent[i].bytes);
            }
          }
          if (bytes == 0) continue;
          EXPECT_LE(bytes, rate * (static_cast<double>(last - first.time) +
                                   static_cast<double>(c.sent.size())))
              << seed;
        }
      }
    }
    // Everything at once over link 0 alone: it is busy to the end.
    int64_t bytes = 0;
    for (Route& route : c.network.routes) route.uses = {0};
    for (Sent& s : c.sent) {
      s.time = 0;
      bytes += s.bytes;
    }
    arrivals = ArrivalsOf(c.network, c.sent);
    const double end = static_cast<double>(*std::max_element(arrivals.begin(), arrivals.end()));
    EXPECT_NEAR(end, static_cast<double>(bytes) * 1e9 / c.network.links[0].bandwidth.value(),
                static_cast<double>(c.sent.size()))
        << seed;
  }
}

// Why there is no promise that more bandwidth or less traffic is never later: the one that starts
// earlier takes from the other. What holds is that nothing is faster than alone.
TEST(Transfers, AnEarlierOneCanDelayAnother) {
  EXPECT_THAT(ArrivalsOf(OnePort(1), {{0, 2, 10, 0}, {1, 2, 100, 20}}), ElementsAre(10, 120));
  EXPECT_THAT(ArrivalsOf(OnePort(1), {{0, 2, 10, 0}, {1, 2, 100, 5}}), ElementsAre(15, 110));
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const TransferCase c = MakeCase(seed);
    const std::vector<int64_t> shared = ArrivalsOf(c.network, c.sent);
    Network alone = PrivateLinks(c.network.num_devices, Link());
    for (int from = 0; from < alone.num_devices; ++from) {
      for (int to = 0; to < alone.num_devices; ++to) {
        if (from == to) continue;
        alone.links[alone.RouteOf(from, to).uses[0].link].bandwidth =
            CostOfPath(c.network, from, to).bandwidth;
      }
    }
    for (size_t i = 0; i < shared.size(); ++i) {
      if (c.sent[i].from == c.sent[i].to) continue;
      EXPECT_GE(shared[i], ArrivalsOf(alone, c.sent)[i]) << seed;
    }
  }
}

}  // namespace
}  // namespace pipelab
