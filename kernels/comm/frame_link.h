// Frames over a connected socket that never blocks: what the processes of a run say to each other.
//
//   FrameLink link(fd);
//   link.Queue(kind, bytes);
//   // on poll(): POLLOUT when link.wants_write(), POLLIN always
//   link.Write();  link.Read(&frames);       // false: the other side is gone
//
// One that is still a stranger may say little: with SetLargest a longer frame breaks the connection
// as soon as its length is there, and nothing of it is kept. Whoever sends without end takes no
// more than kMostPerRead of a poll from the others.
//
// Owns the descriptor. Thread-compatible.
#ifndef PIPELAB_KERNELS_COMM_FRAME_LINK_H_
#define PIPELAB_KERNELS_COMM_FRAME_LINK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pipelab {

struct Frame {
  uint8_t kind = 0;
  std::string bytes;
};

class FrameLink {
 public:
  static constexpr size_t kMostPerRead = 1 << 20;  // bytes

  explicit FrameLink(int fd);
  ~FrameLink();
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  int fd() const { return fd_; }
  void Queue(uint8_t kind, absl::string_view bytes);
  bool wants_write() const { return written_ < out_.size(); }
  // Writes what the socket takes now. False: the connection is broken.
  bool Write();
  // Appends the frames that have come; there may be more than one Read takes. False: the end of the
  // stream, a frame that is too long, or the connection is broken.
  bool Read(std::vector<Frame>* frames);
  // Bytes of a frame that the other side may send from now on.
  void SetLargest(uint64_t bytes) { largest_ = bytes; }
  // Tells the other side that nothing more comes; what it still sends can be read.
  void CloseWriting();

 private:
  const int fd_;
  uint64_t largest_ = uint64_t{1} << 34;  // a length beyond this is no frame of ours
  std::string out_, in_;
  size_t written_ = 0;
};

// A socket that listens on a port that the system picks.
struct Listener {
  int fd = -1;
  int port = 0;
  std::vector<std::string> addresses;  // numeric, loopback last: where it can be reached
};
// `where`: "*" for every address of this machine, or one of them, or the name of an interface
// ("lo", "eth0"; its first address, IPv4's if there is one). InvalidArgument where there is no such
// one.
absl::StatusOr<Listener> Listen(const std::string& where);
// Starts connecting; -1 where the address cannot even be tried. Poll for POLLOUT, then Connected.
int StartConnecting(const std::string& address, int port);
bool Connected(int fd);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_FRAME_LINK_H_
