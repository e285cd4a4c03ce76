// Frames over a connected socket that never blocks: what the processes of a run say to each other.
//
//   FrameLink link(fd);
//   link.Queue(kind, bytes);
//   // on poll(): POLLOUT when link.wants_write(), POLLIN always
//   link.Write();  link.Read(&frames);       // false: the other side is gone
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
  explicit FrameLink(int fd);
  ~FrameLink();
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  int fd() const { return fd_; }
  void Queue(uint8_t kind, absl::string_view bytes);
  bool wants_write() const { return written_ < out_.size(); }
  // Writes what the socket takes now. False: the connection is broken.
  bool Write();
  // Appends the frames that have come. False: the end of the stream, or the connection is broken.
  bool Read(std::vector<Frame>* frames);
  // Tells the other side that nothing more comes; what it still sends can be read.
  void CloseWriting();

 private:
  const int fd_;
  std::string out_, in_;
  size_t written_ = 0;
};

// A socket that listens on every address of this machine, on a port that the system picks.
struct Listener {
  int fd = -1;
  int port = 0;
};
absl::StatusOr<Listener> Listen();
// Numeric addresses of this machine's interfaces that are up, loopback last.
std::vector<std::string> OwnAddresses();
// Starts connecting; -1 where the address cannot even be tried. Poll for POLLOUT, then Connected.
int StartConnecting(const std::string& address, int port);
bool Connected(int fd);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_FRAME_LINK_H_
