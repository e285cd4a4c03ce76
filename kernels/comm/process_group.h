// The processes of one run: who they are, small texts between them, and one end for all.
//
//   // in every process, with its own rank:
//   PIPELAB_ASSIGN_OR_RETURN(auto group,
//                            ProcessGroup::Create(rank, size, FileRendezvous(path, limit), {}));
//   PIPELAB_ASSIGN_OR_RETURN(std::string id, group->FromFirst(rank == 0 ? NewId() : "", limit));
//   std::shared_ptr<SharedRun> run = group->BeginRun();
//   if (!ok) return run->Fail(error);  // everybody's run->Check() gives it from now on
//
// Transports between processes (MPI, NCCL) are started through it and share its ends: an error of
// one rank reaches the others whatever they wait for, and a process that is killed is noticed at
// once, because its connection breaks. Process 0 is the middle: every other one keeps a TCP
// connection to it. It takes only those that know a token from the rendezvous, and what others send
// to its port is bounded (process_meeting.h). A process also says what it is doing
// (SetWhereabouts), so that what it did last can be told when it is gone.
//
// Needs no vendor: how processes find one another is a Rendezvous, through MPI (mpi_launch.h) or a
// file. Exchanges are called by all processes in the same order, by one thread each.
#ifndef PIPELAB_KERNELS_COMM_PROCESS_GROUP_H_
#define PIPELAB_KERNELS_COMM_PROCESS_GROUP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pipelab {

// Gives process 0's text to all: called with it by process 0, with anything by the others.
using Rendezvous =
    std::function<absl::StatusOr<std::string>(int rank, const std::string& text_of_0)>;

// Through a file on a disk that all processes see: process 0 writes it, the others wait for it. It
// must not exist before (a run that was killed while it started leaves one behind). It is removed
// with the rendezvous.
Rendezvous FileRendezvous(const std::string& path, absl::Duration limit);

// The environment's variable for ProcessGroupOptions::listen_on: PIPELAB_LISTEN=eth0.
constexpr char kListenVariable[] = "PIPELAB_LISTEN";

struct ProcessGroupOptions {
  absl::Duration start_limit = absl::Seconds(60);  // until all processes have met
  // Process 0 listens there: "*" on all addresses of its machine, or an address, or the name of an
  // interface. Empty: what the environment says (kListenVariable); else loopback where the launcher
  // has put all processes on one host, or there is no launcher, and all addresses otherwise.
  std::string listen_on;
  // What a connection to process 0 has for saying who it is.
  absl::Duration hello_limit = absl::Seconds(5);
  absl::Duration silence_limit = absl::Seconds(30);  // without a sign of life: a machine is gone
  // For programs: called by a thread of the group's own when a process is gone, and `grace` after a
  // run has failed and this process still lives. To print the reason (where `tells`: one process
  // does) and to exit without looking back: other threads may hang in what has failed.
  std::function<void(const absl::Status& why, bool tells)> on_end;
  absl::Duration grace = absl::Seconds(4);
  // SIGTERM (mpirun's, when a process has ended badly) and the end of the parent process are ends
  // of the group, and not of this process before it knows why. For programs with on_end.
  bool catch_signals = false;
};

class ProcessHub;

// Something that processes do together and that ends for all of them when it fails for one.
class SharedRun {
 public:
  SharedRun(std::shared_ptr<ProcessHub> hub, int64_t id) : hub_(std::move(hub)), id_(id) {}

  int64_t id() const { return id_; }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // OK while it goes on; else how it ended, marked as a follow-up (communicator.h).
  absl::Status Check() const;
  // Ends it with `why` unless it has ended. Returns what the caller has to report: `why`, or the
  // earlier error, of whichever process, marked as a follow-up. Process 0 says which was first, so
  // this takes a moment.
  absl::Status Fail(absl::Status why);

 private:
  friend class ProcessHub;
  const std::shared_ptr<ProcessHub> hub_;
  const int64_t id_;
  std::atomic<bool> ended_{false};
  // Guarded by the hub's mutex.
  bool claimed_ = false;  // by a Fail of this process
  int origin_ = -1;       // the process whose error it is
  absl::Status why_;
};

class ProcessGroup {
 public:
  // All processes call it. DeadlineExceeded names those that did not come.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Create(int rank, int size,
                                                              const Rendezvous& rendezvous,
                                                              const ProcessGroupOptions& options);
  // Leaves. The others go on; what they still want of this process fails.
  ~ProcessGroup();
  // Returns once process 0 has left or is gone.
  void AwaitFirstLeaving(absl::Duration limit);

  int rank() const;
  int size() const;
  // What to add to this process's steady clock to get process 0's [ns]: 0 on the same machine, else
  // half a round trip off at most.
  int64_t clock_offset_ns() const;

  // The program itself: its end is that of every run and of every exchange.
  SharedRun& program();

  // Exchanges. DeadlineExceeded names whom it waited for; the reason when a process is gone or the
  // program has ended.
  // Everybody's text, by rank; ToFirst: at process 0, nothing at the others.
  absl::StatusOr<std::vector<std::string>> ToAll(absl::string_view mine, absl::Duration limit);
  absl::StatusOr<std::vector<std::string>> ToFirst(absl::string_view mine, absl::Duration limit);
  // Process 0's text.
  absl::StatusOr<std::string> FromFirst(absl::string_view text_of_0, absl::Duration limit);
  // Returns once all processes are here.
  absl::Status Meet(absl::Duration limit) { return ToAll("", limit).status(); }
  // OK where everybody's is. Otherwise for all the error of the lowest rank that has one, with its
  // rank ("rank 2 of 4: ..."); to the others it is a follow-up (follow_up.h).
  absl::Status Agree(const absl::Status& mine, absl::Duration limit);

  // The n-th call gives the same run in all processes.
  std::shared_ptr<SharedRun> BeginRun();

  // What a device of this process is doing ("device 2 is in 1F3"), or with kProcess all of it:
  // called at any time, by any thread, until it is replaced; empty: nothing to say.
  static constexpr int kProcess = -1;
  void SetWhereabouts(int device, std::function<std::string()> text);
  std::string Whereabouts(int device) const;

 private:
  ProcessGroup(std::shared_ptr<ProcessHub> hub, int64_t clock_offset_ns);
  const std::shared_ptr<ProcessHub> hub_;
  const std::shared_ptr<SharedRun> program_;
  int64_t clock_offset_ns_ = 0;
  int64_t runs_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_PROCESS_GROUP_H_
