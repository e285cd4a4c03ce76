// Strangers at process 0's port, over loopback: whatever they send, they are closed, cost little,
// and the processes of the group meet.
#include "kernels/comm/process_meeting.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/follow_up.h"
#include "kernels/comm/process_hub.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

// Process 0 of a group, in a thread, which waits for the others.
class FirstProcess {
 public:
  explicit FirstProcess(int size, const ProcessGroupOptions& options = {})
      : size_(size), told_(text_.get_future()), thread_([this, options] {
          const Rendezvous tell = [this](int, const std::string& text) {
            text_.set_value(text);
            return absl::StatusOr<std::string>(text);
          };
          group_ = ProcessGroup::Create(0, size_, tell, options);
          if (group_.ok()) status_ = (*group_)->Meet(kLong);
        }) {
    meeting_ = *MeetingPlace::FromText(told_.get());
  }
  ~FirstProcess() {
    if (thread_.joinable()) thread_.join();
  }

  const MeetingPlace& meeting() const { return meeting_; }
  // How it ended without the others.
  absl::Status Ended() {
    thread_.join();
    return group_.status();
  }
  // All others come; the group is as if nothing had been.
  void ExpectTheOthersToMeet() {
    std::vector<std::thread> others;
    for (int rank = 1; rank < size_; ++rank) {
      others.emplace_back([this, rank] {
        const Rendezvous hear = [this](int, const std::string&) {
          return absl::StatusOr<std::string>(meeting_.ToText());
        };
        auto group = ProcessGroup::Create(rank, size_, hear, {});
        ASSERT_THAT(group, IsOk());
        EXPECT_THAT((*group)->Meet(kLong), IsOk());
      });
    }
    for (std::thread& other : others) other.join();
    thread_.join();
    EXPECT_THAT(group_, IsOk());
    EXPECT_THAT(status_, IsOk());
  }

 private:
  const int size_;
  std::promise<std::string> text_;
  std::future<std::string> told_;
  absl::StatusOr<std::unique_ptr<ProcessGroup>> group_ = absl::UnknownError("");
  absl::Status status_;
  MeetingPlace meeting_;
  std::thread thread_;
};

// A connection that knows the port.
class Caller {
 public:
  explicit Caller(const MeetingPlace& meeting)
      : fd_(StartConnecting(meeting.addresses[0], meeting.port)) {
    pollfd connected = {fd_, POLLOUT, 0};
    EXPECT_EQ(poll(&connected, 1, 10000), 1);
    EXPECT_TRUE(Connected(fd_));
  }
  ~Caller() { close(fd_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // What the other side's system took of it.
  size_t Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n > 0) {
        sent += static_cast<size_t>(n);
        continue;
      }
      pollfd room = {fd_, POLLOUT, 0};
      if (n == 0 || errno != EAGAIN || poll(&room, 1, 500) != 1) break;
    }
    return sent;
  }
  // Whether process 0 closes it, having said nothing.
  bool IsClosed() {
    pollfd end = {fd_, POLLIN, 0};
    if (poll(&end, 1, 10000) != 1) return false;
    char byte;
    return recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  const int fd_;
};

std::string FrameOf(uint64_t size, uint8_t kind, const std::string& bytes) {
  std::string frame(reinterpret_cast<const char*>(&size), sizeof(size));
  frame.push_back(static_cast<char>(kind));
  return frame + bytes;
}

std::string HelloOf(int64_t rank, const std::string& token) {
  std::string bytes;
  ByteWriter(&bytes).Int(rank).Text(token);
  return FrameOf(bytes.size(), kHello, bytes);
}

TEST(ProcessMeeting, AFirstMessageThatIsTooLongIsNotTaken) {
  FirstProcess first(2);
  Caller caller(first.meeting());
  const size_t size = size_t{256} << 20;
  const size_t sent = caller.Send(FrameOf(size, kHello, std::string(size, 'x')));
  EXPECT_LT(sent, size_t{64} << 20) << "no more than the sockets' own room";
  EXPECT_TRUE(caller.IsClosed());
  first.ExpectTheOthersToMeet();
}

TEST(ProcessMeeting, AWrongTokenOrRankIsRefused) {
  FirstProcess first(3);
  const std::string right = first.meeting().token;
  std::string wrong = right;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const std::string text_of_16_exabytes = std::string(8, '\1') + std::string(8, '\xff');
  for (const std::string& hello :
       {HelloOf(1, wrong), HelloOf(1, ""), HelloOf(1, right + "0"), HelloOf(1, right.substr(1)),
        HelloOf(0, right), HelloOf(3, right), HelloOf(-1, right),
        HelloOf(int64_t{1} << 32 | 1, right), FrameOf(0, kHello, ""), FrameOf(3, kHello, "abc"),
        FrameOf(16, kHello, text_of_16_exabytes), FrameOf(40, kAlive, std::string(40, 'a')),
        std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n")}) {
    Caller caller(first.meeting());
    caller.Send(hello);
    EXPECT_TRUE(caller.IsClosed()) << hello;
  }
  first.ExpectTheOthersToMeet();
}

// Silent ones, and ones that never end their hello, are closed in time; the others do not wait.
TEST(ProcessMeeting, SilentAndSlowOnesAreClosed) {
  ProcessGroupOptions options;
  options.hello_limit = absl::Milliseconds(200);
  FirstProcess first(2, options);
  Caller silent(first.meeting()), slow(first.meeting());
  const std::string hello = HelloOf(1, std::string(first.meeting().token.size(), 'x'));
  std::thread drip([&] {
    for (size_t i = 0; i + 1 < hello.size(); ++i) {
      if (slow.Send(hello.substr(i, 1)) == 0) break;
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  EXPECT_TRUE(silent.IsClosed());
  drip.join();
  EXPECT_TRUE(slow.IsClosed());
  first.ExpectTheOthersToMeet();
}

TEST(ProcessMeeting, ManyThatStayDoNotKeepTheOthersOut) {
  ProcessGroupOptions options;
  options.hello_limit = kLong;
  FirstProcess first(3, options);
  std::vector<std::unique_ptr<Caller>> callers;
  for (size_t i = 0; i < 3 * kMostStrangers; ++i) {
    callers.push_back(std::make_unique<Caller>(first.meeting()));
  }
  EXPECT_TRUE(callers[0]->IsClosed()) << "of too many the oldest goes";
  first.ExpectTheOthersToMeet();
}

// The rank of a process that is there is not taken from it.
TEST(ProcessMeeting, ARankComesOnce) {
  ProcessGroupOptions options;
  options.start_limit = absl::Milliseconds(500);
  FirstProcess first(3, options);
  Caller one(first.meeting()), other(first.meeting());
  const std::string hello = HelloOf(1, first.meeting().token);
  one.Send(hello);
  EXPECT_FALSE(one.IsClosed()) << "it is welcome";
  other.Send(hello);
  EXPECT_TRUE(other.IsClosed());
  EXPECT_THAT(first.Ended(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                      "rank 0 waited 500ms for rank 2 of 3 to connect"));
}

TEST(ProcessMeeting, ListensWhereItIsAsked) {
  const auto listen = [](const std::string& where) {
    absl::StatusOr<Listener> listener = Listen(where);
    if (listener.ok()) close(listener->fd);
    return listener;
  };
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Listener loopback, listen("127.0.0.1"));
  EXPECT_THAT(loopback.addresses, ElementsAre("127.0.0.1"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Listener by_name, listen("lo"));
  EXPECT_THAT(by_name.addresses, ElementsAre("127.0.0.1"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Listener all, listen("*"));
  EXPECT_THAT(all.addresses, testing::Contains("127.0.0.1"));
  EXPECT_THAT(listen("eth77"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'eth77' is neither"), HasSubstr("127.0.0.1 (lo)"))));
  FirstProcess alone(1);
  EXPECT_THAT(alone.meeting().addresses, ElementsAre("127.0.0.1")) << "no launcher: this host";
}

// Everybody hears that process 0 cannot listen, and nobody waits for it.
TEST(ProcessMeeting, AnInterfaceThatIsNotThereEndsAll) {
  setenv(kListenVariable, "eth77", 1);
  std::string told;
  EXPECT_THAT(ProcessGroup::Create(0, 2,
                                   [&](int, const std::string& text) {
                                     told = text;
                                     return absl::StatusOr<std::string>(text);
                                   },
                                   {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("PIPELAB_LISTEN=eth77: ")));
  unsetenv(kListenVariable);
  const absl::Status heard = MeetingPlace::FromText(told).status();
  EXPECT_THAT(heard, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("PIPELAB_LISTEN=eth77")));
  EXPECT_TRUE(IsFollowUp(heard));
}

TEST(ProcessMeeting, RefusesOtherTexts) {
  for (const char* text : {"", "token machine 80", "token machine 0 127.0.0.1",
                           "token machine 65536 127.0.0.1", "token machine x 127.0.0.1"}) {
    EXPECT_THAT(MeetingPlace::FromText(text),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(text)));
  }
}

}  // namespace
}  // namespace pipelab
