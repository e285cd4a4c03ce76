// One client's connection with deadlines: for BoundedServer.
//
//   ClientConnection connection(fd, limits);
//   std::string head;
//   // Then httplib reads the body.
//   if (connection.ReadHead(&head) == ClientConnection::Head::kRead) ...
//
// Reads and writes of httplib's fail once the time for the request or for the answer is over.
#ifndef PIPELAB_EXPERIMENTS_SERVE_CONNECTION_H_
#define PIPELAB_EXPERIMENTS_SERVE_CONNECTION_H_

#include <atomic>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "experiments/serve/limits.h"
#include "httplib.h"

namespace pipelab {

class ClientConnection : public httplib::Stream {
 public:
  // Does not close `fd`. `stopping` ends waits early.
  ClientConnection(int fd, const ServeLimits& limits, const std::atomic<bool>* stopping)
      : fd_(fd), limits_(limits), stopping_(stopping) {}

  enum class Head { kRead, kEnd, kTooSlow, kTooLong };
  // The next request's head, with the empty line; kEnd: no request comes.
  Head ReadHead(std::string* head);
  // What httplib will read: the head, and a body of so many bytes.
  void BeginRequest(absl::string_view head, size_t body_bytes);
  // Whether it has read all of it, so that another request may follow.
  bool whole() const { return head_.empty() && body_left_ == 0; }
  bool too_slow() const { return too_slow_; }  // the body did not come in its time

  // An answer that httplib does not write; then waits a little for the client to read it.
  void Refuse(absl::string_view text);
  bool IsGone() const;

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !IsGone(); }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* text, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return fd_; }

 private:
  // Waits for `events`; false: the deadline, an error, or the server stops.
  bool Wait(int16_t events, absl::Time deadline) const;
  // Some bytes into buffer_; 0: the end; -1: none until then.
  int Fill(absl::Time deadline);

  const int fd_;
  const ServeLimits limits_;
  const std::atomic<bool>* const stopping_;
  std::string buffer_;  // read, and not of the head
  std::string head_;    // not given to httplib yet
  size_t body_left_ = 0;
  bool too_slow_ = false;
  absl::Time read_until_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_CONNECTION_H_
