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

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kHead = 8 + 1;  // length of the bytes, kind

void SetUp(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

socklen_t AddressSize(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

// The address of an interface that is up.
struct Address {
  std::string interface, number;
  sockaddr_storage socket{};
  bool loopback = false;
};

// Loopback last, an interface's IPv4 address first.
std::vector<Address> OwnAddresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::vector<Address> addresses;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr)) {
      continue;  // means nothing on another machine
    }
    Address address;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.socket, i->ifa_addr, size);
    char name[NI_MAXHOST];
    if (getnameinfo(i->ifa_addr, size, name, sizeof(name), nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    address.interface = i->ifa_name;
    address.number = name;
    address.loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    addresses.push_back(std::move(address));
  }
  freeifaddrs(all);
  std::stable_sort(addresses.begin(), addresses.end(), [](const Address& a, const Address& b) {
    return std::make_pair(a.loopback, a.socket.ss_family != AF_INET) <
           std::make_pair(b.loopback, b.socket.ss_family != AF_INET);
  });
  return addresses;
}

// On a port that the system picks.
absl::StatusOr<Listener> ListenAt(sockaddr_storage address) {
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError("no socket to listen on");
  const int off = 0;
  if (address.ss_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  socklen_t size = AddressSize(address);
  auto* const socket_address = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, socket_address, size) != 0 || listen(fd, 1024) != 0 ||
      getsockname(fd, socket_address, &size) != 0) {
    const absl::Status error = SystemError("cannot listen");
    close(fd);
    return error;
  }
  SetUp(fd);
  return Listener{
      fd,
      ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&address)->sin_port),
      {}};
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
  // No more than one frame of the length allowed, so that a stranger's bytes are not even taken.
  const uint64_t most = std::min<uint64_t>(kMostPerRead, kHead + largest_);
  for (uint64_t taken = 0; taken < most;) {
    const size_t room = std::min<uint64_t>(sizeof(buffer), most - taken);
    const ssize_t n = recv(fd_, buffer, room, MSG_DONTWAIT);
    if (n > 0) {
      in_.append(buffer, static_cast<size_t>(n));
      taken += static_cast<uint64_t>(n);
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
    if (size > largest_) {
      in_.clear();
      return false;
    }
    if (in_.size() - at - kHead < size) break;
    frames->push_back({static_cast<uint8_t>(in_[at + 8]), in_.substr(at + kHead, size)});
    at += kHead + size;
  }
  in_.erase(0, at);
  return open;
}

void FrameLink::CloseWriting() { shutdown(fd_, SHUT_WR); }

absl::StatusOr<Listener> Listen(const std::string& where) {
  const std::vector<Address> own = OwnAddresses();
  if (where == "*") {
    for (const int family : {AF_INET6, AF_INET}) {
      sockaddr_storage any{};
      any.ss_family = static_cast<sa_family_t>(family);
      absl::StatusOr<Listener> listener = ListenAt(any);
      if (!listener.ok()) continue;
      for (const Address& address : own) listener->addresses.push_back(address.number);
      return listener;
    }
    return SystemError("no socket to listen on");
  }
  std::vector<std::string> names;
  for (const Address& address : own) {
    if (where == address.interface || where == address.number) {
      PIPELAB_ASSIGN_OR_RETURN(Listener listener, ListenAt(address.socket));
      listener.addresses = {address.number};
      return listener;
    }
    names.push_back(absl::StrCat(address.number, " (", address.interface, ")"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", where, "' is neither '*' nor an address or interface of this machine: ",
                   absl::StrJoin(names, ", ")));
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
