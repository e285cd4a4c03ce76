// Messages on their way: when each arrives, on links that are private to a pair of devices or
// shared.
//
//   Transfers transfers(program, costs);
//   Arrival a = transfers.Send(message, bytes, time);   // a.arrival, or kUnknown on a shared link
//   while (transfers.pending()) transfers.Advance(&arrivals);
//
// The messages of an ordered pair of devices follow one another. Where none of the pair's links is
// used by another pair of the program, an arrival is known at once. On shared links transfers are
// fluids, as in SimGrid: at any time rates are max-min fair (progressive filling: the link whose
// equal share is least gives that share to its transfers, which then leave the rest to others).
// When a transfer begins or ends, the rates of those that it touches by way of common links change.
//
// Events are at whole nanoseconds, and all that happens at one of them changes the rates once. A
// transfer whose rate never changes takes just what it takes on links of its own. Sharing never
// makes a transfer faster; but less traffic, or more bandwidth, can make another later: who starts
// earlier takes from others (transfers_test.cc has the smallest case).
//
// Callers hand over messages in time order only as far as Advance has gone: never before now().
#ifndef PIPELAB_PIPELINES_SIM_TRANSFERS_H_
#define PIPELAB_PIPELINES_SIM_TRANSFERS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"

namespace pipelab {

struct Arrival {
  static constexpr int64_t kUnknown = -1;

  int32_t message = 0;
  int64_t begin = 0;           // of the transfer, at its sender
  int64_t arrival = kUnknown;  // of the last byte
};

class Transfers {
 public:
  // Keeps references to both.
  Transfers(const Program& program, const CostTable& costs);

  // `bytes` is what the message carries, `time` when its sender has handed it over.
  Arrival Send(int32_t message, int64_t bytes, int64_t time);

  bool pending() const { return !starts_.empty() || !ends_.empty(); }
  // Goes on to the next event and appends what arrives by it (arrivals may be later than now()).
  void Advance(std::vector<Arrival>* arrivals);
  int64_t now() const { return now_; }

 private:
  // The way of one ordered pair.
  struct Way {
    int to = 0;
    int shared = -1;      // index in shared_
    int64_t free_at = 0;  // when the message before has left
    PathCost cost;
  };
  struct Waiting {
    int32_t message = 0;
    int64_t bytes = 0;
  };
  // A pair whose links other pairs use; at most one of its messages is under way.
  struct SharedWay {
    std::vector<int> links;  // those of finite bandwidth
    int64_t latency = 0;
    std::deque<Waiting> queue;
    bool active = false;
    Arrival transfer;      // the one under way
    double remaining = 0;  // bytes, at `since`
    double rate = 0;       // bytes a second since then
    int64_t since = 0;
    int64_t end = 0;
    bool visited = false;  // scratch of Affected
  };
  struct Start {
    int64_t time = 0;
    int64_t sequence = 0;
    int way = 0;
    Waiting message;
    friend bool operator>(const Start& a, const Start& b) {
      return std::make_pair(a.time, a.sequence) > std::make_pair(b.time, b.sequence);
    }
  };
  using End = std::pair<int64_t, int>;  // time, way; stale where the way's end is another
  template <typename T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<T>>;

  void FindSharedWays();
  Way& WayOf(int from, int to);
  void Begin(int way, const Waiting& message, std::vector<Arrival>* arrivals);
  void Finish(int way, std::vector<Arrival>* arrivals);
  std::vector<int> Affected();
  void ShareBandwidth();
  void DropStaleEnds();

  const Program& program_;
  const CostTable& costs_;
  std::vector<std::vector<Way>> ways_;  // [from]: few
  std::vector<SharedWay> shared_;
  std::vector<int> shared_of_pair_;            // [from * devices + to]; empty without a network
  std::vector<std::vector<int>> active_ways_;  // [link]
  std::vector<int> touched_links_;             // where rates may have changed at now_
  // Scratch of ShareBandwidth, [link].
  std::vector<double> capacity_;
  std::vector<int> unfrozen_;
  Earliest<Start> starts_;
  Earliest<End> ends_;
  int64_t sequence_ = 0;
  int64_t now_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_TRANSFERS_H_
