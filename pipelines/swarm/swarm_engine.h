// The simulation behind SimulateSwarm (swarm.h): events in the order of time.
//
//   SwarmFigures f = SwarmEngine(options, trace).Run();       // once; options are checked
#ifndef PIPELAB_PIPELINES_SWARM_SWARM_ENGINE_H_
#define PIPELAB_PIPELINES_SWARM_SWARM_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "pipelines/swarm/peer_trace.h"
#include "pipelines/swarm/rebalance.h"
#include "pipelines/swarm/swarm.h"
#include "pipelines/swarm/swarm_state.h"
#include "pipelines/swarm/updates.h"
#include "tools/base/rng.h"
#include "tools/base/units.h"

namespace pipelab {

class SwarmEngine {
 public:
  SwarmEngine(const SwarmOptions& options, const PeerTrace& trace);
  SwarmFigures Run();

 private:
  void At(Nanoseconds time, SwarmEventKind kind, int index, uint32_t life = 0);
  void Handle(const SwarmEvent& event);
  void Observe();
  void Refresh();
  SwarmFigures Finish();

  // Peers (swarm_peers.cc).
  std::vector<StageLoad> Loads() const;
  void Join(const PeerStay& stay);
  void Download(int p, Nanoseconds begin);
  void Serve(int p);
  void LeaveStage(int p);
  void Leave(int p);
  void RebalanceNow();

  // Requests and optimizer steps, one after the other (swarm_requests.cc).
  int NewTask();
  void AskAgain(int task);
  void Request(int task);
  void Ask(int index);
  void TakeResult(int index);
  void Advance(int index);
  void BeginMicroBatches();
  void TryAverage();
  Nanoseconds AverageTime(size_t s) const;

  const SwarmOptions& options_;
  const PeerTrace& trace_;
  std::vector<SimulatedPeer> peers_;
  std::vector<CounterRng> noise_;  // [peer]
  std::vector<SwarmStageState> stages_;
  std::vector<SwarmTask> tasks_;
  std::vector<int> free_;  // tasks
  std::priority_queue<SwarmEvent> events_;
  uint64_t order_ = 0;
  Nanoseconds now_;
  int in_flight_ = 0;
  StepLedger ledger_;
  Nanoseconds observed_;
  bool stale_ = true;
  double best_ = 0, slowest_ = 0, peer_seconds_ = 0, busy_seconds_ = 0;
  int64_t present_ = 0;
  SwarmFigures figures_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_SWARM_ENGINE_H_
