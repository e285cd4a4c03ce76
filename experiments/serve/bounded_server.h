// httplib's server with bounds on everything that a client decides: the size and time of a request,
// the time that it takes to read an answer, requests of a connection, and connections.
//
//   BoundedServer server(limits);
//   server.Get("/", ...);                                   // httplib's
//   PIPELAB_RETURN_IF_ERROR(server.Bind("127.0.0.1", 8080));  // 0: any port
//   server.listen_after_bind();                              // until stop()
//
// httplib reads heads without an end and waits for each byte anew; here a head is read whole before
// httplib sees it (http_head.h), from a connection with one deadline. Refusals are JSON with one
// line and close the connection: 408 for what comes too slowly, 503 beyond the connections there
// may be.
#ifndef PIPELAB_EXPERIMENTS_SERVE_BOUNDED_SERVER_H_
#define PIPELAB_EXPERIMENTS_SERVE_BOUNDED_SERVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "experiments/serve/limits.h"
#include "httplib.h"

namespace pipelab {

class BoundedServer : public httplib::Server {
 public:
  explicit BoundedServer(const ServeLimits& limits);
  ~BoundedServer() override;

  // FailedPrecondition when the address or the port is not to be had.
  absl::Status Bind(const std::string& address, int port);
  int port() const { return port_; }

  // In a handler: whether its client has gone.
  static bool ClientIsGone();
  // And whether its body did not come in time.
  static bool ClientIsTooSlow();
  // And whether there is room for an answer of so many bytes until its client has read it.
  bool HasRoom(size_t bytes);

  struct Counts {
    int64_t connections = 0, requests = 0, refused = 0, too_many = 0, too_slow = 0;
  };
  Counts counts() const;
  int open_connections() const { return open_; }

 private:
  class Threads;
  bool process_and_close_socket(socket_t fd) override;
  void Serve(int fd);

  const ServeLimits limits_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> open_{0};
  std::atomic<int64_t> unread_{0};  // bytes
  mutable std::mutex mutex_;
  std::condition_variable closed_;
  Counts counts_;  // guarded by mutex_
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_BOUNDED_SERVER_H_
