// When collectives begin and end, in the simulator.
//
//   const ProgramRings rings(program);
//   Transfers transfers(program, costs, rings.Shareable());
//   CollectiveTimeline timeline(program, costs, rings, &transfers);
//   const int64_t end = timeline.Visit(device, instruction, now, own);
//   if (end == CollectiveTimeline::kBlocked) ...  // visit again when TakeWoken() has the device
//   timeline.Complete(arrival.ring, arrival.arrival);   // what transfers.Advance says of a ring
//
// A collective begins when all its devices have reached its kReduce or kGather and have ended the
// collectives that they began before it: a device does one at a time, in the order of its list,
// beside compute. It takes the time of a ring (cost/collectives.h), and CostTable::reduce on top of
// a reduction: first all latencies, then its bytes, which share links with the messages and the
// other rings that are on them (transfers.h). kReduceWait and kGatherWait end when it ends. Without
// CostTable::overlap_collectives the device stays in kReduce or kGather until then.
//
// With CostTable::collectives_at_wait, its devices join it at their kReduceWait or kGatherWait.
//
// With measured instruction times, which know nothing of links, a device's own part of the work is
// in the wait: members meet there, and the slowest ends it.
#ifndef PIPELAB_PIPELINES_SIM_COLLECTIVE_TIMELINE_H_
#define PIPELAB_PIPELINES_SIM_COLLECTIVE_TIMELINE_H_

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/transfers.h"
#include "tools/base/units.h"

namespace pipelab {

// Which devices the collectives of a program go around.
struct ProgramRings {
  explicit ProgramRings(const Program& program);

  // All but the norm's. At the norm every device has all its messages and sums: nothing else is
  // under way.
  absl::Span<const std::vector<int>> Shareable() const {
    return absl::MakeConstSpan(devices).first(shareable);
  }

  std::vector<std::vector<int>> devices;  // ascending, each ring once
  size_t shareable = 0;
  std::vector<int> ring_of;  // reductions, gathers, the norm
};

class CollectiveTimeline {
 public:
  static constexpr int64_t kBlocked = -1;

  // Keeps references to the last two.
  CollectiveTimeline(const Program& program, const CostTable& costs, const ProgramRings& rings,
                     Transfers* transfers);

  // InvalidArgument naming the devices of a collective that takes longer than `most`, alone.
  absl::Status CheckTimes(Nanoseconds most) const;

  // `own`: the instruction's measured time. The instruction's end, or kBlocked.
  int64_t Visit(int device, const Instruction& i, int64_t now, int64_t own);
  // The transfer of the ring is over.
  void Complete(int ring, int64_t end);
  // Blocked devices that can go on.
  std::vector<int> TakeWoken() { return std::exchange(woken_, {}); }
  // How long the instruction's collective takes, and what each of its devices sends in it.
  int64_t TimeOf(const Instruction& i) const { return all_[IndexOf(i)].time; }
  int64_t TrafficOf(const Instruction& i) const { return all_[IndexOf(i)].traffic; }

 private:
  struct Collective {
    int ring = 0;
    int64_t latency = 0, time = 0;  // time: alone; once it is over, what it took
    double sent = 0;
    // Part of `time` and the last: what the copies with the same experts sum or gather, on links
    // that it is taken to have to itself.
    int64_t then = 0;
    int64_t traffic = 0;
    int missing = 0;           // devices that have not come
    int64_t last_arrival = 0;  // of those that have
    int64_t longest = 0;       // measured: own time
    int64_t begin = kBlocked, end = kBlocked;
    std::vector<int> waiting;
  };

  size_t IndexOf(const Instruction& i) const;
  static void Arrive(Collective* c, int64_t now, int64_t own);
  int64_t EndFor(int device, Collective* c);
  // Lets the collective run if all have come and none is busy with an earlier one; then what it
  // held up.
  void Resolve(std::vector<size_t> next);
  // False where its transfer is on shared links.
  bool Run(size_t index);
  void End(Collective* c, int64_t end);
  // Appends the collectives that it held up.
  void Leave(const Collective& c, std::vector<size_t>* next);

  const bool measured_, overlap_, at_wait_;
  const size_t num_reductions_;
  const ProgramRings& rings_;
  Transfers* transfers_;
  std::vector<Collective> all_;             // reductions, gathers, the norm
  std::vector<size_t> running_;             // [ring] on shared links
  std::vector<std::deque<size_t>> queues_;  // [device] begun and not over
  std::vector<int64_t> free_at_;            // [device]
  std::vector<int> woken_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_COLLECTIVE_TIMELINE_H_
