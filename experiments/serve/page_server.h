// The page of `pipelab serve` and what it asks for: the static page from memory, and commands as
// POST /api/COMMAND (command_request.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(auto pool, CommandPool::Start(limits));
//   PageServer server({"127.0.0.1", "", 8080}, limits, pool.get());
//   PIPELAB_RETURN_IF_ERROR(server.Bind());
//   server.Run();                                           // until Stop(), from any thread
//
// synthesize answers in lines of JSON as it finds shorter orders, {"news": ...}, and a last one,
// {"status": 200, "answer": ...}; where nothing was found before the answer, it answers as others
// do. POST /api/stop {"id": ...} ends the call that came with this id with its best so far.
//
// Refused: requests for another host's name (421), from another site's page (403), without the
// token where there is one (401), and bodies that are not application/json (415).
#ifndef PIPELAB_EXPERIMENTS_SERVE_PAGE_SERVER_H_
#define PIPELAB_EXPERIMENTS_SERVE_PAGE_SERVER_H_

#include <string>

#include "absl/status/status.h"
#include "experiments/serve/bounded_server.h"
#include "experiments/serve/command_pool.h"
#include "experiments/serve/limits.h"

namespace pipelab {

struct PageServerOptions {
  std::string address = "127.0.0.1";
  std::string token;  // empty: none is asked for
  int port = 0;       // 0: any
};

class PageServer {
 public:
  PageServer(const PageServerOptions& options, const ServeLimits& limits, CommandPool* pool);

  absl::Status Bind() { return server_.Bind(options_.address, options_.port); }
  int port() const { return server_.port(); }
  // What a browser opens, with the token.
  std::string Url() const;
  void Run() { server_.listen_after_bind(); }
  void Stop() { server_.stop(); }
  const BoundedServer& server() const { return server_; }

 private:
  void AddPages();
  void AddApi();
  // True: refused, in `response`.
  bool Refuses(const httplib::Request& request, httplib::Response* response) const;
  void Synthesize(const httplib::Request& request, httplib::Response* response);

  const PageServerOptions options_;
  CommandPool* const pool_;
  BoundedServer server_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_PAGE_SERVER_H_
