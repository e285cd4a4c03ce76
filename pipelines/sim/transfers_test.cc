// Shared links: timelines worked out by hand, and a second fluid model that shares nothing with
// the first.
#include "pipelines/sim/transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
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
};

// A link of `rate` bytes a nanosecond.
Link LinkOf(double rate, int64_t latency = 0) {
  return {"", Nanoseconds(latency), BytesPerSecond(rate * 1e9)};
}

Network NetworkOf(int devices, std::vector<Link> links) {
  Network network;
  network.num_devices = devices;
  network.links = std::move(links);
  network.paths.resize(static_cast<size_t>(devices) * devices);
  return network;
}

// [message] When each arrives. `sent` is in the order of time.
std::vector<int64_t> ArrivalsOf(const Network& network, const std::vector<Sent>& sent) {
  Program program;
  program.schedule.placement.num_devices = network.num_devices;
  for (const Sent& s : sent) {
    Message m;
    m.from_device = static_cast<int16_t>(s.from);
    m.to_device = static_cast<int16_t>(s.to);
    program.messages.push_back(m);
  }
  CostTable costs;
  costs.network = network;
  Transfers transfers(program, costs);
  std::vector<int64_t> arrival(sent.size(), -7);
  for (size_t i = 0; i < sent.size(); ++i) {
    arrival[i] = transfers.Send(static_cast<int32_t>(i), sent[i].bytes, sent[i].time).arrival;
  }
  std::vector<Arrival> arrivals;
  while (transfers.pending()) transfers.Advance(&arrivals);
  for (const Arrival& a : arrivals) {
    EXPECT_EQ(arrival[a.message], Arrival::kUnknown) << "arrives twice";
    EXPECT_GE(a.begin, sent[a.message].time);
    arrival[a.message] = a.arrival;
  }
  return arrival;
}

// Devices 0 and 1 each send to device 2 through one port.
Network OnePort(double rate, int64_t latency = 0) {
  Network network = NetworkOf(3, {LinkOf(rate, latency)});
  network.Path(0, 2) = network.Path(1, 2) = {0};
  return network;
}

TEST(Transfers, TwoEqualOnesTakeTwiceAsLong) {
  EXPECT_THAT(ArrivalsOf(OnePort(1, 5), {{0, 2, 100, 0}, {1, 2, 100, 0}}), ElementsAre(205, 205));
  // Alone: as on a link of its own.
  EXPECT_THAT(ArrivalsOf(OnePort(1, 5), {{0, 2, 100, 0}, {1, 2, 100, 100}}), ElementsAre(105, 205));
  EXPECT_THAT(ArrivalsOf(OnePort(1, 5), {{0, 2, 100, 7}}), ElementsAre(112));
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
  network.Path(0, 3) = {0};
  network.Path(1, 4) = {0, 1};
  network.Path(2, 5) = {1};
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

// A second model: continuous time, all rates anew at each event by raising them together until a
// link is full. [message] End of each transfer, without latency.
std::vector<double> SlowFluid(const Network& network, const std::vector<Sent>& sent) {
  const size_t n = sent.size();
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
        first &= end[j] >= 0 || sent[j].from != sent[i].from || sent[j].to != sent[i].to;
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
      std::vector<int> users(room.size());
      for (size_t i : active) {
        for (int link : network.Path(sent[i].from, sent[i].to)) users[link] += frozen[i] ? 0 : 1;
      }
      double rise = std::numeric_limits<double>::infinity();
      for (size_t l = 0; l < room.size(); ++l) {
        if (users[l] > 0) rise = std::min(rise, room[l] / users[l]);
      }
      for (size_t l = 0; l < room.size(); ++l) room[l] -= rise * users[l];
      for (size_t i : active) {
        if (frozen[i]) continue;
        rate[i] += rise;
        for (int link : network.Path(sent[i].from, sent[i].to)) frozen[i] |= room[link] < 1e-9;
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

struct RandomCase {
  Network network;
  std::vector<Sent> sent;
};

RandomCase MakeCase(uint64_t seed) {
  const CounterRng rng(seed, "random transfers");
  uint64_t n = 0;
  const int devices = 3 + static_cast<int>(rng.Below(n++, 4));
  const int links = 1 + static_cast<int>(rng.Below(n++, 4));
  RandomCase c{NetworkOf(devices, {}), {}};
  for (int i = 0; i < links; ++i) {
    c.network.links.push_back(LinkOf(1.0 + static_cast<double>(rng.Below(n++, 8)) / 4));
  }
  for (std::vector<int>& path : c.network.paths) {
    path.push_back(static_cast<int>(rng.Below(n++, links)));
    const int second = static_cast<int>(rng.Below(n++, links));
    if (second != path[0]) path.push_back(second);
  }
  int64_t time = 0;
  const uint64_t count = 2 + rng.Below(n++, 12);
  for (uint64_t i = 0; i < count; ++i) {
    time += static_cast<int64_t>(rng.Below(n++, 2000));
    const int from = static_cast<int>(rng.Below(n++, devices));
    const int to = static_cast<int>(rng.Below(n++, devices));
    c.sent.push_back({from, to, 1 + static_cast<int64_t>(rng.Below(n++, 5000)), time});
  }
  return c;
}

TEST(Transfers, AgreeWithASecondModel) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomCase c = MakeCase(seed);
    const std::vector<int64_t> arrivals = ArrivalsOf(c.network, c.sent);
    const std::vector<double> expected = SlowFluid(c.network, c.sent);
    for (size_t i = 0; i < arrivals.size(); ++i) {
      // Each event is rounded by half a nanosecond at most, and a link passes 3 bytes in one.
      EXPECT_NEAR(static_cast<double>(arrivals[i]), expected[i],
                  3.0 * static_cast<double>(c.sent.size()))
          << "seed " << seed << ", message " << i;
    }
    EXPECT_EQ(arrivals, ArrivalsOf(c.network, c.sent)) << seed;
  }
}

// All bytes pass each link at its bandwidth at most, and one link is never idle with work to do.
TEST(Transfers, ConserveBytes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomCase c = MakeCase(seed);
    std::vector<int64_t> arrivals = ArrivalsOf(c.network, c.sent);
    for (size_t l = 0; l < c.network.links.size(); ++l) {
      const double rate = c.network.links[l].bandwidth.value() * 1e-9;
      // Between any start and any end, what began after the one and ended before the other fits.
      for (const Sent& first : c.sent) {
        for (int64_t last : arrivals) {
          double bytes = 0;
          for (size_t i = 0; i < c.sent.size(); ++i) {
            const std::vector<int>& path = c.network.Path(c.sent[i].from, c.sent[i].to);
            const bool on_link = std::count(path.begin(), path.end(), static_cast<int>(l)) > 0;
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
    for (std::vector<int>& path : c.network.paths) path = {0};
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
    const RandomCase c = MakeCase(seed);
    const std::vector<int64_t> shared = ArrivalsOf(c.network, c.sent);
    Network alone = PrivateLinks(c.network.num_devices, Link());
    for (int from = 0; from < alone.num_devices; ++from) {
      for (int to = 0; to < alone.num_devices; ++to) {
        if (from == to) continue;
        alone.links[alone.Path(from, to)[0]].bandwidth = CostOfPath(c.network, from, to).bandwidth;
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
