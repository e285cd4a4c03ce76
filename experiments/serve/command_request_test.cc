#include "experiments/serve/command_request.h"

#include "absl/flags/flag.h"
#include "experiments/flags/flag_scope.h"
#include "experiments/flags/flags.h"
#include "experiments/serve/http_head.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/secret.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(CommandRequest, IsACommandLine) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CommandRequest r,
                               ParseCommandRequest("simulate", R"({"words": ["mine.csv:T=2"],
          "options": {"forward": [1, 2.5, "3"], "devices": 4, "recompute": true, "layout": "1/1",
                      "bandwidth": "25 GB/s", "p2p_latency": 0.1},
          "files": {"mine.csv": "0F0,0B0\n"}, "drawings": ["timeline", "memory"], "id": "a1"})"));
  EXPECT_THAT(r.words, ElementsAre("simulate", "mine.csv:T=2"));
  EXPECT_THAT(r.options, ElementsAre("--bandwidth=25 GB/s", "--devices=4", "--forward=1,2.5,3",
                                     "--layout=1/1", "--p2p_latency=0.1", "--recompute=true"));
  EXPECT_THAT(r.files, ElementsAre(Pair("mine.csv", "0F0,0B0\n")));
  EXPECT_THAT(r.drawings, ElementsAre("timeline", "memory"));
  EXPECT_EQ(r.id, "a1");
}

TEST(CommandRequest, LayoutsHaveSlashesAndPathsDoNot) {
  EXPECT_THAT(
      ParseCommandRequest("simulate", R"({"words": ["interleaved:P=2,layout=1+1/1+1"]})").status(),
      IsOk());
  for (const char* word : {"/etc/passwd", "../x.csv", "a/b.csv:P=2", "1f1b:P=2,model=/x.json",
                           "1f1b:P=2,layout=1/1,model=a/b.json"}) {
    const auto r = ParseCommandRequest("simulate", std::string("{\"words\": [\"") + word + "\"]}");
    EXPECT_THAT(std::string(r.status().message()), HasSubstr("names a file of the server")) << word;
  }
}

TEST(CommandRequest, SizesHaveLimits) {
  const FlagScope scope;
  ServeLimits limits;
  limits.passes = 1000;
  EXPECT_THAT(CheckSizes({"simulate", "1f1b:P=10,M=100"}, limits), IsOk());
  EXPECT_THAT(CheckSizes({"simulate", "1f1b:P=10,M=101"}, limits),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 1000 here")));
  EXPECT_THAT(CheckSizes({"simulate", "1f1b:P=10,M=10,V=11"}, limits),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 1000 here")));
  EXPECT_THAT(
      CheckSizes({"compare", "1f1b:P=2,M=2", "zbv:P=2000,M=1"}, limits),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("devices=2000: at most 1024")));
  EXPECT_THAT(ParseFlags({"--devices=9000", "--batch=64"}).status(), IsOk());
  EXPECT_THAT(CheckSizes({"search"}, limits), StatusIs(absl::StatusCode::kInvalidArgument,
                                                       HasSubstr("--devices=9000: at most 4096")));
  EXPECT_THAT(ParseFlags({"--time_limit=90s"}).status(), IsOk());
  EXPECT_THAT(
      CheckSizes({"synthesize", "1f1b:P=2,M=2"}, limits),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--time_limit=1m30s: at most 1m")));
}

TEST(HttpHead, TakesWhatABrowserSends) {
  const HttpHead head = ReadHttpHead(
      "POST /api/list HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 12\r\nAccept: */*\r\n\r\n",
      {});
  EXPECT_EQ(head.status, 0) << head.reason;
  EXPECT_EQ(head.body_bytes, 12);
}

TEST(HttpHead, Refuses) {
  const std::string host = "Host: a\r\n";
  const struct {
    int status;
    std::string head;
  } cases[] = {
      {400, "\r\n\r\n"},
      {400, "GET /\r\n" + host + "\r\n"},
      {400, "GET / HTTP/2.0\r\n" + host + "\r\n"},
      {400, "GET  / HTTP/1.1\r\n" + host + "\r\n"},
      {400, "GET /\x01 HTTP/1.1\r\n" + host + "\r\n"},
      {400, "GET /\xff HTTP/1.1\r\n" + host + "\r\n"},
      {400, "GET http://a/ HTTP/1.1\r\n" + host + "\r\n"},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n" + host + host + "\r\n"},
      {400, "GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n" + host + "Name : x\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n" + host + "Name: a\nb\r\n\r\n"},
      {405, "DELETE / HTTP/1.1\r\n" + host + "\r\n"},
      {405, "CONNECT / HTTP/1.1\r\n" + host + "\r\n"},
      {411, "POST / HTTP/1.1\r\n" + host + "\r\n"},
      {411, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999999\r\n\r\n"},
      {413, "POST / HTTP/1.1\r\n" + host + "Content-Length: 1048577\r\n\r\n"},
      {414, "GET /" + std::string(3000, 'a') + " HTTP/1.1\r\n" + host + "\r\n"},
      {431, "GET / HTTP/1.1\r\n" + host + "A: " + std::string(20000, 'a') + "\r\n\r\n"},
  };
  for (const auto& c : cases) {
    const HttpHead head = ReadHttpHead(c.head, {});
    EXPECT_EQ(head.status, c.status) << c.head.substr(0, 80);
    EXPECT_FALSE(head.reason.empty());
  }
  std::string many = "GET / HTTP/1.1\r\n" + host;
  for (int i = 0; i < 70; ++i) many += "A: b\r\n";
  EXPECT_EQ(ReadHttpHead(many + "\r\n", {}).status, 431);
}

TEST(IsOwnHost, RefusesOtherNames) {
  for (const char* own : {"127.0.0.1:80", "localhost:80", "LOCALHOST:80", "[::1]:80"}) {
    EXPECT_TRUE(IsOwnHost(own, "127.0.0.1", 80)) << own;
  }
  for (const char* other : {"", "127.0.0.1", "127.0.0.1:8080", "evil.example:80", "10.0.0.1:80",
                            "127.0.0.1.evil.example:80", "evil.example:80:80"}) {
    EXPECT_FALSE(IsOwnHost(other, "127.0.0.1", 80)) << other;
  }
  EXPECT_TRUE(IsOwnHost("10.0.0.1:80", "0.0.0.0", 80));
  EXPECT_TRUE(IsOwnHost("[fe80::1]:80", "::", 80));
  EXPECT_FALSE(IsOwnHost("evil.example:80", "0.0.0.0", 80));
  EXPECT_TRUE(IsOwnHost("10.0.0.1:80", "10.0.0.1", 80));
  EXPECT_TRUE(IsOwnHost("[fe80::1]:80", "fe80::1", 80));
}

TEST(SameSecret, ComparesAll) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  for (const char* other : {"", "ab", "abd", "abcabc", "bbc"})
    EXPECT_FALSE(SameSecret(other, "abc"));
  EXPECT_FALSE(SameSecret("abc", ""));
}

}  // namespace
}  // namespace pipelab
