#include "experiments/serve/bounded_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/serve/connection.h"
#include "experiments/serve/http_head.h"

namespace pipelab {
namespace {

thread_local const ClientConnection* t_connection = nullptr;  // of this thread's request
thread_local int64_t t_unread = 0;                            // bytes of its answer

// httplib would compress with Brotli's best and slowest: ten seconds for a large timeline.
void TakesPlainAnswers(httplib::Request& request) { request.headers.erase("Accept-Encoding"); }

constexpr int kBacklog = 256;  // httplib's 5 makes clients wait a second when many come at once

}  // namespace

// A thread a connection; connections beyond their number are refused by the thread that accepts.
class BoundedServer::Threads : public httplib::TaskQueue {
 public:
  explicit Threads(BoundedServer* server) : server_(server) {}

  void enqueue(std::function<void()> serve) override {
    if (server_->open_.fetch_add(1) >= server_->limits_.connections) return Inline(serve);
    const auto task = std::make_shared<std::function<void()>>(std::move(serve));
    try {
      std::thread([this, task] {
        (*task)();
        Leave();
      }).detach();
    } catch (const std::system_error&) {  // no thread is to be had
      Inline(*task);
    }
  }

  void shutdown() override {
    server_->stopping_ = true;
    std::unique_lock<std::mutex> lock(server_->mutex_);
    server_->closed_.wait(lock, [this] { return server_->open_ == 0; });
  }

 private:
  void Inline(const std::function<void()>& serve) {
    t_refuses = true;
    serve();
    t_refuses = false;
    Leave();
  }
  void Leave() {
    // Under the lock: the server may be gone once it is zero.
    const std::lock_guard<std::mutex> lock(server_->mutex_);
    --server_->open_;
    server_->closed_.notify_all();
  }

 public:
  static thread_local bool t_refuses;

 private:
  BoundedServer* const server_;
};

thread_local bool BoundedServer::Threads::t_refuses = false;

BoundedServer::BoundedServer(const ServeLimits& limits) : limits_(limits) {
  new_task_queue = [this] { return new Threads(this); };
  set_payload_max_length(limits.body_bytes);
  set_keep_alive_max_count(static_cast<size_t>(limits.requests_of_connection));
  set_keep_alive_timeout(absl::ToInt64Seconds(limits.idle_time));  // as answers say
}

BoundedServer::~BoundedServer() {
  stopping_ = true;
  std::unique_lock<std::mutex> lock(mutex_);
  closed_.wait(lock, [this] { return open_ == 0; });
}

absl::Status BoundedServer::Bind(const std::string& address, int port) {
  port_ = port;
  // Another program on the port must be an error: httplib would share it.
  set_socket_options([](socket_t fd) {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  set_tcp_nodelay(true);
  if (port == 0) {
    port_ = bind_to_any_port(address);
  } else if (!bind_to_port(address, port)) {
    port_ = -1;
  }
  if (port_ < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--address=", address, " --port=", port,
                     ": cannot be listened on; is another program there? Give another port"));
  }
  ::listen(svr_sock_, kBacklog);
  return absl::OkStatus();
}

bool BoundedServer::ClientIsGone() { return t_connection != nullptr && t_connection->IsGone(); }

bool BoundedServer::ClientIsTooSlow() {
  return t_connection != nullptr && t_connection->too_slow();
}

bool BoundedServer::HasRoom(size_t bytes) {
  const auto more = static_cast<int64_t>(bytes);
  if (unread_.fetch_add(more) + more > limits_.unread_bytes) {
    unread_ -= more;
    return false;
  }
  t_unread += more;
  return true;
}

BoundedServer::Counts BoundedServer::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

bool BoundedServer::process_and_close_socket(socket_t fd) {
  if (Threads::t_refuses) {
    const std::string text = RefusalText(
        503,
        absl::StrCat("more than ", limits_.connections, " connections are open; try again soon"));
    // This thread accepts: it waits for nobody.
    if (send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
      ::shutdown(fd, SHUT_WR);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_.too_many;
  } else {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++counts_.connections;
    }
    Serve(fd);
  }
  ::close(fd);
  return true;
}

void BoundedServer::Serve(int fd) {
  ClientConnection connection(fd, limits_, &stopping_);
  t_connection = &connection;
  std::string text;
  const auto count = [this](int64_t Counts::*what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++(counts_.*what);
  };
  const auto refuse = [&](int64_t Counts::*what, int status, absl::string_view reason) {
    count(what);
    connection.Refuse(RefusalText(status, reason));
  };
  for (int i = 1; i <= limits_.requests_of_connection && !stopping_; ++i) {
    const ClientConnection::Head read = connection.ReadHead(&text);
    if (read == ClientConnection::Head::kEnd) break;
    if (read == ClientConnection::Head::kTooSlow) {
      refuse(&Counts::too_slow, 408, "the head of the request comes too slowly");
      break;
    }
    const HttpHead head =
        read == ClientConnection::Head::kTooLong
            ? HttpHead{431, absl::StrCat("a head of more than ", limits_.head_bytes, " bytes")}
            : ReadHttpHead(text, limits_);
    if (head.status != 0) {
      refuse(&Counts::refused, head.status, head.reason);
      break;
    }
    count(&Counts::requests);
    connection.BeginRequest(text, head.body_bytes);
    bool closed = false;
    const bool last = i == limits_.requests_of_connection;
    const bool answered = process_request(connection, last, closed, &TakesPlainAnswers);
    unread_ -= std::exchange(t_unread, 0);
    if (connection.too_slow()) count(&Counts::too_slow);
    if (!answered || closed || !connection.whole()) break;
  }
  t_connection = nullptr;
}

}  // namespace pipelab
