// A server on a free port of loopback with short limits, for tests.
//
//   TEST_F(ServeTest, Lists) { EXPECT_EQ(Post("list", R"({"words": ["models"]})").status, 200); }
#ifndef PIPELAB_EXPERIMENTS_SERVE_SERVE_FIXTURE_H_
#define PIPELAB_EXPERIMENTS_SERVE_SERVE_FIXTURE_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "experiments/serve/page_server.h"
#include "gtest/gtest.h"

namespace pipelab {

struct HttpAnswer {
  int status = 0;  // 0: none came
  std::string head, body;
};

// A server of its own: the process for commands is forked before the threads.
class TestServer {
 public:
  explicit TestServer(const ServeLimits& limits, const std::string& token = "");
  ~TestServer();
  int port() const { return server_->port(); }
  std::string host() const;  // "127.0.0.1:PORT"
  CommandPool& pool() { return *pool_; }
  const PageServer& server() const { return *server_; }

 private:
  std::unique_ptr<CommandPool> pool_;
  std::unique_ptr<PageServer> server_;
  std::thread thread_;
};

// A client that sends what it likes.
class RawClient {
 public:
  explicit RawClient(int port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  bool Send(absl::string_view text);
  void SendEnd();  // nothing follows
  // What comes until the server closes, or for so long.
  std::string ReadAll(absl::Duration limit = absl::Seconds(60));
  HttpAnswer Read(absl::Duration limit = absl::Seconds(60));

 private:
  int fd_ = -1;
};

// "POST /api/COMMAND ..." that closes the connection; `more` are further lines of the head.
std::string PostText(const std::string& host, absl::string_view path, absl::string_view body,
                     absl::string_view more = "");

class ServeTest : public testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  static HttpAnswer Ask(absl::string_view request);  // as it stands
  static HttpAnswer Post(absl::string_view command, absl::string_view body);

  static TestServer* server_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_SERVE_FIXTURE_H_
