// 20,000 damaged inputs from one seed: none may crash. The errors of inputs that are wrong, and
// what generated traces are like.
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "pipelines/swarm/peer_trace.h"
#include "tools/base/file.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr char kTraceSample[] = "peer,speed,join,leave\n0,1,0 s,90 s\n1,2.5,1 ms,\n0,1,100 s,\n";

TEST(PeerTraceFuzz, TwentyThousandMutations) { RunMutations({kTraceSample}, 20000); }

TEST(PeerTrace, IsRead) {
  const auto trace = ParsePeerTrace(kTraceSample, "f");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->num_peers(), 2);
  ASSERT_EQ(trace->stays.size(), 3u);
  EXPECT_EQ(trace->stays[0].leave, Milliseconds(90'000));
  EXPECT_EQ(trace->stays[1].speed, 2.5);
  EXPECT_EQ(trace->stays[1].leave, kNever);
}

TEST(PeerTrace, Errors) {
  const auto error = [](const std::string& rows) {
    return std::string(
        ParsePeerTrace("peer,speed,join,leave\n" + rows, "--trace=f").status().message());
  };
  EXPECT_EQ(error(""), "--trace=f: has no stays");
  const std::string file = testing::TempDir() + "/trace.csv";
  ASSERT_TRUE(WriteFileAtomically(file, "peer,speed,join,leave\n").ok());
  EXPECT_EQ(ReadPeerTrace("--trace", file).status(),
            absl::FailedPreconditionError("--trace=" + file + ": has no stays"));
  EXPECT_EQ(error("-1,1,0 s,\n"),
            "--trace=f: row 1: peer \"-1\": must be a whole number from 0 to 999999");
  EXPECT_EQ(error("0,nan,0 s,\n"),
            "--trace=f: row 1: speed \"nan\": must be a number above 0 and at most 1000000");
  EXPECT_EQ(error("0,1,2 s,2 s\n"), "--trace=f: row 1: leave \"2 s\": must be after join");
  EXPECT_EQ(error("0,1,2 s,\n1,1,1 s,\n"),
            "--trace=f: row 2: join \"1 s\": must not be before the row before");
  EXPECT_EQ(error("0,1,0 s,5 s\n0,1,4 s,\n"),
            "--trace=f: row 2: join \"4 s\": peer 0 has not left yet");
  EXPECT_NE(error("0,1,soon,\n").find("--trace=f: row 1: join "), std::string::npos);
  EXPECT_NE(error("0,1,0 s\n").find("--trace=f:2: 3 fields under 4 titles"), std::string::npos);
}

TEST(PeerTrace, GeneratedOnesParseBackAndFollowTheirMeans) {
  PeerTraceOptions options;
  options.up = Milliseconds(6 * 3'600'000ll);
  options.away = Milliseconds(1'800'000);
  const PeerTrace trace = GeneratePeerTrace(options);
  const auto read = ParsePeerTrace(ToCsv(trace), "f");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->stays.size(), trace.stays.size());
  double there = 0;
  for (size_t i = 0; i < trace.stays.size(); ++i) {
    const PeerStay& stay = trace.stays[i];
    EXPECT_EQ(read->stays[i].join, stay.join);
    EXPECT_EQ(read->stays[i].leave, stay.leave);
    there += ToSeconds(std::min(stay.leave, options.duration) - stay.join);
  }
  // 400 peers for 32 hours, 12 of 13 of the time.
  EXPECT_NEAR(there / (400 * 32 * 3600.0), 12.0 / 13, 0.01);
  EXPECT_EQ(trace.source,
            "generated, seed 1: 400 peers, up 21600 s and away 1800 s in the mean, exponential");
  options.seed = 2;
  EXPECT_NE(ToCsv(GeneratePeerTrace(options)), ToCsv(trace));
}

}  // namespace
}  // namespace pipelab
