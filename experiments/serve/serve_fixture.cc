#include "experiments/serve/serve_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "experiments/plan_commands/plan_commands.h"
#include "glog/logging.h"

namespace pipelab {

TestServer::TestServer(const ServeLimits& limits, const std::string& token) {
  LinkPlanCommands();
  auto pool = CommandPool::Start(limits);
  CHECK(pool.ok()) << pool.status();
  pool_ = *std::move(pool);
  PageServerOptions options;
  options.token = token;
  server_ = std::make_unique<PageServer>(options, limits, pool_.get());
  const absl::Status bound = server_->Bind();
  CHECK(bound.ok()) << bound;
  thread_ = std::thread([this] { server_->Run(); });
}

TestServer::~TestServer() {
  // httplib can be stopped once it runs.
  while (!server_->server().is_running()) absl::SleepFor(absl::Milliseconds(1));
  server_->Stop();
  thread_.join();
}

std::string TestServer::host() const { return absl::StrCat("127.0.0.1:", port()); }

RawClient::RawClient(int port) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return;
  close(fd_);
  fd_ = -1;
}

RawClient::~RawClient() {
  if (fd_ >= 0) close(fd_);
}

bool RawClient::Send(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void RawClient::SendEnd() { shutdown(fd_, SHUT_WR); }

std::string RawClient::ReadAll(absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  std::string all;
  std::array<char, 1 << 16> part;
  for (;;) {
    pollfd ready = {fd_, POLLIN, 0};
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) return all;
    const ssize_t got = recv(fd_, part.data(), part.size(), 0);
    if (got <= 0) return all;
    all.append(part.data(), static_cast<size_t>(got));
  }
}

HttpAnswer RawClient::Read(absl::Duration limit) {
  const std::string all = ReadAll(limit);
  const size_t end = all.find("\r\n\r\n");
  HttpAnswer answer;
  if (end == std::string::npos || !absl::SimpleAtoi(all.substr(9, 3), &answer.status))
    return answer;
  answer.head = all.substr(0, end);
  answer.body = all.substr(end + 4);
  return answer;
}

std::string PostText(const std::string& host, absl::string_view path, absl::string_view body,
                     absl::string_view more) {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: ", host,
                      "\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                      "\r\nConnection: close\r\n", more, "\r\n", body);
}

TestServer* ServeTest::server_ = nullptr;

void ServeTest::SetUpTestSuite() {
  ServeLimits limits;
  limits.read_time = absl::Seconds(2);
  limits.idle_time = absl::Seconds(2);
  limits.command_time = absl::Seconds(60);
  server_ = new TestServer(limits);
}

void ServeTest::TearDownTestSuite() {
  delete server_;
  server_ = nullptr;
}

HttpAnswer ServeTest::Ask(absl::string_view request) {
  RawClient client(server_->port());
  client.Send(request);
  return client.Read();
}

HttpAnswer ServeTest::Post(absl::string_view command, absl::string_view body) {
  return Ask(PostText(server_->host(), absl::StrCat("/api/", command), body));
}

}  // namespace pipelab
