// The thread that watches a process group's links: reads and writes frames, says where this process
// is, and finds out who is gone.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/process_hub.h"
#include "tools/base/signal_handler.h"

namespace pipelab {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);   // between looks at the whereabouts
constexpr absl::Duration kBeat = absl::Milliseconds(500);  // between signs of life
// A launcher that ends a run because a process died may be faster than the broken connection.
constexpr absl::Duration kTermGrace = absl::Milliseconds(500);

// The line about a process that runs another program, or is not well.
constexpr absl::string_view kUnreadable = "what it says cannot be read";

std::atomic<bool> g_terminated{false};
void OnTerm(int) { g_terminated.store(true); }

}  // namespace

void ProcessHub::CatchTerm() { CatchSignal(SIGTERM, OnTerm); }

void ProcessHub::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (Poll(lock)) {
    Tick();
    CallOnEnd(lock);
  }
}

// One round of input and output; false once this process has left.
bool ProcessHub::Poll(std::unique_lock<std::mutex>& lock) {
  bool linked = false;
  std::vector<pollfd> fds = {{wake_fd_, POLLIN, 0}};
  std::vector<int> ranks = {-1};
  for (int r = 0; r < size_; ++r) {
    FrameLink* link = peers_[r].link.get();
    if (link == nullptr) continue;
    if (!link->Write()) {
      Lose(r, "its connection broke");
      continue;
    }
    if (leaving_ && !link->wants_write()) link->CloseWriting();
    linked = true;
    const short events = POLLIN | (link->wants_write() ? POLLOUT : 0);
    fds.push_back({link->fd(), events, 0});
    ranks.push_back(r);
  }
  if (leaving_ && (!linked || absl::Now() > leave_by_)) return false;
  lock.unlock();
  poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(kTick)));
  lock.lock();
  uint64_t ignored;
  if (fds[0].revents != 0 && read(wake_fd_, &ignored, sizeof(ignored)) < 0) return true;
  for (size_t i = 1; i < fds.size(); ++i) {
    if (fds[i].revents != 0) ReadFrom(ranks[i]);
  }
  return true;
}

void ProcessHub::ReadFrom(int peer) {
  Peer& from = peers_[peer];
  if (from.link == nullptr) return;
  std::vector<Frame> frames;
  const bool open = from.link->Read(&frames);
  from.heard = absl::Now();
  for (const Frame& frame : frames) {
    if (from.link == nullptr) return;
    Handle(peer, frame);
  }
  if (open || from.link == nullptr) return;
  if (from.left || leaving_) {
    from.link = nullptr;
    changed_.notify_all();
  } else {
    Lose(peer, "killed or crashed");
  }
}

void ProcessHub::Handle(int peer, const Frame& frame) {
  ByteReader in(frame.bytes);
  switch (frame.kind) {
    case kAlive: {
      std::string whereabouts = in.Text();
      if (!in.ok()) return Lose(peer, kUnreadable);
      peers_[peer].whereabouts = std::move(whereabouts);
      return;
    }
    case kExchange: {
      const int64_t number = in.Int();
      if (!in.ok()) return Lose(peer, kUnreadable);
      auto& texts = collected_[number];
      texts.resize(size_);
      std::string text(in.left(), '\0');
      in.Raw(&text[0], text.size());
      texts[peer] = {true, std::move(text)};
      changed_.notify_all();
      return;
    }
    case kResult: {
      const int64_t number = in.Int();
      if (!in.ok()) return Lose(peer, kUnreadable);
      std::string& text = results_[number];
      text.resize(in.left());
      in.Raw(&text[0], text.size());
      changed_.notify_all();
      return;
    }
    case kFailed:
    case kVerdict:
      return HandleFailure(peer, frame);
    case kPing: {
      std::string now;
      ByteWriter(&now).Int(std::chrono::steady_clock::now().time_since_epoch() /
                           std::chrono::nanoseconds(1));
      peers_[peer].link->Queue(kPong, now);
      return;
    }
    case kPong:
      pong_ns_ = in.Int();
      if (!in.ok()) return Lose(peer, kUnreadable);
      changed_.notify_all();
      return;
    case kBye:
      peers_[peer].left = true;
      changed_.notify_all();
      return;
    default:
      return;
  }
}

void ProcessHub::HandleFailure(int peer, const Frame& frame) {
  ByteReader in(frame.bytes);
  const int64_t id = in.Int(), code = in.Int();
  const absl::Status why(static_cast<absl::StatusCode>(code), in.Text());
  const int64_t from = frame.kind == kFailed ? peer : in.Int();
  if (!in.ok() || code < 1 || code > 16 || from < 0 || from >= size_) {
    return Lose(peer, kUnreadable);
  }
  const int origin = static_cast<int>(from);
  if (id == kEveryRun) return EndAll(origin, why);
  const std::shared_ptr<SharedRun> run = RunLocked(id);
  if (frame.kind == kFailed && !run->ended()) TellVerdict(id, origin, why);
  Decide(*run, origin, why);
}

void ProcessHub::Lose(int peer, absl::string_view how) {
  Peer& lost = peers_[peer];
  lost.link = nullptr;
  if (leaving_ || lost.left) return;
  std::string message = absl::StrCat("rank ", peer, " of ", size_, " is gone (", how, ")");
  if (!lost.whereabouts.empty()) absl::StrAppend(&message, ": ", lost.whereabouts);
  const absl::Status why = absl::UnavailableError(message);
  if (rank_ == 0) TellVerdict(kEveryRun, peer, why);
  EndAll(peer, why);
}

void ProcessHub::Tick() {
  const absl::Time now = absl::Now();
  SayWhere(now);
  for (int r = 0; r < size_; ++r) {
    if (peers_[r].link == nullptr || now - peers_[r].heard < options_.silence_limit) continue;
    Lose(r, absl::StrCat("no sign of life for ", absl::FormatDuration(options_.silence_limit)));
  }
  if (options_.catch_signals && !leaving_) CheckSignals(now);
}

void ProcessHub::SayWhere(absl::Time now) {
  // Not whenever something else wakes this thread, which would mostly tell of those moments.
  if (leaving_ || now - said_at_ < kTick) return;
  std::string text = AllWhereabouts();
  if (text == said_ && now - said_at_ < kBeat) return;
  said_ = std::move(text);
  said_at_ = now;
  std::string bytes;
  ByteWriter(&bytes).Text(said_);
  for (Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->Queue(kAlive, bytes);
  }
}

void ProcessHub::CheckSignals(absl::Time now) {
  if (getppid() != parent_) {
    return EndAll(rank_, absl::CancelledError("what started the processes has ended"));
  }
  if (!g_terminated.load()) return;
  if (term_seen_ == absl::InfiniteFuture()) term_seen_ = now;
  if (now - term_seen_ < kTermGrace) return;
  const absl::Status why =
      absl::CancelledError(absl::StrCat("rank ", rank_, " was told to end (SIGTERM)"));
  EndAll(rank_, why);
}

void ProcessHub::CallOnEnd(std::unique_lock<std::mutex>& lock) {
  if (options_.on_end == nullptr || leaving_ || absl::Now() < end_called_) return;
  end_called_ = absl::InfiniteFuture();
  end_reported_ = true;
  const absl::Status why = end_why_;
  const bool tells = rank_ == (lost_origin_ == 0 && size_ > 1 && rank_ != 0 ? 1 : 0);
  Flush();  // what others have to be told
  lock.unlock();
  options_.on_end(why, tells);
  lock.lock();
}

}  // namespace pipelab
