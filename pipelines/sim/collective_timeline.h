// When collectives begin and end, in the simulator.
//
//   CollectiveTimeline timeline(program, costs);
//   const int64_t end = timeline.Visit(device, instruction, now, own);
//   if (end == CollectiveTimeline::kBlocked) ...     // visit again once the device is in
//   TakeWoken()
//
// A collective begins when all its devices have come to its kReduce or kGather and are through with
// the collectives that they began before it: a device does one at a time, in the order of its list,
// beside compute. It takes the time of a ring (cost/collectives.h), and CostTable::reduce on top of
// a reduction. kReduceWait and kGatherWait end when it is over. Without CostTable::overlap the
// device stays in kReduce or kGather until then.
//
// With measured instruction times, which know nothing of links, a device's own part of the work is
// in the wait: members meet there, and the slowest ends it.
#ifndef PIPELAB_PIPELINES_SIM_COLLECTIVE_TIMELINE_H_
#define PIPELAB_PIPELINES_SIM_COLLECTIVE_TIMELINE_H_

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"

namespace pipelab {

class CollectiveTimeline {
 public:
  static constexpr int64_t kBlocked = -1;

  CollectiveTimeline(const Program& program, const CostTable& costs);

  // `own`: the instruction's measured time. The instruction's end, or kBlocked.
  int64_t Visit(int device, const Instruction& i, int64_t now, int64_t own);
  // Blocked devices that can go on.
  std::vector<int> TakeWoken() { return std::exchange(woken_, {}); }
  // How long the instruction's collective takes, and what each of its devices sends in it.
  int64_t TimeOf(const Instruction& i) const { return all_[IndexOf(i)].time; }
  int64_t TrafficOf(const Instruction& i) const { return all_[IndexOf(i)].traffic; }

 private:
  struct Collective {
    std::vector<int> devices;
    int64_t time = 0, traffic = 0;
    int missing = 0;           // devices that have not come
    int64_t last_arrival = 0;  // of those that have
    int64_t longest = 0;       // measured: own time
    int64_t end = kBlocked;
    std::vector<int> waiting;
  };

  size_t IndexOf(const Instruction& i) const;
  static void Arrive(Collective* c, int64_t now, int64_t own);
  int64_t EndFor(int device, Collective* c);
  // Lets the collective run if all have come and none is busy with an earlier one; then what it
  // held up.
  void Resolve(size_t index);
  void End(Collective* c, int64_t end);

  const bool measured_, overlap_;
  const size_t num_reductions_;
  std::vector<Collective> all_;             // reductions, gathers, the norm
  std::vector<std::deque<size_t>> queues_;  // [device] begun and not over
  std::vector<int64_t> free_at_;            // [device]
  std::vector<int> woken_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_COLLECTIVE_TIMELINE_H_
