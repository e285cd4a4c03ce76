// The inside of a ProcessGroup: the links between processes, the thread that watches them, and what
// has come over them. Only process_group.cc and its neighbours use it.
#ifndef PIPELAB_KERNELS_COMM_PROCESS_HUB_H_
#define PIPELAB_KERNELS_COMM_PROCESS_HUB_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/comm/frame_link.h"
#include "kernels/comm/process_group.h"

namespace pipelab {

enum FrameKind : uint8_t {
  kHello = 1,  // rank, token: who connects
  kWelcome,    // token: the right one answers
  kAlive,      // whereabouts; also a sign of life
  kExchange,   // number, text: to process 0
  kResult,     // number, text: from process 0
  kFailed,     // run, code, message: to process 0
  kVerdict,    // run, code, message, origin: from process 0
  kPing,       // -> kPong, with process 0's clock
  kPong,
  kBye,  // leaves in good order
};

class ProcessHub : public std::enable_shared_from_this<ProcessHub> {
 public:
  static constexpr int64_t kEveryRun = -1;  // the run of a verdict that is about the group
  static constexpr int64_t kProgram = -2;   // ProcessGroup::program

  // `links`: by rank; at process 0 one to each other process, elsewhere one to process 0.
  ProcessHub(int rank, int size, std::vector<std::unique_ptr<FrameLink>> links,
             const ProcessGroupOptions& options);
  ~ProcessHub();

  int rank() const { return rank_; }
  int size() const { return size_; }
  void Start();
  void Leave();

  void AwaitFirstLeaving(absl::Duration limit);

  // One exchange, the next in number. `collect`: everybody's text comes to process 0; `spread`:
  // process 0's result goes to all. Returns the result where it goes.
  absl::StatusOr<std::string> Exchange(absl::string_view mine, bool collect, bool spread,
                                       absl::Duration limit);
  // Process 0's steady clock beside this one's, by a round trip. Not at process 0.
  struct Echo {
    int64_t round_trip_ns = 0, offset_ns = 0;
  };
  absl::StatusOr<Echo> Ping(absl::Duration limit);

  std::shared_ptr<SharedRun> Run(int64_t id);
  absl::Status Check(const SharedRun& run);
  absl::Status Fail(SharedRun& run, absl::Status why);

  void SetWhereabouts(int device, std::function<std::string()> text);
  std::string Whereabouts(int device) const;

 private:
  struct Peer {
    std::unique_ptr<FrameLink> link;  // null once closed
    bool left = false;                // said goodbye
    absl::Time heard;
    std::string whereabouts;
  };

  static void CatchTerm();
  void Watch();
  bool Poll(std::unique_lock<std::mutex>& lock);
  void Tick();
  void SayWhere(absl::Time now);
  void CheckSignals(absl::Time now);
  void CallOnEnd(std::unique_lock<std::mutex>& lock);
  void ReadFrom(int peer);
  void Handle(int peer, const Frame& frame);
  void HandleFailure(int peer, const Frame& frame);  // a run's, or the verdict on it
  void Lose(int peer, absl::string_view how);
  void EndAll(int origin, absl::Status why);
  void Decide(SharedRun& run, int origin, absl::Status why);
  void TellVerdict(int64_t run, int origin, const absl::Status& why);
  std::shared_ptr<SharedRun> RunLocked(int64_t id);
  void Flush();
  void Wake();
  std::string AllWhereabouts() const;

  // Waits until nobody is missing() any more, who is has left, or the group has ended.
  absl::Status Await(std::unique_lock<std::mutex>& lock, absl::Duration limit,
                     absl::FunctionRef<std::vector<int>()> missing);

  const int rank_, size_;
  const ProcessGroupOptions options_;
  int wake_fd_ = -1;
  const int parent_;  // process id of the parent at the start
  std::thread watcher_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;  // by rank; [rank_] has no link
  bool leaving_ = false;
  absl::Time leave_by_;
  absl::Status lost_;  // how the group ended: a process is gone, or the program has failed
  int lost_origin_ = -1;
  absl::Time end_called_ = absl::InfiniteFuture();  // on_end is due
  absl::Status end_why_;
  bool ended_once_ = false, end_reported_ = false;
  absl::Time term_seen_ = absl::InfiniteFuture();
  std::map<int64_t, std::shared_ptr<SharedRun>> runs_;
  int64_t exchanges_ = 0;                                                   // begun
  std::map<int64_t, std::vector<std::pair<bool, std::string>>> collected_;  // [exchange][rank]
  std::map<int64_t, std::string> results_;
  int64_t pong_ns_ = -1;
  std::string said_;  // whereabouts, as the others know them
  absl::Time said_at_;

  mutable std::mutex where_mutex_;  // after mutex_
  std::map<int, std::function<std::string()>> whereabouts_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_PROCESS_HUB_H_
