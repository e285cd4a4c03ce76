// Bytes between the devices of several processes, over MPI: the one that makes its calls.
//
//   auto engine = std::make_shared<MpiEngine>(world, group, run, process_of_device);
//   auto out = engine->Send(head, data, keep);               // a device of this process
//   auto in = engine->Receive(key, buffer, bytes, keep);     // another, in its process
//   PIPELAB_RETURN_IF_ERROR(engine->Await([&] { return in->done; }, limit, describe));
//
// Ahead of its bytes a message sends a head: from whom to whom, what it is, and the bytes
// themselves where they are few. Heads from one process come in the order in which they were sent;
// that is what matches messages of a pair in order, and collectives by their group and number. The
// bytes follow under a tag of their own, straight into the receiver's memory, once the head has met
// its receive. Between devices of one process bytes are copied.
//
// MPI moves data only while somebody calls it. Whoever waits does; so does a thread of the engine's
// own, now and then, while devices compute.
#ifndef PIPELAB_KERNELS_COMM_MPI_ENGINE_H_
#define PIPELAB_KERNELS_COMM_MPI_ENGINE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/comm/mpi_world.h"
#include "kernels/comm/process_group.h"
#include "kernels/comm/wire_head.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// A send under way. All fields belong to the engine's mutex.
struct MpiOutgoing {
  MpiHead head;
  const void* data = nullptr;
  Tensor keep;        // the memory of data
  std::string first;  // the head's message
  int requests = 0;   // of MPI, not done
  bool done = false;
};

// A receive under way.
struct MpiIncoming {
  void* buffer = nullptr;
  int64_t bytes = 0;
  Tensor keep;  // the memory of the buffer
  bool has_head = false;
  MpiHead head;  // once it is there
  int requests = 0;
  bool done = false;    // the bytes are there, or will not come
  bool misfit = false;  // another number of bytes was sent
};

class MpiEngine {
 public:
  // `process_of`: [device]. All processes with a device make one with the same.
  MpiEngine(MpiWorld* world, ProcessGroup* group, std::shared_ptr<SharedRun> run,
            std::vector<int> process_of);
  // Lets go of what is under way; what MPI still reads or writes lives on.
  ~MpiEngine();

  int num_devices() const { return static_cast<int>(process_of_.size()); }

  // Starts to send `bytes` from `data`, which `keep` holds; the head's from, to, tag and so on are
  // set, the rest is filled in.
  std::shared_ptr<MpiOutgoing> Send(MpiHead head, const void* data, int64_t bytes, Tensor keep);
  // Posts a receive of device `to` for the next message from `from`, or for that of a collective.
  std::shared_ptr<MpiIncoming> Receive(int from, int to, void* buffer, int64_t bytes, Tensor keep);
  std::shared_ptr<MpiIncoming> ReceiveOf(uint64_t group, int64_t number, int phase, int from,
                                         int to, void* buffer, int64_t bytes, Tensor keep);

  // Waits for ready(), called with the engine's mutex held. Past the limit the run ends with
  // DeadlineExceeded and describe(), called with it as well.
  absl::Status Await(int device, absl::FunctionRef<bool()> ready, absl::Duration limit,
                     absl::FunctionRef<std::string()> describe);
  // Moves data, and says whether ready(), or the run is over. Does not wait.
  bool Look(absl::FunctionRef<bool()> ready);
  // Ends the run; the others are told what the device was doing.
  absl::Status Fail(int device, absl::Status why);
  SharedRun& run() { return *run_; }
  ProcessGroup& group() { return *group_; }

 private:
  using CollectiveKey = std::tuple<uint64_t, int64_t, int, int, int>;  // group, number, phase, ends
  // A head that has come before its receive.
  struct Arrived {
    MpiHead head;
    std::string bytes;                  // where they came with it
    std::shared_ptr<MpiOutgoing> here;  // of a device of this process
  };
  struct Pair {
    std::deque<Arrived> arrived;
    std::deque<std::shared_ptr<MpiIncoming>> posted;
  };
  // A request of MPI, and whose it is.
  struct Owner {
    std::shared_ptr<MpiOutgoing> out;
    std::shared_ptr<MpiIncoming> in;
  };

  void Progress();
  void PostHead(size_t i);
  void TakeHeads();
  void TestRequests();
  void Arrive(Arrived arrived);
  void Meet(Arrived arrived, const std::shared_ptr<MpiIncoming>& in);
  void Finish(const std::shared_ptr<MpiOutgoing>& out);
  void Finish(const std::shared_ptr<MpiIncoming>& in);
  void Moved();
  bool Hot() const;
  void Broken(const char* call, int code);
  void Help();  // the thread of the engine's own

  MpiWorld* const world_;
  ProcessGroup* const group_;
  const std::shared_ptr<SharedRun> run_;
  const std::vector<int> process_of_;
  std::mutex& mutex_;  // the world's; guards all below

  std::vector<std::string> heads_;  // a ring of posted receives
  std::vector<MPI_Request> head_requests_;
  size_t next_head_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Owner> owners_;  // of requests_
  std::vector<int> completed_;
  std::map<std::pair<int, int>, Pair> pairs_;  // [from, to]
  std::map<CollectiveKey, Arrived> arrived_;
  std::map<CollectiveKey, std::shared_ptr<MpiIncoming>> posted_;
  int64_t under_way_ = 0;       // sends and receives
  int64_t arriving_ = 0;        // receives whose bytes are on their way
  int64_t departing_ = 0;       // sends whose bytes follow their head
  absl::Time departing_until_;  // until then they are believed to move
  absl::Time hot_until_;        // something moved a moment ago
  absl::Time last_progress_;
  absl::Status broken_;  // an error of MPI

  std::atomic<bool> stop_{false};
  std::atomic<int> waiting_{0};  // threads in Await, which keep MPI going
  std::condition_variable wake_helper_;
  std::thread helper_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_MPI_ENGINE_H_
