#include "kernels/comm/process_hub.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "glog/logging.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/follow_up.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// How long a failing process waits for process 0 to say whose error was first.
constexpr absl::Duration kVerdictLimit = absl::Seconds(2);

}  // namespace

ProcessHub::ProcessHub(int rank, int size, std::vector<std::unique_ptr<FrameLink>> links,
                       const ProcessGroupOptions& options)
    : rank_(rank), size_(size), options_(options), parent_(getppid()), peers_(size) {
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  CHECK_GE(wake_fd_, 0) << "eventfd";
  for (int r = 0; r < size; ++r) {
    peers_[r].link = std::move(links[r]);
    peers_[r].heard = absl::Now();
  }
}

ProcessHub::~ProcessHub() { close(wake_fd_); }

void ProcessHub::Start() {
  // From the main thread, which gets the signal; the watcher would have the handler on its own
  // stack.
  if (options_.catch_signals) CatchTerm();
  watcher_ = std::thread([this] { Watch(); });
}

void ProcessHub::Leave() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    leaving_ = true;
    leave_by_ = absl::Now() + absl::Seconds(1);
    for (Peer& peer : peers_) {
      if (peer.link != nullptr) peer.link->Queue(kBye, "");
    }
  }
  Wake();
  watcher_.join();
  std::lock_guard<std::mutex> lock(mutex_);
  runs_.clear();  // they hold the hub
}

// Sends what is queued, as far as it goes now; the watcher sends the rest.
void ProcessHub::Flush() {
  for (Peer& peer : peers_) {
    if (peer.link != nullptr && peer.link->wants_write()) peer.link->Write();
  }
  Wake();
}

void ProcessHub::Wake() {
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof(one)) < 0) return;  // full: it is awake
}

absl::Status ProcessHub::Await(std::unique_lock<std::mutex>& lock, absl::Duration limit,
                               absl::FunctionRef<std::vector<int>()> missing) {
  const auto most = absl::ToChronoNanoseconds(std::min(limit, absl::Hours(24 * 365)));
  std::vector<int> ranks;
  int left = -1;  // one of them
  changed_.wait_for(lock, most, [&] {
    ranks = missing();
    left = -1;
    for (const int r : ranks) {
      if (peers_[r].left || peers_[r].link == nullptr) left = r;
    }
    return ranks.empty() || !lost_.ok() || left >= 0;
  });
  if (ranks.empty()) return absl::OkStatus();
  if (!lost_.ok()) return MarkAsFollowUp(lost_);
  if (left >= 0) {
    return absl::UnavailableError(
        absl::StrCat("rank ", rank_, " waits for rank ", left, ", which has left the run"));
  }
  return absl::DeadlineExceededError(absl::StrCat("rank ", rank_, " waited ",
                                                  absl::FormatDuration(limit), " for rank ",
                                                  absl::StrJoin(ranks, ", ")));
}

absl::StatusOr<std::string> ProcessHub::Exchange(absl::string_view mine, bool collect, bool spread,
                                                 absl::Duration limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!lost_.ok()) return MarkAsFollowUp(lost_);
  const int64_t number = exchanges_++;
  std::string bytes;
  ByteWriter(&bytes).Int(number).Raw(mine.data(), mine.size());
  if (rank_ != 0) {
    if (collect && peers_[0].link != nullptr) {
      peers_[0].link->Queue(kExchange, bytes);
      Flush();
    }
    if (!spread) return std::string();
    PIPELAB_RETURN_IF_ERROR(Await(lock, limit, [&] {
      return results_.count(number) > 0 ? std::vector<int>() : std::vector<int>{0};
    }));
    std::string result = std::move(results_[number]);
    results_.erase(number);
    return result;
  }
  std::string result(mine);
  if (collect) {
    auto& texts = collected_[number];
    texts.resize(size_);
    texts[0] = {true, std::string(mine)};
    const auto missing = [&] {
      std::vector<int> ranks;
      for (int r = 0; r < size_; ++r) {
        if (!texts[r].first) ranks.push_back(r);
      }
      return ranks;
    };
    PIPELAB_RETURN_IF_ERROR(Await(lock, limit, missing));
    result.clear();
    for (auto& text : texts) ByteWriter(&result).Text(text.second);
    collected_.erase(number);
  }
  if (spread) {
    bytes.clear();
    ByteWriter(&bytes).Int(number).Raw(result.data(), result.size());
    for (Peer& peer : peers_) {
      if (peer.link != nullptr) peer.link->Queue(kResult, bytes);
    }
    Flush();
  }
  return result;
}

absl::StatusOr<ProcessHub::Echo> ProcessHub::Ping(absl::Duration limit) {
  const auto now = [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  };
  std::unique_lock<std::mutex> lock(mutex_);
  pong_ns_ = -1;
  const int64_t begin = now();
  if (peers_[0].link != nullptr) peers_[0].link->Queue(kPing, "");
  Flush();
  PIPELAB_RETURN_IF_ERROR(
      Await(lock, limit, [&] { return pong_ns_ >= 0 ? std::vector<int>() : std::vector<int>{0}; }));
  Echo echo;
  echo.round_trip_ns = now() - begin;
  echo.offset_ns = pong_ns_ - (begin + echo.round_trip_ns / 2);
  return echo;
}

std::shared_ptr<SharedRun> ProcessHub::Run(int64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  return RunLocked(id);
}

std::shared_ptr<SharedRun> ProcessHub::RunLocked(int64_t id) {
  std::shared_ptr<SharedRun>& run = runs_[id];
  if (run == nullptr) {
    run = std::make_shared<SharedRun>(shared_from_this(), id);
    if (!lost_.ok()) Decide(*run, lost_origin_, lost_);
  }
  return run;
}

absl::Status ProcessHub::Check(const SharedRun& run) {
  if (!run.ended()) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  return MarkAsFollowUp(run.why_);
}

absl::Status ProcessHub::Fail(SharedRun& run, absl::Status why) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (run.ended()) return MarkAsFollowUp(run.why_);
  const bool mine = !std::exchange(run.claimed_, true);
  if (mine && rank_ == 0) {
    Decide(run, 0, why);
    TellVerdict(run.id_, 0, why);
  } else if (mine && peers_[0].link != nullptr) {
    std::string bytes;
    ByteWriter(&bytes).Int(run.id_).Int(static_cast<int64_t>(why.code())).Text(why.message());
    peers_[0].link->Queue(kFailed, bytes);
    Flush();
  }
  changed_.wait_for(lock, absl::ToChronoNanoseconds(kVerdictLimit), [&] { return run.ended(); });
  if (!run.ended()) Decide(run, rank_, why);
  return mine && run.origin_ == rank_ ? why : MarkAsFollowUp(run.why_);
}

void ProcessHub::Decide(SharedRun& run, int origin, absl::Status why) {
  if (run.ended()) return;
  run.origin_ = origin;
  run.why_ = std::move(why);
  run.ended_.store(true, std::memory_order_release);
  if (!ended_once_) {
    ended_once_ = true;
    end_why_ = run.why_;
    end_called_ = absl::Now() + options_.grace;
  }
  if (run.id_ == kProgram && lost_.ok()) {
    lost_ = run.why_;
    for (auto& [id, other] : runs_) Decide(*other, origin, lost_);
  }
  changed_.notify_all();
}

void ProcessHub::TellVerdict(int64_t run, int origin, const absl::Status& why) {
  std::string bytes;
  ByteWriter(&bytes).Int(run).Int(static_cast<int64_t>(why.code())).Text(why.message()).Int(origin);
  for (Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->Queue(kVerdict, bytes);
  }
  Flush();
}

void ProcessHub::EndAll(int origin, absl::Status why) {
  if (!end_reported_) end_called_ = std::min(end_called_, absl::Now());
  if (!lost_.ok()) return;
  lost_ = std::move(why);
  lost_origin_ = origin;
  // At once: who stays may hang in a transport that waits for the one that is gone. The reason of a
  // run that had failed before stays the reason.
  if (!ended_once_) end_why_ = lost_;
  ended_once_ = true;
  for (auto& [id, run] : runs_) Decide(*run, origin, lost_);
  changed_.notify_all();
}

void ProcessHub::AwaitFirstLeaving(absl::Duration limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(limit),
                    [&] { return peers_[0].left || peers_[0].link == nullptr; });
}

void ProcessHub::SetWhereabouts(int device, std::function<std::string()> text) {
  std::lock_guard<std::mutex> lock(where_mutex_);
  if (text == nullptr) {
    whereabouts_.erase(device);
  } else {
    whereabouts_[device] = std::move(text);
  }
}

std::string ProcessHub::Whereabouts(int device) const {
  std::lock_guard<std::mutex> lock(where_mutex_);
  const auto at = whereabouts_.find(device);
  return at == whereabouts_.end() ? "" : at->second();
}

std::string ProcessHub::AllWhereabouts() const {
  std::lock_guard<std::mutex> lock(where_mutex_);
  return absl::StrJoin(whereabouts_, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second());
  });
}

}  // namespace pipelab
