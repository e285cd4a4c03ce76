// Commands for the page, each in a process of its own, so that flags are its own, a limit on time
// or memory ends it alone, and a fault in it is one answer.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto pool, CommandPool::Start(limits));   // before any thread
//   CommandAnswer answer = pool->Call("simulate", body);               // from any thread
//
// Start forks one process that has no threads, and that one forks another for each call; when it is
// killed or stopped it is started again, by its keeper or, where both are, with the next call. A
// call ends by its answer; by the limit on time (504; a search gives what it found by then); with
// its client; or without memory or room (503, 429). Its process is killed then, also where it is
// stopped.
#ifndef PIPELAB_EXPERIMENTS_SERVE_COMMAND_POOL_H_
#define PIPELAB_EXPERIMENTS_SERVE_COMMAND_POOL_H_

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "experiments/serve/command_answer.h"
#include "experiments/serve/command_process.h"
#include "experiments/serve/command_request.h"
#include "experiments/serve/limits.h"

namespace pipelab {

class CommandPool {
 public:
  // Unavailable when the system has no process or no folder for it.
  static absl::StatusOr<std::unique_ptr<CommandPool>> Start(const ServeLimits& limits);
  ~CommandPool();
  CommandPool(const CommandPool&) = delete;
  CommandPool& operator=(const CommandPool&) = delete;

  // Asked while a call waits: whether nobody waits for its answer any more.
  using Gone = std::function<bool()>;
  CommandAnswer Call(absl::string_view command, absl::string_view body, const Gone& gone = nullptr);

  // A call that says what it finds meanwhile, for Next() of one thread after the other.
  class Running;
  std::unique_ptr<Running> Begin(absl::string_view command, absl::string_view body,
                                 const Gone& gone);

  // The call with this id answers with the best so far. False: there is none.
  bool Stop(const std::string& id);

  struct Counts {
    int64_t calls = 0, answered = 0, refused = 0, timed_out = 0, gone = 0, failed = 0;
    int64_t restarted = 0;  // the process that forks
  };
  Counts counts();

 private:
  // The processes that fork: the socket to them, and the number of the first and of their group.
  struct Helpers {
    int control = -1;
    pid_t pid = 0;
  };
  static absl::StatusOr<Helpers> StartHelpers(const ServeLimits& limits, const std::string& folder);
  CommandPool(const ServeLimits& limits, Helpers helpers, std::string folder)
      : limits_(limits), folder_(std::move(folder)), helpers_(helpers) {}
  // A socket of a new process; `by` is the number of the helpers that were asked for it.
  absl::StatusOr<int> Fork(pid_t* by);
  // Others in the place of those of this number, unless that has been done.
  absl::Status ReplaceHelpers(pid_t by);
  // Nothing: with a place among the calls that run. Else why there is none.
  absl::optional<CommandAnswer> TakePlace(absl::Time deadline, const Gone& gone);

  const ServeLimits limits_;
  const std::string folder_;
  std::mutex helpers_mutex_;
  Helpers helpers_;  // guarded by helpers_mutex_
  std::mutex mutex_;
  std::condition_variable freed_;
  int running_ = 0, waiting_ = 0;  // guarded by mutex_, as what follows
  Counts counts_;
  std::map<std::string, int> sockets_of_ids_;  // of calls that can be stopped
  int64_t folders_ = 0;
};

// Ends its process when it is destroyed.
class CommandPool::Running {
 public:
  ~Running();
  struct Event {
    bool is_answer = false;
    std::string news;  // JSON
    CommandAnswer answer;
  };
  // Waits. The answer is the last one.
  Event Next(const Gone& gone);

 private:
  friend class CommandPool;
  Running(CommandPool* pool, absl::Duration limit)
      : pool_(pool), limit_(limit), deadline_(absl::Now() + limit) {}
  // Its files and its process; the answer where there is none.
  absl::optional<CommandAnswer> Start(absl::string_view body);
  FrameReader::Result AwaitStart();
  void Kill() const;
  Event Answer(int64_t Counts::*count, CommandAnswer answer);
  Event TooLong();

  CommandPool* const pool_;
  const absl::Duration limit_;
  absl::Time deadline_;
  CommandRequest request_;
  absl::optional<CommandAnswer> refusal_;
  bool has_place_ = false, stopped_ = false, ended_ = false;
  std::string folder_;
  int fd_ = -1;
  pid_t pid_ = 0;
  FrameReader reader_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_COMMAND_POOL_H_
