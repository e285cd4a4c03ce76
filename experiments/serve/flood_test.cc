// What is wrong, slow and too much: all of it ends, is counted, and memory stays bounded. No other
// client waits for it.
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/serve/serve_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

constexpr char kSimulate[] = R"({"words": ["1f1b:P=4,M=8"]})";
// Takes longer than any limit here.
constexpr char kSynthesize[] = R"({"words": ["1f1b:P=8,M=64"], "options": {"memory": 6,
    "time_limit": "60s", "p2p_latency": 0.2, "forward": "1.1,1.3,1.2,1.7,1,1.45,1.05,1.3"}})";

ServeLimits ShortLimits() {
  ServeLimits limits;
  limits.read_time = absl::Seconds(1);
  limits.idle_time = absl::Seconds(1);
  limits.write_time = absl::Seconds(1);
  limits.connections = 64;
  limits.running = 2;
  limits.waiting = 16;
  limits.command_time = absl::Seconds(20);
  return limits;
}

int64_t ResidentBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * 4096;
}

// What came back, by status; 0: nothing.
class Tally {
 public:
  void Add(int status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_[status];
  }
  int of(int status) { return counts_[status]; }
  int all() const {
    int sum = 0;
    for (const auto& [status, count] : counts_) sum += count;
    return sum;
  }
  std::string ToString() const {
    std::string text;
    for (const auto& [status, count] : counts_) absl::StrAppend(&text, " ", status, ":", count);
    return text;
  }

 private:
  std::mutex mutex_;
  std::map<int, int> counts_;
};

template <typename Work>
void InParallel(int threads, const Work& work) {
  std::vector<std::thread> all;
  all.reserve(threads);
  for (int i = 0; i < threads; ++i) all.emplace_back([i, &work] { work(i); });
  for (std::thread& t : all) t.join();
}

HttpAnswer AskOf(const TestServer& server, const std::string& request) {
  RawClient client(server.port());
  client.Send(request);
  return client.Read(absl::Seconds(60));
}

HttpAnswer Simulate(const TestServer& server) {
  return AskOf(server, PostText(server.host(), "/api/simulate", kSimulate));
}

// All connections and processes end; then a request is answered as ever.
void ExpectQuiet(const TestServer& server) {
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  while (server.server().server().open_connections() > 0 && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(server.server().server().open_connections(), 0);
  EXPECT_EQ(Simulate(server).status, 200);
}

TEST(FloodTest, TwoHundredRequestsAtOnce) {
  ServeLimits limits = ShortLimits();
  limits.connections = 256;
  TestServer server(limits);
  const int64_t before = ResidentBytes();
  Tally tally;
  InParallel(200, [&](int) { tally.Add(Simulate(server).status); });
  std::printf("200 at once:%s\n", tally.ToString().c_str());
  EXPECT_EQ(tally.all(), 200);
  EXPECT_EQ(tally.of(200) + tally.of(429), 200);
  EXPECT_GE(tally.of(200), limits.running + limits.waiting);
  const CommandPool::Counts counts = server.pool().counts();
  EXPECT_EQ(counts.answered, tally.of(200));
  EXPECT_EQ(counts.refused, tally.of(429));
  EXPECT_LT(ResidentBytes() - before, 256 << 20);
  ExpectQuiet(server);
}

TEST(FloodTest, MoreConnectionsThanThereMayBe) {
  ServeLimits limits = ShortLimits();
  limits.idle_time = absl::Seconds(4);  // all are open before the first one is closed
  TestServer server(limits);
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<RawClient>(server.port()));
  Tally tally;
  for (const auto& client : idle) tally.Add(client->Read(absl::Seconds(10)).status);
  std::printf("200 connections that say nothing:%s\n", tally.ToString().c_str());
  EXPECT_EQ(tally.of(503), 200 - 64);  // beyond the limit; the others are closed in silence
  EXPECT_EQ(tally.of(0), 64);
  EXPECT_EQ(server.server().server().counts().too_many, 200 - 64);
  ExpectQuiet(server);
}

TEST(FloodTest, SlowClientsAreCut) {
  TestServer server(ShortLimits());
  const std::string post = PostText(server.host(), "/api/simulate", kSimulate);
  std::atomic<bool> done{false};
  // A byte every so often: never idle, and never whole within a second.
  Tally tally;
  std::thread fast([&] {
    while (!done) EXPECT_EQ(Simulate(server).status, 200);
  });
  InParallel(32, [&](int i) {
    RawClient client(server.port());
    const bool slow_head = i % 2 == 0;
    if (!slow_head) client.Send(post.substr(0, post.size() - 10));
    const std::string rest = slow_head ? post : post.substr(post.size() - 10);
    const absl::Time begin = absl::Now();
    for (const char c : rest) {
      if (!client.Send(absl::string_view(&c, 1)) || absl::Now() - begin > absl::Seconds(5)) break;
      absl::SleepFor(absl::Milliseconds(200));
    }
    tally.Add(client.Read(absl::Seconds(20)).status);
  });
  done = true;
  fast.join();
  std::printf("32 slow clients:%s\n", tally.ToString().c_str());
  EXPECT_EQ(tally.of(200), 0);
  EXPECT_EQ(tally.all(), 32);
  EXPECT_EQ(server.server().server().counts().too_slow, 32);
  EXPECT_EQ(tally.of(408), 32);
  ExpectQuiet(server);
}

// Large answers, of about 2 MB, that nobody reads: the connections close, and nobody waits.
TEST(FloodTest, AnswersThatNobodyReads) {
  const auto ask = [](const ServeLimits& limits) {
    TestServer server(limits);
    const std::string post =
        PostText(server.host(), "/api/simulate",
                 R"({"words": ["1f1b:P=64,M=1024"], "drawings": ["timeline"]})");
    std::vector<std::unique_ptr<RawClient>> deaf;
    for (int i = 0; i < 8; ++i) {
      deaf.push_back(std::make_unique<RawClient>(server.port()));
      deaf.back()->Send(post);
    }
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    while (server.pool().counts().answered < 8 && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    ExpectQuiet(server);
    EXPECT_EQ(server.pool().counts().answered, 9);
    Tally tally;
    for (const auto& client : deaf) tally.Add(client->Read(absl::Seconds(1)).status);
    std::printf("8 clients that do not read:%s\n", tally.ToString().c_str());
    return std::make_pair(tally.of(200), tally.of(503));
  };
  ServeLimits limits = ShortLimits();
  EXPECT_EQ(ask(limits), std::make_pair(8, 0));  // as far as the system's buffers have taken them
  limits.unread_bytes = 1 << 20;
  EXPECT_EQ(ask(limits), std::make_pair(0, 8));  // no room for one, and for small answers
}

TEST(FloodTest, ClientsThatLeaveEndTheirCommands) {
  TestServer server(ShortLimits());
  for (int i = 0; i < 6; ++i) {
    RawClient client(server.port());
    client.Send(PostText(server.host(), "/api/synthesize", kSynthesize));
    absl::SleepFor(absl::Milliseconds(100));
  }
  // Two run at a time, for a minute each, if they went on.
  const absl::Time begin = absl::Now();
  EXPECT_EQ(Simulate(server).status, 200);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  while (server.pool().counts().gone < 6 && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(server.pool().counts().gone, 6);
}

TEST(FloodTest, CommandsHaveTheirTime) {
  ServeLimits limits = ShortLimits();
  limits.command_time = absl::Milliseconds(1);
  limits.longest_search = absl::Seconds(5);
  TestServer server(limits);
  // A search shows what it has.
  const HttpAnswer search =
      AskOf(server, PostText(server.host(), "/api/search", R"({"options": {"model": "gpt-52b",
                "cluster": "dgx-a100", "devices": 512, "batch": 4096}})"));
  EXPECT_TRUE(search.status == 200 || search.status == 504) << search.body.substr(0, 200);
  if (search.status == 200) {
    EXPECT_THAT(search.body, HasSubstr("\"stopped\": true"));
  }
  const HttpAnswer synthesize =
      AskOf(server, PostText(server.host(), "/api/synthesize", kSynthesize));
  EXPECT_EQ(synthesize.status, 400) << synthesize.body.substr(0, 200);
}

TEST(FloodTest, CommandsHaveTheirMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer has more address space than a limit leaves";
#endif
  ServeLimits limits = ShortLimits();
  limits.command_time = absl::Seconds(60);
  limits.command_memory = 32 << 20;
  TestServer small(limits);
  const HttpAnswer memory =
      AskOf(small, PostText(small.host(), "/api/simulate", R"({"words": ["1f1b:P=128,M=2048"]})"));
  EXPECT_EQ(memory.status, 503) << memory.body;
  EXPECT_THAT(memory.body, HasSubstr("needs more than 32 MiB of memory"));
  EXPECT_EQ(small.pool().counts().failed, 1);
}

// Random damage to requests, and parts of them.
TEST(FloodTest, DamagedRequestsAreAnsweredOrCut) {
  TestServer server(ShortLimits());
  const int64_t before = ResidentBytes();
  Tally tally;
  InParallel(8, [&](int thread) {
    for (uint64_t round = 0; round < 60; ++round) {
      const CounterRng rng(7, static_cast<uint64_t>(thread) * 1000 + round);
      std::string text = PostText(server.host(), "/api/simulate", kSimulate);
      for (uint64_t i = 0; i < 1 + rng.Below(0, 4); ++i) {
        text[rng.Below(2 * i + 1, text.size())] = static_cast<char>(rng.Below(2 * i + 2, 256));
      }
      if (round % 3 == 0) text.resize(rng.Below(50, text.size()));
      RawClient client(server.port());
      client.Send(text);
      client.SendEnd();
      tally.Add(client.Read().status);
    }
  });
  std::printf("480 damaged requests:%s\n", tally.ToString().c_str());
  EXPECT_EQ(tally.all(), 480);
  EXPECT_EQ(tally.of(500), 0);
  EXPECT_LT(ResidentBytes() - before, 128 << 20);
  ExpectQuiet(server);
}

TEST(FloodTest, EndlessHeadsAndBodies) {
  TestServer server(ShortLimits());
  const int64_t before = ResidentBytes();
  Tally tally;
  InParallel(16, [&](int i) {
    RawClient client(server.port());
    const std::string line = std::string(1 << 16, 'a');
    client.Send(i % 2 == 0 ? "GET /" : "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
    for (int part = 0; part < 512 && client.Send(line); ++part) continue;  // 32 MiB
    tally.Add(client.Read().status);
  });
  std::printf("16 endless requests:%s\n", tally.ToString().c_str());
  EXPECT_EQ(tally.all(), 16);
  EXPECT_EQ(tally.of(200), 0);
  EXPECT_LT(ResidentBytes() - before, 64 << 20);
  ExpectQuiet(server);
}

// A small body that unpacks to a large one, and a short head that asks for the page many times.
TEST(FloodTest, NothingIsUnpackedOrSentTwice) {
  TestServer server(ShortLimits());
  const auto post = [&](const std::string& line) {
    return AskOf(server, PostText(server.host(), "/api/simulate", kSimulate, line));
  };
  for (const char* encoding : {"gzip", "br", "deflate", "GZIP", "identity, gzip", "x-none"}) {
    const HttpAnswer answer = post(absl::StrCat("content-encoding: ", encoding, "\r\n"));
    EXPECT_EQ(answer.status, 415) << encoding;
    EXPECT_THAT(answer.body, HasSubstr("must be identity")) << encoding;
  }
  EXPECT_EQ(post("Content-Encoding: identity\r\n").status, 200);
  const auto get = [&](const std::string& range) {
    return AskOf(server, absl::StrCat("GET / HTTP/1.1\r\nHost: ", server.host(),
                                      "\r\nRange: bytes=", range, "\r\nConnection: close\r\n\r\n"));
  };
  std::string many = "0-";
  for (int i = 0; i < 2000; ++i) many += ",0-";
  for (const std::string& ranges : {many, std::string("0-,0-"), std::string(8000, '1')}) {
    EXPECT_EQ(get(ranges).status, 416) << ranges.substr(0, 20);
  }
  EXPECT_EQ(get("0-3").body.size(), 4);
  EXPECT_LT(get("999999999-").body.size(), 1024);
  ExpectQuiet(server);
}

TEST(FloodTest, ManyRequestsOnOneConnection) {
  TestServer server(ShortLimits());
  RawClient client(server.port());
  const std::string one = absl::StrCat("GET / HTTP/1.1\r\nHost: ", server.host(), "\r\n\r\n");
  const std::string last =
      absl::StrCat("GET / HTTP/1.1\r\nHost: ", server.host(), "\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(client.Send(one + one + one + last));  // without waiting for answers
  const std::string all = client.ReadAll();
  int answers = 0;
  for (size_t at = all.find("HTTP/1.1 200"); at != std::string::npos;
       at = all.find("HTTP/1.1 200", at + 1)) {
    ++answers;
  }
  EXPECT_EQ(answers, 4);
}

}  // namespace
}  // namespace pipelab
