// Messages and rings under way: when each ends, on its own links or on shared ones.
//
//   Transfers transfers(program, costs, rings);         // rings: the devices of each
//   Arrival a = transfers.Send(message, bytes, time);   // a.arrival, or kUnknown on a shared link
//   if (transfers.IsShared(ring)) transfers.Begin(ring, bytes, time);
//   while (transfers.pending()) transfers.Advance(&arrivals);
//
// The messages of an ordered pair of devices follow one another. Where no other pair and no ring of
// the program uses a link of the pair's, an arrival is known at once. On shared links transfers are
// fluids, as in SimGrid, and rates are max-min fair at any time: on each link, the sum of
// load x rate (cluster/network.h) is within the bandwidth. Progressive filling: all rates rise
// together until a link is full; its transfers keep what they have, and the others rise on. When a
// transfer begins or ends, the rates of those that it touches by way of common links change.
//
// Events are at whole nanoseconds, and all that happens at one of them changes the rates once. A
// transfer whose rate never changes takes as long as on its own links. Sharing never makes a
// transfer faster; but less traffic, or more bandwidth, can make another later: who starts earlier
// takes from others (transfers_test.cc has the smallest case).
//
// Callers hand over messages in time order only as far as Advance has gone: never before now().
#ifndef PIPELAB_PIPELINES_SIM_TRANSFERS_H_
#define PIPELAB_PIPELINES_SIM_TRANSFERS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

struct Arrival {
  static constexpr int64_t kUnknown = -1;

  int32_t message = 0;
  int32_t ring = -1;           // in the place of a message: that its transfer is over
  int64_t begin = 0;           // of the transfer, at its sender
  int64_t arrival = kUnknown;  // of the last byte
};

class Transfers {
 public:
  // Keeps references to the first two.
  Transfers(const Program& program, const CostTable& costs,
            absl::Span<const std::vector<int>> rings = {});

  // InvalidArgument naming a pair of devices between which a message of so many bytes takes longer
  // than `most`, with its links to itself.
  absl::Status CheckTimes(Bytes message, Nanoseconds most) const;

  // `bytes` is what the message carries, `time` when its sender has handed it over.
  Arrival Send(int32_t message, int64_t bytes, int64_t time);

  // Whether messages or other rings use its links, too; if not, its time is CollectiveTime.
  bool IsShared(int ring) const { return !shared_of_ring_.empty() && shared_of_ring_[ring] >= 0; }
  // Begins the bytes of a shared ring, at the `time` when its latencies have passed: `bytes` are
  // what one rank sends.
  void Begin(int ring, double bytes, int64_t time);

  bool pending() const { return !starts_.empty() || !ends_.empty(); }
  // Goes on to the next event and appends what arrives by it (arrivals may be later than now()).
  void Advance(std::vector<Arrival>* arrivals);
  int64_t now() const { return now_; }

 private:
  // The path of one ordered pair.
  struct Path {
    int to = 0;
    int shared = -1;      // index in shared_
    int64_t free_at = 0;  // when the message before has left
    PathCost cost;
  };
  struct Waiting {
    int32_t message = 0;
    double bytes = 0;
  };
  // A pair whose links others use, or a ring; at most one of its transfers is under way.
  struct SharedWay {
    std::vector<LinkUse> uses;  // of finite bandwidth
    int64_t latency = 0;
    int32_t ring = -1;
    std::deque<Waiting> queue;
    bool active = false;
    Arrival transfer;      // the one under way
    double remaining = 0;  // bytes, at `since`
    double rate = 0;       // bytes a second since then
    int64_t since = 0;
    int64_t end = 0;
    bool visited = false;  // scratch of Affected
  };
  struct Departure {
    int64_t time = 0;
    int64_t sequence = 0;
    int path = 0;
    Waiting message;
    friend bool operator>(const Departure& a, const Departure& b) {
      return std::make_pair(a.time, a.sequence) > std::make_pair(b.time, b.sequence);
    }
  };
  using End = std::pair<int64_t, int>;  // time, path; stale where the path's end is another
  template <typename T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<T>>;

  void FindSharedWays(absl::Span<const std::vector<int>> rings);
  std::vector<LinkUse> UsesOf(int from, int to) const;
  int AddShared(const std::vector<LinkUse>& uses, const std::vector<int>& users);
  Path& PathOf(int from, int to);
  int64_t LatencyOfEdge(const Message& m) const;
  int64_t ArrivalOf(const SharedWay& path) const;
  void Start(int path, const Waiting& message, std::vector<Arrival>* arrivals);
  void Finish(int path, std::vector<Arrival>* arrivals);
  std::vector<int> Affected();
  void ShareBandwidth();
  void DropStaleEnds();

  const Program& program_;
  const CostTable& costs_;
  std::vector<std::vector<Path>> paths_;  // [from]: few
  std::vector<SharedWay> shared_;
  std::vector<int> shared_of_ring_;            // index in shared_, or -1
  std::vector<double> bandwidth_;              // [link]
  std::map<std::pair<int, int>, int> hops_;    // links of rings' hops where there is no network
  std::vector<std::vector<int>> active_ways_;  // [link]
  std::vector<int> touched_links_;             // where rates may have changed at now_
  // Scratch of ShareBandwidth, [link].
  std::vector<double> capacity_, rising_;
  Earliest<Departure> starts_;
  Earliest<End> ends_;
  int64_t sequence_ = 0;
  int64_t now_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_TRANSFERS_H_
