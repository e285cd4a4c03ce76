#include "kernels/comm/process_group.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/follow_up.h"
#include "kernels/comm/frame_link.h"
#include "kernels/comm/process_hub.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Links = std::vector<std::unique_ptr<FrameLink>>;  // [rank]

constexpr int kPings = 8;

// What process 0 tells the others: where it is, and what tells it from any other program.
struct Meeting {
  std::string token, machine;
  int port = 0;
  std::vector<std::string> addresses;

  std::string ToText() const {
    return absl::StrCat(token, " ", machine, " ", port, " ", absl::StrJoin(addresses, " "));
  }
  static absl::StatusOr<Meeting> FromText(const std::string& text) {
    const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
    Meeting m;
    if (words.size() < 4 || !absl::SimpleAtoi(words[2], &m.port)) {
      return absl::DataLossError(absl::StrCat("'", text, "' is not where process 0 is"));
    }
    m.token = words[0];
    m.machine = words[1];
    m.addresses.assign(words.begin() + 3, words.end());
    return m;
  }
};

std::string NewToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&token, "%08x", random());
  return token;
}

// The same for all processes of one running kernel, whose steady clocks are one.
std::string MachineId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return file >> id ? id : NewToken();
}

// Waits until one of `links` has something to read; false when nothing came.
bool PollLinks(int listener, const Links& links, absl::Duration most) {
  std::vector<pollfd> fds;
  if (listener >= 0) fds.push_back({listener, POLLIN, 0});
  for (const auto& link : links) fds.push_back({link->fd(), POLLIN, 0});
  return poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(most))) > 0;
}

// Process 0: takes a connection from each other process.
absl::StatusOr<Links> Accept(int listener, int size, const std::string& token, absl::Time deadline,
                             absl::Duration limit) {
  Links links(size), waiting;
  int missing = size - 1;
  while (missing > 0) {
    if (absl::Now() > deadline) {
      std::vector<int> ranks;
      for (int r = 1; r < size; ++r) {
        if (links[r] == nullptr) ranks.push_back(r);
      }
      return absl::DeadlineExceededError(absl::StrCat("rank 0 waited ", absl::FormatDuration(limit),
                                                      " for rank ", absl::StrJoin(ranks, ", "),
                                                      " of ", size, " to connect"));
    }
    if (!PollLinks(listener, waiting, absl::Milliseconds(100))) continue;
    const int fd = accept(listener, nullptr, nullptr);
    if (fd >= 0) waiting.push_back(std::make_unique<FrameLink>(fd));
    for (auto& link : waiting) {
      std::vector<Frame> frames;
      const bool open = link->Read(&frames);
      if (frames.empty()) {
        if (!open) link = nullptr;
        continue;
      }
      ByteReader in(frames[0].bytes);
      const int64_t rank = in.Int();
      const bool right = frames[0].kind == kHello && in.Text() == token && in.ok() && rank > 0 &&
                         rank < size && links[rank] == nullptr;
      if (right) {
        link->Queue(kWelcome, token);
        link->Write();
        links[rank] = std::move(link);
        --missing;
      }
      link = nullptr;
    }
    waiting.erase(std::remove(waiting.begin(), waiting.end(), nullptr), waiting.end());
  }
  return links;
}

// Another process: tries all addresses of process 0 at once, since some may mean another machine
// from here, and takes the one that answers with the token.
absl::StatusOr<Links> Connect(const Meeting& meeting, int rank, int size, absl::Time deadline,
                              absl::Duration limit) {
  std::string hello;
  ByteWriter(&hello).Int(rank).Text(meeting.token);
  while (absl::Now() < deadline) {
    Links tries;
    for (const std::string& address : meeting.addresses) {
      const int fd = StartConnecting(address, meeting.port);
      if (fd < 0) continue;
      tries.push_back(std::make_unique<FrameLink>(fd));
      tries.back()->Queue(kHello, hello);
    }
    const absl::Time again = std::min(deadline, absl::Now() + absl::Seconds(5));
    while (!tries.empty() && absl::Now() < again) {
      std::vector<pollfd> fds;
      for (const auto& link : tries) {
        const short events = POLLIN | (link->wants_write() ? POLLOUT : 0);
        fds.push_back({link->fd(), events, 0});
      }
      poll(fds.data(), fds.size(), 100);
      for (size_t i = 0; i < tries.size(); ++i) {
        if (fds[i].revents == 0) continue;
        std::vector<Frame> frames;
        const bool open = tries[i]->Write() && tries[i]->Read(&frames);
        if (!frames.empty() && frames[0].kind == kWelcome && frames[0].bytes == meeting.token) {
          Links links(size);
          links[0] = std::move(tries[i]);
          return links;
        }
        if (!open) tries[i] = nullptr;
      }
      tries.erase(std::remove(tries.begin(), tries.end(), nullptr), tries.end());
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", rank, " waited ", absl::FormatDuration(limit), " for rank 0 to answer at ",
      absl::StrJoin(meeting.addresses, ", "), ", port ", meeting.port));
}

// The offset of the shortest round trip.
absl::StatusOr<int64_t> ClockOffset(ProcessHub& hub, absl::Duration limit) {
  ProcessHub::Echo best;
  for (int i = 0; i < kPings; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(const ProcessHub::Echo echo, hub.Ping(limit));
    if (i == 0 || echo.round_trip_ns < best.round_trip_ns) best = echo;
  }
  return best.offset_ns;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Create(
    int rank, int size, const Rendezvous& rendezvous, const ProcessGroupOptions& options) {
  if (size < 1 || rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(absl::StrCat("process ", rank, " of ", size));
  }
  const absl::Time deadline = absl::Now() + options.start_limit;
  const std::string machine = MachineId();
  Links links;
  bool same_machine = true;
  if (rank == 0) {
    PIPELAB_ASSIGN_OR_RETURN(const Listener listener, Listen());
    const Meeting meeting = {NewToken(), machine, listener.port, OwnAddresses()};
    absl::StatusOr<std::string> told = rendezvous(0, meeting.ToText());
    absl::StatusOr<Links> all =
        told.ok() ? Accept(listener.fd, size, meeting.token, deadline, options.start_limit)
                  : told.status();
    close(listener.fd);
    if (!all.ok()) return all.status();
    links = *std::move(all);
  } else {
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, rendezvous(rank, ""));
    PIPELAB_ASSIGN_OR_RETURN(const Meeting meeting, Meeting::FromText(text));
    same_machine = meeting.machine == machine;
    PIPELAB_ASSIGN_OR_RETURN(links, Connect(meeting, rank, size, deadline, options.start_limit));
  }
  auto hub = std::make_shared<ProcessHub>(rank, size, std::move(links), options);
  hub->Start();
  auto group = std::unique_ptr<ProcessGroup>(new ProcessGroup(hub, 0));
  if (!same_machine) {
    PIPELAB_ASSIGN_OR_RETURN(group->clock_offset_ns_, ClockOffset(*hub, options.start_limit));
  }
  PIPELAB_RETURN_IF_ERROR(group->Meet(options.start_limit));
  return group;
}

ProcessGroup::ProcessGroup(std::shared_ptr<ProcessHub> hub, int64_t clock_offset_ns)
    : hub_(std::move(hub)),
      program_(hub_->Run(ProcessHub::kProgram)),
      clock_offset_ns_(clock_offset_ns) {}

ProcessGroup::~ProcessGroup() { hub_->Leave(); }

void ProcessGroup::AwaitFirstLeaving(absl::Duration limit) { hub_->AwaitFirstLeaving(limit); }

SharedRun& ProcessGroup::program() { return *program_; }
int ProcessGroup::rank() const { return hub_->rank(); }
int ProcessGroup::size() const { return hub_->size(); }
int64_t ProcessGroup::clock_offset_ns() const { return clock_offset_ns_; }

absl::StatusOr<std::vector<std::string>> ProcessGroup::ToAll(absl::string_view mine,
                                                             absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, hub_->Exchange(mine, true, true, limit));
  ByteReader in(bytes);
  std::vector<std::string> texts(size());
  for (std::string& text : texts) text = in.Text();
  return texts;
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::ToFirst(absl::string_view mine,
                                                               absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, hub_->Exchange(mine, true, false, limit));
  std::vector<std::string> texts(rank() == 0 ? size() : 0);
  ByteReader in(bytes);
  for (std::string& text : texts) text = in.Text();
  return texts;
}

absl::StatusOr<std::string> ProcessGroup::FromFirst(absl::string_view text_of_0,
                                                    absl::Duration limit) {
  return hub_->Exchange(text_of_0, false, true, limit);
}

absl::Status ProcessGroup::Agree(const absl::Status& mine, absl::Duration limit) {
  std::string bytes;
  ByteWriter(&bytes).Int(static_cast<int64_t>(mine.code())).Text(mine.message());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> all, ToAll(bytes, limit));
  for (int r = 0; r < size(); ++r) {
    ByteReader in(all[r]);
    const auto code = static_cast<absl::StatusCode>(in.Int());
    if (in.ok() && code == absl::StatusCode::kOk) continue;
    absl::Status error(code, absl::StrCat("rank ", r, " of ", size(), ": ", in.Text()));
    return r == rank() ? error : MarkAsFollowUp(std::move(error));
  }
  return absl::OkStatus();
}

std::shared_ptr<SharedRun> ProcessGroup::BeginRun() { return hub_->Run(runs_++); }

void ProcessGroup::SetWhereabouts(int device, std::function<std::string()> text) {
  hub_->SetWhereabouts(device, std::move(text));
}
std::string ProcessGroup::Whereabouts(int device) const { return hub_->Whereabouts(device); }

absl::Status SharedRun::Check() const { return hub_->Check(*this); }
absl::Status SharedRun::Fail(absl::Status why) { return hub_->Fail(*this, std::move(why)); }

}  // namespace pipelab
