// The head of an HTTP request, read before a library or a handler sees it.
//
//   const HttpHead head = ReadHttpHead(text, limits);       // up to the empty line, with it
//   if (head.status != 0) ...                               // answer that, and close
//
// Refused here: what is no HTTP/1.1 or 1.0 (400), other methods than GET, HEAD and POST (405), long
// targets (414), many or long lines (431), a body without a length or in chunks (411), with two
// lengths (400), too long (413), or compressed (415), and several ranges (416).
#ifndef PIPELAB_EXPERIMENTS_SERVE_HTTP_HEAD_H_
#define PIPELAB_EXPERIMENTS_SERVE_HTTP_HEAD_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "experiments/serve/limits.h"

namespace pipelab {

struct HttpHead {
  int status = 0;      // of the refusal; 0: none
  std::string reason;  // one line
  size_t body_bytes = 0;
};

HttpHead ReadHttpHead(absl::string_view text, const ServeLimits& limits);

// "HTTP/1.1 400 Bad Request ... {"error": "..."}", after which the connection closes.
std::string RefusalText(int status, absl::string_view reason);
// {"error": "one line"}
std::string ErrorJson(absl::string_view reason);

// Whether a Host header names this server, so that no other site's name leads here (DNS rebinding):
// "localhost", "127.0.0.1" and "[::1]" for loopback, and the address given, each with the port.
bool IsOwnHost(absl::string_view host, absl::string_view address, int port);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_HTTP_HEAD_H_
