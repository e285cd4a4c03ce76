// The server on loopback: answers are the command line's.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/serve/http_head.h"
#include "experiments/serve/serve_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/process.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPipelab[] = "experiments/pipelab";

std::string JsonOf(const HttpAnswer& answer, const char* field) {
  const auto json = ParseJson(answer.body, "answer");
  EXPECT_TRUE(json.ok()) << answer.body.substr(0, 200);
  return json.ok() && json->contains(field) ? DumpJson((*json)[field]) : "";
}

// What the program prints. 3: a step that does not fit has its figures, too.
std::string CommandLine(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {kPipelab};
  arguments.insert(arguments.end(), words.begin(), words.end());
  ProcessOptions options;
  options.output_limit = 64 << 20;
  const auto result = RunProcess(arguments, options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->exit_code == 0 || result->exit_code == 3) << result->error;
  return result->output;
}

// "--name=value" words as a request's options.
std::string BodyOf(const std::vector<std::string>& words, nlohmann::json more = {}) {
  nlohmann::json body = more.is_null() ? nlohmann::json::object() : std::move(more);
  body["words"] = nlohmann::json::array();
  for (size_t i = 1; i < words.size(); ++i) {
    if (!absl::StartsWith(words[i], "--")) {
      body["words"].push_back(words[i]);
      continue;
    }
    const std::vector<std::string> parts =
        absl::StrSplit(words[i].substr(2), absl::MaxSplits('=', 1));
    body["options"][parts[0]] = parts[1];
  }
  return body.dump();
}

TEST_F(ServeTest, AnswersAreTheCommandLines) {
  const std::vector<std::string> on_cluster = {"--model=gpt-6.6b", "--cluster=dgx-a100"};
  std::vector<std::vector<std::string>> lines = {
      {"simulate", "1f1b", "--forward=1,2,2,1", "--p2p_latency=0.1", "--bytes=1MiB"},
      {"simulate", "1f1b", "--devices=3", "--bandwidth=25 GB/s", "--bytes=1MB", "--arrivals=4"},
      {"compare", "1f1b:P=8,M=32", "zbv:P=8,M=32", on_cluster[0], on_cluster[1]},
      {"compare", "1f1b:P=2,M=4", "gpipe:P=2,M=4", "--model=gpt-52b", "--cluster=dgx1-v100"},
      {"search", "--devices=8", "--batch=32", "--top=3", on_cluster[0], on_cluster[1]},
      {"search", "--devices=8", "--batch=16", "--schemes=zbv,1f1b", on_cluster[0], on_cluster[1]}};
  for (const char* scheme : {"gpipe", "1f1b", "zb_h1", "zbv", "chimera", "interleaved", "dapple"}) {
    for (const int devices : {2, 4, 8}) {
      lines.push_back(
          {"simulate", scheme, absl::StrCat("--devices=", devices), "--micro_batches=16"});
      lines.push_back({"simulate", absl::StrCat(scheme, ":P=", devices, ",M=16"), on_cluster[0],
                       on_cluster[1]});
    }
  }
  int equal = 0, fits_not = 0;
  for (std::vector<std::string> line : lines) {
    const HttpAnswer answer = Post(line[0], BodyOf(line));
    const std::string name = absl::StrJoin(line, " ");
    line.push_back("--json_out=-");
    if (answer.status == 400) {  // a size that the scheme refuses: there as well
      std::vector<std::string> arguments = {kPipelab};
      arguments.insert(arguments.end(), line.begin(), line.end());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const ProcessResult refused, RunProcess(arguments));
      EXPECT_EQ(refused.exit_code, 2) << name;
      EXPECT_EQ(ErrorJson(LastLine(refused.error)), answer.body) << name;
      continue;
    }
    ASSERT_EQ(answer.status, 200) << name << ": " << answer.body;
    // Byte for byte, as the command wrote it.
    EXPECT_THAT(answer.body, HasSubstr(CommandLine(line))) << name;
    ++equal;
    fits_not += absl::StrContains(answer.body, "\"does_not_fit\":") ? 1 : 0;
  }
  EXPECT_GE(equal, 40);
  EXPECT_GE(fits_not, 1);  // gpt-52b on V100
}

TEST_F(ServeTest, FilesOfTheRequestAreSchedules) {
  const std::string csv = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  const nlohmann::json files = {{"files", {{"mine.csv", csv}}}};
  const HttpAnswer own = Post("simulate", BodyOf({"simulate", "mine.csv"}, files));
  ASSERT_EQ(own.status, 200) << own.body;
  ASSERT_THAT(WriteFileAtomically(testing::TempDir() + "/mine.csv", csv), IsOk());
  EXPECT_THAT(own.body,
              HasSubstr(CommandLine(
                  {"simulate", "--csv=" + testing::TempDir() + "/mine.csv", "--json_out=-"})));
  const HttpAnswer checked = Post("check", BodyOf({"check", "--csv=mine.csv"}, files));
  EXPECT_THAT(checked.body, HasSubstr("valid: 2 devices, 2 stages, 2 micro-batches"));
  const HttpAnswer text =
      Post("schedule", BodyOf({"schedule", "--csv=mine.csv", "--format=csv"}, files));
  EXPECT_EQ(JsonOf(text, "text"), DumpJson(csv));
  // Gone with its request.
  EXPECT_EQ(Post("simulate", BodyOf({"simulate", "mine.csv"})).status, 422);
}

TEST_F(ServeTest, DrawsWhatShowDraws) {
  const std::vector<std::string> line = {"show", "zbv", "--bytes=1MiB"};
  const HttpAnswer answer = Post("show", BodyOf(line, {{"drawings", {"svg", "memory", "trace"}}}));
  ASSERT_EQ(answer.status, 200) << answer.body;
  for (const char* drawing : {"svg", "memory"}) {
    std::vector<std::string> words = line;
    words.push_back(absl::StrCat("--", drawing, "_out=-"));
    EXPECT_EQ(JsonOf(answer, drawing), DumpJson(CommandLine(words))) << drawing;
  }
  const HttpAnswer timeline =
      Post("simulate", R"({"words": ["zbv"], "drawings": ["timeline", "memory"]})");
  const auto json = ParseJson(timeline.body, "answer");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["timeline"]["devices"].size(), 4);
  EXPECT_EQ((*json)["timeline"]["devices"][0].size(), 4 * 8 * 6);  // F, B and W of two stages
  EXPECT_FALSE(json->contains("memory"));                          // has no bytes
}

TEST_F(ServeTest, SynthesizeStreamsAndStops) {
  const std::string body = R"({"words": ["1f1b:P=8,M=32"], "id": "one",
      "options": {"memory": 6, "time_limit": "50s", "p2p_latency": 0.2, "backward_input": 1.3,
                  "forward": "1.1,1.3,1.2,1.7,1,1.45,1.05,1.3"}})";
  RawClient client(server_->port());
  ASSERT_TRUE(client.Send(PostText(server_->host(), "/api/synthesize", body)));
  // Once it has said something it can be stopped.
  std::string first;
  const absl::Time give_up = absl::Now() + absl::Seconds(40);
  while (!absl::StrContains(first, "\"news\"") && absl::Now() < give_up) {
    first += client.ReadAll(absl::Milliseconds(100));
  }
  const HttpAnswer stopped = Post("stop", R"({"id": "one"})");
  ASSERT_EQ(stopped.status, 200) << first;
  const std::string all = first + client.ReadAll();
  EXPECT_THAT(all, HasSubstr("application/x-ndjson"));
  EXPECT_THAT(all, HasSubstr("{\"news\":{\"bound_ns\":"));
  EXPECT_THAT(all, HasSubstr("{\"status\":200,\"answer\":{"));
  EXPECT_THAT(all, HasSubstr("\"schedule\":\""));
  EXPECT_EQ(Post("stop", R"({"id": "one"})").status, 404);
}

TEST_F(ServeTest, ThePageNamesNothingElsewhere) {
  for (const char* path : {"/", "/none.css", "/style.css", "/app.js", "/timeline.js"}) {
    const HttpAnswer answer = Ask(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", server_->host(),
                                               "\r\nConnection: close\r\n\r\n"));
    EXPECT_EQ(answer.status, std::string(path) == "/none.css" ? 404 : 200) << path;
    EXPECT_THAT(answer.head, HasSubstr("Content-Security-Policy: default-src 'none'"));
    EXPECT_THAT(answer.body, Not(HasSubstr("https://"))) << path;
  }
}

TEST_F(ServeTest, AskedByOtherSites) {
  const std::string body = R"({"words": ["models"]})";
  const auto with = [&](const std::string& host, const std::string& more) {
    return Ask(PostText(host, "/api/list", body, more)).status;
  };
  EXPECT_EQ(with(server_->host(), ""), 200);
  EXPECT_EQ(with(server_->host(), "Origin: http://" + server_->host() + "\r\n"), 200);
  EXPECT_EQ(with(server_->host(), "Origin: http://evil.example\r\n"), 403);
  EXPECT_EQ(with(server_->host(), "Origin: null\r\n"), 403);
  EXPECT_EQ(with("evil.example:80", ""), 421);  // a name that was made to lead here
  EXPECT_EQ(with("127.0.0.1:1", ""), 421);
  EXPECT_EQ(Ask(absl::StrCat("POST /api/list HTTP/1.1\r\nHost: ", server_->host(),
                             "\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n"
                             "Connection: close\r\n\r\n{}"))
                .status,
            415);  // what a form of another site could send
}

TEST(ServeTokenTest, IsAskedFor) {
  TestServer server(ServeLimits(), "0123456789abcdef");
  const auto ask = [&](const std::string& request) {
    RawClient client(server.port());
    client.Send(request);
    return client.Read();
  };
  const std::string body = R"({"words": ["models"]})";
  const auto list = [&](const std::string& more) {
    return ask(PostText(server.host(), "/api/list", body, more)).status;
  };
  EXPECT_EQ(list(""), 401);
  EXPECT_EQ(list("Authorization: Bearer 0123456789abcdee\r\n"), 401);
  EXPECT_EQ(list("Cookie: pipelab_token=\r\n"), 401);
  EXPECT_EQ(list("Authorization: Bearer 0123456789abcdef\r\n"), 200);
  EXPECT_EQ(list("Cookie: a=b; pipelab_token=0123456789abcdef\r\n"), 200);
  const auto page = [&](const std::string& target) {
    return ask(absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: ", server.host(),
                            "\r\nConnection: close\r\n\r\n"));
  };
  EXPECT_EQ(page("/").status, 401);
  EXPECT_EQ(page("/app.js").status, 401);
  EXPECT_EQ(page("/?token=x").status, 401);
  const HttpAnswer entered = page("/?token=0123456789abcdef");
  EXPECT_EQ(entered.status, 302);
  EXPECT_THAT(entered.head, HasSubstr("pipelab_token=0123456789abcdef; HttpOnly; SameSite=Strict"));
}

}  // namespace
}  // namespace pipelab
