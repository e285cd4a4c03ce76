// Damaged inputs from one seed.
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(RequestsFuzz, Bodies) {
  RunMutations({R"({"words": ["mine.csv:P=4,M=8,layout=1/2"], "options": {"forward": [1, 2],
 "bandwidth": "25 GB/s", "devices": 4, "cluster": "/etc/passwd"}, "files": {"mine.csv": "0F0"},
 "drawings": ["timeline"], "id": "a1"})",
                R"({"options": {"batch": 64, "schemes": "1f1b,zbv", "top": 3}})"},
               20000);
}

TEST(RequestsFuzz, Heads) {
  RunMutations(
      {"POST /api/simulate HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 10\r\n"
       "Content-Type: application/json\r\nCookie: pipelab_token=abc\r\n\r\n",
       "GET /?token=abc HTTP/1.0\r\nHost: [::1]:8080\r\nTransfer-Encoding: chunked\r\n\r\n"},
      20000);
}

}  // namespace
}  // namespace pipelab
