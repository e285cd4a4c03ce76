// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. The bytes as what a stranger sends to a process's port, and as what a rendezvous says.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/comm/frame_link.h"
#include "kernels/comm/process_meeting.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto meeting = pipelab::MeetingPlace::FromText(bytes);
  if (meeting.ok()) {
    const auto again = pipelab::MeetingPlace::FromText(meeting->ToText());
    if (!again.ok() || again->ToText() != meeting->ToText()) __builtin_trap();
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  const size_t most = std::min<size_t>(size, 4096);  // fits the socket's buffer
  const bool sent = send(ends[1], data, most, MSG_NOSIGNAL) == static_cast<ssize_t>(most);
  close(ends[1]);
  pipelab::FrameLink link(ends[0]);
  link.SetLargest(pipelab::kLargestHello);
  std::vector<pipelab::Frame> frames;
  while (sent && link.Read(&frames)) {
  }
  size_t taken = 0;
  for (const pipelab::Frame& frame : frames) {
    if (frame.bytes.size() > pipelab::kLargestHello) __builtin_trap();
    taken += frame.bytes.size() + 9;
  }
  if (taken > most) __builtin_trap();
  return 0;
}
