#include "experiments/serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/time/clock.h"

namespace pipelab {
namespace {

constexpr absl::Duration kLongestPoll = absl::Milliseconds(100);
constexpr absl::Duration kLinger = absl::Milliseconds(500);

}  // namespace

bool ClientConnection::Wait(int16_t events, absl::Time deadline) const {
  while (!*stopping_) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    pollfd ready = {fd_, events, 0};
    // Rounded up: else the last part of a millisecond would be waited for in a loop.
    const auto ms = static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kLongestPoll))) + 1;
    const int got = poll(&ready, 1, ms);
    if (got > 0) return true;
    if (got < 0 && errno != EINTR) return false;
  }
  return false;
}

int ClientConnection::Fill(absl::Time deadline) {
  std::array<char, 4096> part;
  while (Wait(POLLIN, deadline)) {
    const ssize_t got = recv(fd_, part.data(), part.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return 0;
    buffer_.append(part.data(), static_cast<size_t>(got));
    return 1;
  }
  return -1;
}

ClientConnection::Head ClientConnection::ReadHead(std::string* head) {
  head->clear();
  const absl::Time idle_until = absl::Now() + limits_.idle_time;
  bool begun = !buffer_.empty();
  read_until_ = absl::Now() + limits_.read_time;
  for (size_t looked = 0;;) {
    // Lines that are empty before a request are let be.
    while (looked == 0 && buffer_.size() >= 2 && buffer_.compare(0, 2, "\r\n") == 0) {
      buffer_.erase(0, 2);
    }
    const size_t end = buffer_.find("\r\n\r\n", looked);
    if (end != std::string::npos && end + 4 <= limits_.head_bytes) {
      *head = buffer_.substr(0, end + 4);
      buffer_.erase(0, end + 4);
      return Head::kRead;
    }
    if (buffer_.size() > limits_.head_bytes) return Head::kTooLong;
    looked = buffer_.size() < 3 ? 0 : buffer_.size() - 3;
    const int got = Fill(begun ? read_until_ : idle_until);
    if (got == 0) return Head::kEnd;
    if (got < 0) return begun && !*stopping_ ? Head::kTooSlow : Head::kEnd;
    if (!begun) read_until_ = absl::Now() + limits_.read_time;
    begun = true;
  }
}

void ClientConnection::BeginRequest(absl::string_view head, size_t body_bytes) {
  head_ = std::string(head);
  body_left_ = body_bytes;
  too_slow_ = false;
  read_until_ = absl::Now() + limits_.read_time;
}

ssize_t ClientConnection::read(char* to, size_t size) {
  if (!head_.empty()) {
    const size_t some = std::min(size, head_.size());
    std::memcpy(to, head_.data(), some);
    head_.erase(0, some);
    return static_cast<ssize_t>(some);
  }
  if (body_left_ == 0) return 0;
  if (buffer_.empty()) {
    const int got = Fill(read_until_);
    too_slow_ = got < 0;
    if (got <= 0) return -1;
  }
  const size_t some = std::min({size, buffer_.size(), body_left_});
  std::memcpy(to, buffer_.data(), some);
  buffer_.erase(0, some);
  body_left_ -= some;
  return static_cast<ssize_t>(some);
}

ssize_t ClientConnection::write(const char* text, size_t size) {
  // An answer's parts may come minutes apart (news); the client has its time for each.
  const absl::Time until = absl::Now() + limits_.write_time;
  size_t sent = 0;
  while (sent < size) {
    const ssize_t some = send(fd_, text + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (some > 0) {
      sent += static_cast<size_t>(some);
      continue;
    }
    if (some < 0 && errno == EINTR) continue;
    if (some == 0 || errno != EAGAIN || !Wait(POLLOUT, until)) return -1;
  }
  return static_cast<ssize_t>(size);
}

void ClientConnection::Refuse(absl::string_view text) {
  if (write(text.data(), text.size()) < 0) return;
  // Bytes that nobody has read would make the system drop the answer, too.
  shutdown(fd_, SHUT_WR);
  const absl::Time until = absl::Now() + kLinger;
  for (int i = 0; i < 64 && Fill(until) > 0; ++i) buffer_.clear();
}

// A client that says that it sends no more counts as gone: a browser that leaves says the same.
bool ClientConnection::IsGone() const {
  pollfd ready = {fd_, POLLRDHUP, 0};
  return *stopping_ ||
         (poll(&ready, 1, 0) > 0 && (ready.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

void ClientConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();  // who asks is no part of an answer
  port = 0;
}

void ClientConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace pipelab
