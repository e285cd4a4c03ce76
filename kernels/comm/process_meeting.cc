#include "kernels/comm/process_meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/follow_up.h"
#include "kernels/comm/process_hub.h"
#include "tools/base/secret.h"

namespace pipelab {
namespace {

constexpr uint64_t kLargestFrame = uint64_t{1} << 34;  // of a process of the group

constexpr char kNowhere[] = "nowhere:";

// A connection that has not shown the token yet.
struct Stranger {
  std::unique_ptr<FrameLink> link;
  absl::Time until;
};

// The rank that `hello` proves, or -1.
int RankOf(const Frame& hello, int size, const std::string& token) {
  ByteReader in(hello.bytes);
  const int64_t rank = in.Int();
  const bool knows = SameSecret(in.Text(), token);
  const bool right = hello.kind == kHello && in.ok() && knows && rank > 0 && rank < size;
  return right ? static_cast<int>(rank) : -1;
}

class Acceptor {
 public:
  Acceptor(int listener, int size, const std::string& token, const ProcessGroupOptions& options)
      : listener_(listener), token_(token), options_(options), links_(size), missing_(size - 1) {}

  absl::StatusOr<Links> Run() {
    const absl::Time deadline = absl::Now() + options_.start_limit;
    while (missing_ > 0) {
      if (absl::Now() > deadline) return NotAllCame();
      Poll();
      TakeNew();
      for (Stranger& stranger : strangers_) Hear(stranger);
      strangers_.erase(std::remove_if(strangers_.begin(), strangers_.end(),
                                      [](const Stranger& s) { return s.link == nullptr; }),
                       strangers_.end());
    }
    return std::move(links_);
  }

 private:
  absl::Status NotAllCame() const {
    std::vector<size_t> ranks;
    for (size_t r = 1; r < links_.size(); ++r) {
      if (links_[r] == nullptr) ranks.push_back(r);
    }
    return absl::DeadlineExceededError(
        absl::StrCat("rank 0 waited ", absl::FormatDuration(options_.start_limit), " for rank ",
                     absl::StrJoin(ranks, ", "), " of ", links_.size(), " to connect"));
  }

  void Poll() const {
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
    for (const Stranger& stranger : strangers_) fds.push_back({stranger.link->fd(), POLLIN, 0});
    poll(fds.data(), fds.size(), 20);
  }

  void TakeNew() {
    const size_t most = static_cast<size_t>(missing_) + kMostStrangers;
    for (size_t n = 0; n < most; ++n) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      // The oldest of too many goes: a process of the group speaks at once, and tries again.
      if (strangers_.size() >= most) strangers_.erase(strangers_.begin());
      strangers_.push_back({std::make_unique<FrameLink>(fd), absl::Now() + options_.hello_limit});
      strangers_.back().link->SetLargest(kLargestHello);
    }
  }

  // Takes it in, closes it, or lets it go on.
  void Hear(Stranger& stranger) {
    std::vector<Frame> frames;
    const bool open = stranger.link->Read(&frames);
    if (frames.empty()) {
      if (!open || absl::Now() > stranger.until) stranger.link = nullptr;
      return;
    }
    const int rank = RankOf(frames[0], static_cast<int>(links_.size()), token_);
    if (rank > 0 && links_[rank] == nullptr) {
      stranger.link->SetLargest(kLargestFrame);
      stranger.link->Queue(kWelcome, token_);
      stranger.link->Write();
      links_[rank] = std::move(stranger.link);
      --missing_;
    }
    stranger.link = nullptr;
  }

  const int listener_;
  const std::string& token_;
  const ProcessGroupOptions& options_;
  Links links_;
  int missing_;
  std::vector<Stranger> strangers_;  // oldest first
};

}  // namespace

std::string MeetingPlace::ToText() const {
  return absl::StrCat(token, " ", machine, " ", port, " ", absl::StrJoin(addresses, " "));
}

std::string MeetingPlace::Nowhere(const absl::Status& why) {
  return absl::StrCat(kNowhere, " ", why.message());
}

absl::StatusOr<MeetingPlace> MeetingPlace::FromText(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (!words.empty() && words[0] == kNowhere) {
    return MarkAsFollowUp(
        absl::UnavailableError(absl::StrJoin(words.begin() + 1, words.end(), " ")));
  }
  MeetingPlace m;
  if (words.size() < 4 || !absl::SimpleAtoi(words[2], &m.port) || m.port < 1 || m.port > 65535) {
    return absl::DataLossError(absl::StrCat("'", text, "' is not where process 0 is"));
  }
  m.token = words[0];
  m.machine = words[1];
  m.addresses.assign(words.begin() + 3, words.end());
  return m;
}

std::string MachineId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return file >> id ? id : NewSecret(kTokenBytes);
}

absl::StatusOr<Links> Accept(int listener, int size, const std::string& token,
                             const ProcessGroupOptions& options) {
  return Acceptor(listener, size, token, options).Run();
}

absl::StatusOr<Links> Connect(const MeetingPlace& meeting, int rank, int size,
                              const ProcessGroupOptions& options) {
  const absl::Time deadline = absl::Now() + options.start_limit;
  std::string hello;
  ByteWriter(&hello).Int(rank).Text(meeting.token);
  while (absl::Now() < deadline) {
    Links tries;
    for (const std::string& address : meeting.addresses) {
      const int fd = StartConnecting(address, meeting.port);
      if (fd < 0) continue;
      tries.push_back(std::make_unique<FrameLink>(fd));
      tries.back()->SetLargest(kLargestHello);  // who answers may be anybody
      tries.back()->Queue(kHello, hello);
    }
    const absl::Time again = std::min(deadline, absl::Now() + options.hello_limit);
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
        if (!frames.empty() && frames[0].kind == kWelcome &&
            SameSecret(frames[0].bytes, meeting.token)) {
          tries[i]->SetLargest(kLargestFrame);
          Links links(size);
          links[0] = std::move(tries[i]);
          return links;
        }
        if (!open || !frames.empty()) tries[i] = nullptr;
      }
      tries.erase(std::remove(tries.begin(), tries.end(), nullptr), tries.end());
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("rank ", rank, " waited ", absl::FormatDuration(options.start_limit),
                   " for rank 0 to answer at ", absl::StrJoin(meeting.addresses, ", "), ", port ",
                   meeting.port));
}

}  // namespace pipelab
