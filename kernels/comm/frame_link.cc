#include "kernels/comm/frame_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

constexpr size_t kHead = 8 + 1;         // length of the bytes, kind
constexpr uint64_t kMost = 1ull << 34;  // a length beyond this is no frame of ours

void SetUp(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace

FrameLink::FrameLink(int fd) : fd_(fd) { SetUp(fd); }
FrameLink::~FrameLink() { close(fd_); }

void FrameLink::Queue(uint8_t kind, absl::string_view bytes) {
  if (written_ == out_.size()) {
    out_.clear();
    written_ = 0;
  }
  const uint64_t size = bytes.size();
  out_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  out_.push_back(static_cast<char>(kind));
  out_.append(bytes.data(), bytes.size());
}

bool FrameLink::Write() {
  while (wants_write()) {
    const ssize_t n =
        send(fd_, out_.data() + written_, out_.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      written_ += static_cast<size_t>(n);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else {
      return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }
  return true;
}

bool FrameLink::Read(std::vector<Frame>* frames) {
  bool open = true;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) {
      in_.append(buffer, static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    open = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    break;
  }
  size_t at = 0;
  while (in_.size() - at >= kHead) {
    uint64_t size;
    std::memcpy(&size, in_.data() + at, sizeof(size));
    if (size > kMost) return false;
    if (in_.size() - at - kHead < size) break;
    frames->push_back({static_cast<uint8_t>(in_[at + 8]), in_.substr(at + kHead, size)});
    at += kHead + size;
  }
  in_.erase(0, at);
  return open;
}

void FrameLink::CloseWriting() { shutdown(fd_, SHUT_WR); }

absl::StatusOr<Listener> Listen() {
  for (const int family : {AF_INET6, AF_INET}) {
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const int off = 0;
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      close(fd);
      continue;
    }
    SetUp(fd);
    const int port = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
    return Listener{fd, port};
  }
  return SystemError("no socket to listen on");
}

std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses, loopback;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {"127.0.0.1"};
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr)) {
      continue;  // means nothing on another machine
    }
    char name[NI_MAXHOST];
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(i->ifa_addr, size, name, sizeof(name), nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    ((i->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : addresses).emplace_back(name);
  }
  freeifaddrs(all);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

int StartConnecting(const std::string& address, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &found) != 0) return -1;
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

bool Connected(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace pipelab
