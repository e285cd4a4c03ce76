#include "kernels/comm/mpi_engine.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/comm/follow_up.h"

namespace pipelab {
namespace {

// A head with the bytes that fit into the rest: what every transport of MPI sends at once, without
// asking the receiver.
constexpr size_t kHeadRoom = 3072;
constexpr int64_t kInline = static_cast<int64_t>(kHeadRoom - sizeof(MpiHead));
constexpr size_t kHeads = 16;                 // receives posted for them
constexpr int64_t kPiece = int64_t{1} << 30;  // MPI counts in int
constexpr int kMostHeadsAtOnce = 64;

constexpr auto kNap = std::chrono::microseconds(50);
// For how long after something has moved a wait goes on looking without sleeping.
constexpr absl::Duration kHot = absl::Microseconds(500);
// Bytes that have been sent are believed to move for as long as a slow network takes for them: both
// sides must then call MPI all the time, and it does not say how far they are.
constexpr absl::Duration kHotSend = absl::Milliseconds(5);
constexpr double kSlowest = 1e8;  // bytes in a second
// While bytes move the processor is not offered to others between any two looks.
constexpr int kLooks = 16;

// Naps of 50 us that take 50 us: the kernel may otherwise add as much again.
void SharpenNaps() {
  static thread_local const bool done = prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0) == 0;
  (void)done;
}

// What MPI still uses of engines that ended in the middle: never freed, for MPI cannot say when it
// lets go.
void KeepForever(std::shared_ptr<void> what) {
  static auto* kept = new std::vector<std::shared_ptr<void>>;
  kept->push_back(std::move(what));
}

}  // namespace

MpiEngine::MpiEngine(MpiWorld* world, ProcessGroup* group, std::shared_ptr<SharedRun> run,
                     std::vector<int> process_of)
    : world_(world),
      group_(group),
      run_(std::move(run)),
      process_of_(std::move(process_of)),
      mutex_(world->mutex()),
      heads_(kHeads, std::string(kHeadRoom, '\0')),
      head_requests_(kHeads, MPI_REQUEST_NULL) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < kHeads; ++i) PostHead(i);
  }
  helper_ = std::thread([this] { Help(); });
}

MpiEngine::~MpiEngine() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_helper_.notify_one();
  helper_.join();
  std::lock_guard<std::mutex> lock(mutex_);
  TestRequests();
  for (MPI_Request& request : head_requests_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (Owner& owner : owners_) {
    if (owner.out != nullptr) KeepForever(std::move(owner.out));
    if (owner.in != nullptr) KeepForever(std::move(owner.in));
  }
}

void MpiEngine::PostHead(size_t i) {
  // Heads match receives in the order of both, so those of one process stay in order.
  const int code = MPI_Irecv(&heads_[i][0], static_cast<int>(kHeadRoom), MPI_BYTE, MPI_ANY_SOURCE,
                             MpiWorld::HeadTag(run_->id()), world_->comm(), &head_requests_[i]);
  if (code != MPI_SUCCESS) Broken("MPI_Irecv", code);
}

std::shared_ptr<MpiOutgoing> MpiEngine::Send(MpiHead head, const void* data, int64_t bytes,
                                             Tensor keep) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto out = std::make_shared<MpiOutgoing>();
  head.bytes = bytes;
  out->data = data;
  out->keep = std::move(keep);
  ++under_way_;
  const int process = process_of_[head.to];
  const bool follows = bytes > kInline;
  if (process == world_->rank()) {
    out->head = head;
    Arrived arrived;
    arrived.head = head;
    if (follows) {
      arrived.here = out;
    } else {
      arrived.bytes.assign(static_cast<const char*>(data), static_cast<size_t>(bytes));
      Finish(out);
    }
    Arrive(std::move(arrived));
    return out;
  }
  if (follows) head.bytes_tag = world_->NextTag();
  out->head = head;
  out->first.assign(reinterpret_cast<const char*>(&head), sizeof(head));
  if (!follows) out->first.append(static_cast<const char*>(data), static_cast<size_t>(bytes));
  const auto send = [&](const void* from, int64_t size, int tag) {
    MPI_Request request;
    const int code =
        MPI_Isend(from, static_cast<int>(size), MPI_BYTE, process, tag, world_->comm(), &request);
    if (code != MPI_SUCCESS) return Broken("MPI_Isend", code);
    ++out->requests;
    requests_.push_back(request);
    owners_.push_back({out, nullptr});
  };
  send(out->first.data(), static_cast<int64_t>(out->first.size()), MpiWorld::HeadTag(run_->id()));
  for (int64_t at = 0; follows && at < bytes; at += kPiece) {
    send(static_cast<const char*>(data) + at, std::min(kPiece, bytes - at), head.bytes_tag);
  }
  if (follows) {
    ++departing_;
    departing_until_ =
        std::max(departing_until_, absl::Now() + kHotSend + absl::Seconds(bytes / kSlowest));
  }
  Moved();
  wake_helper_.notify_one();
  return out;
}

std::shared_ptr<MpiIncoming> MpiEngine::Receive(int from, int to, void* buffer, int64_t bytes,
                                                Tensor keep) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto in = std::make_shared<MpiIncoming>();
  in->buffer = buffer;
  in->bytes = bytes;
  in->keep = std::move(keep);
  ++under_way_;
  wake_helper_.notify_one();
  Pair& pair = pairs_[{from, to}];
  if (pair.arrived.empty()) {
    pair.posted.push_back(in);
  } else {
    Arrived arrived = std::move(pair.arrived.front());
    pair.arrived.pop_front();
    Meet(std::move(arrived), in);
  }
  return in;
}

std::shared_ptr<MpiIncoming> MpiEngine::ReceiveOf(uint64_t group, int64_t number, int phase,
                                                  int from, int to, void* buffer, int64_t bytes,
                                                  Tensor keep) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto in = std::make_shared<MpiIncoming>();
  in->buffer = buffer;
  in->bytes = bytes;
  in->keep = std::move(keep);
  ++under_way_;
  wake_helper_.notify_one();
  const CollectiveKey key(group, number, phase, from, to);
  const auto at = arrived_.find(key);
  if (at == arrived_.end()) {
    posted_[key] = in;
  } else {
    Arrived arrived = std::move(at->second);
    arrived_.erase(at);
    Meet(std::move(arrived), in);
  }
  return in;
}

// A head, its receive posted or not.
void MpiEngine::Arrive(Arrived arrived) {
  const MpiHead& head = arrived.head;
  if (head.number < 0) {
    Pair& pair = pairs_[{head.from, head.to}];
    if (pair.posted.empty()) {
      pair.arrived.push_back(std::move(arrived));
      return;
    }
    const std::shared_ptr<MpiIncoming> in = std::move(pair.posted.front());
    pair.posted.pop_front();
    return Meet(std::move(arrived), in);
  }
  const CollectiveKey key(head.tag, head.number, head.phase, head.from, head.to);
  const auto at = posted_.find(key);
  if (at == posted_.end()) {
    arrived_[key] = std::move(arrived);
    return;
  }
  const std::shared_ptr<MpiIncoming> in = std::move(at->second);
  posted_.erase(at);
  Meet(std::move(arrived), in);
}

void MpiEngine::Meet(Arrived arrived, const std::shared_ptr<MpiIncoming>& in) {
  in->has_head = true;
  in->head = arrived.head;
  in->misfit = arrived.head.bytes != in->bytes;
  if (in->misfit || arrived.here != nullptr || arrived.head.bytes_tag < 0) {
    const void* from = arrived.here != nullptr ? arrived.here->data : arrived.bytes.data();
    if (!in->misfit && in->bytes > 0) {
      std::memcpy(in->buffer, from, static_cast<size_t>(in->bytes));
    }
    if (arrived.here != nullptr) Finish(arrived.here);
    return Finish(in);
  }
  ++arriving_;
  for (int64_t at = 0; at < in->bytes; at += kPiece) {
    MPI_Request request;
    const int code = MPI_Irecv(
        static_cast<char*>(in->buffer) + at, static_cast<int>(std::min(kPiece, in->bytes - at)),
        MPI_BYTE, process_of_[arrived.head.from], arrived.head.bytes_tag, world_->comm(), &request);
    if (code != MPI_SUCCESS) return Broken("MPI_Irecv", code);
    ++in->requests;
    requests_.push_back(request);
    owners_.push_back({nullptr, in});
  }
}

void MpiEngine::Finish(const std::shared_ptr<MpiOutgoing>& out) {
  if (std::exchange(out->done, true)) return;
  --under_way_;
  if (out->head.bytes_tag >= 0) --departing_;
  out->data = nullptr;
  out->keep = Tensor();
  out->first.clear();
}

void MpiEngine::Finish(const std::shared_ptr<MpiIncoming>& in) {
  if (std::exchange(in->done, true)) return;
  --under_way_;
  Moved();
}

void MpiEngine::Moved() { hot_until_ = absl::Now() + kHot; }

bool MpiEngine::Hot() const {
  const absl::Time now = absl::Now();
  return arriving_ > 0 || now < hot_until_ || (departing_ > 0 && now < departing_until_);
}

void MpiEngine::Broken(const char* call, int code) {
  if (broken_.ok()) broken_ = MpiError(call, code);
}

void MpiEngine::Progress() {
  TakeHeads();
  TestRequests();
  last_progress_ = absl::Now();
}

void MpiEngine::TakeHeads() {
  for (int n = 0; n < kMostHeadsAtOnce; ++n) {
    int flag = 0, size = 0;
    MPI_Status status;
    const int code = MPI_Test(&head_requests_[next_head_], &flag, &status);
    if (code != MPI_SUCCESS) return Broken("MPI_Test", code);
    if (flag == 0) return;
    MPI_Get_count(&status, MPI_BYTE, &size);
    const absl::string_view message(heads_[next_head_].data(),
                                    static_cast<size_t>(std::max(size, 0)));
    const absl::StatusOr<MpiHead> head =
        ReadMpiHead(message, status.MPI_SOURCE, world_->rank(), process_of_);
    if (!head.ok()) {  // nothing behind it can be right
      if (broken_.ok()) broken_ = head.status();
      return;
    }
    Arrived arrived;
    arrived.head = *head;
    arrived.bytes = std::string(message.substr(sizeof(MpiHead)));
    PostHead(next_head_);
    next_head_ = (next_head_ + 1) % kHeads;
    Arrive(std::move(arrived));
  }
}

void MpiEngine::TestRequests() {
  if (requests_.empty()) return;
  completed_.resize(requests_.size());
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                completed_.data(), MPI_STATUSES_IGNORE);
  if (code != MPI_SUCCESS) return Broken("MPI_Testsome", code);
  if (count == MPI_UNDEFINED || count == 0) return;
  std::sort(completed_.begin(), completed_.begin() + count);
  for (int i = count - 1; i >= 0; --i) {  // from the end: the last one takes the place of each
    const size_t at = static_cast<size_t>(completed_[i]);
    const Owner owner = std::move(owners_[at]);
    if (at + 1 < owners_.size()) {
      owners_[at] = std::move(owners_.back());
      requests_[at] = requests_.back();
    }
    owners_.pop_back();
    requests_.pop_back();
    if (owner.out != nullptr && --owner.out->requests == 0) Finish(owner.out);
    if (owner.in != nullptr && --owner.in->requests == 0) {
      --arriving_;
      Finish(owner.in);
    }
  }
}

bool MpiEngine::Look(absl::FunctionRef<bool()> ready) {
  std::lock_guard<std::mutex> lock(mutex_);
  Progress();
  return run_->ended() || ready();
}

absl::Status MpiEngine::Await(int device, absl::FunctionRef<bool()> ready, absl::Duration limit,
                              absl::FunctionRef<std::string()> describe) {
  SharpenNaps();
  const absl::Time deadline = absl::Now() + limit;
  waiting_.fetch_add(1);
  const auto done = absl::MakeCleanup([this] { waiting_.fetch_sub(1); });
  while (true) {
    absl::Status failed;
    bool hot = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Progress();
      for (int i = 1; i < kLooks && arriving_ + departing_ > 0 && !ready(); ++i) Progress();
      if (!run_->ended()) {
        if (ready()) return absl::OkStatus();
        hot = Hot();
        failed = broken_;
        if (failed.ok() && absl::Now() >= deadline) {
          failed = absl::DeadlineExceededError(describe());
        }
      }
    }
    if (run_->ended()) return run_->Check();
    if (!failed.ok()) return Fail(device, std::move(failed));
    if (hot) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

absl::Status MpiEngine::Fail(int device, absl::Status why) {
  const std::string where = group_->Whereabouts(device);
  absl::Status told = why;
  if (!where.empty()) told = absl::Status(why.code(), absl::StrCat(why.message(), "; ", where));
  absl::Status result = run_->Fail(std::move(told));
  return IsFollowUp(result) ? result : why;
}

// Devices that compute move nothing, and their peers may be waiting for what they have begun.
void MpiEngine::Help() {
  SharpenNaps();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    if (under_way_ == 0 || run_->ended()) {
      wake_helper_.wait_for(lock, std::chrono::milliseconds(100));
      continue;
    }
    if (absl::Now() - last_progress_ > absl::FromChrono(kNap)) Progress();
    lock.unlock();
    // Whoever waits keeps MPI going, and better without a second thread at its lock.
    do {
      std::this_thread::sleep_for(waiting_.load() > 0 ? 4 * kNap : kNap);
    } while (waiting_.load() > 0 && !stop_.load());
    lock.lock();
  }
}

}  // namespace pipelab
