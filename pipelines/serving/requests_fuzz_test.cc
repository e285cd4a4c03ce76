// 20,000 damaged inputs from one seed: none may crash. And the errors of inputs that are wrong.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "pipelines/serving/request_file.h"
#include "tools/base/file.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr char kSample[] = "arrival,prompt,output\n0 ms,512,64\n12.5 ms,80,200\n";

TEST(RequestsFuzz, TwentyThousandMutations) { RunMutations({kSample}, 20000); }

TEST(Requests, AreRead) {
  const auto requests = ParseRequests(kSample, "f");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[1].arrival, Microseconds(12500));
  EXPECT_EQ((*requests)[1].prompt, 80);
  EXPECT_EQ((*requests)[1].output, 200);
}

TEST(Requests, Errors) {
  const auto error = [](const std::string& rows) {
    return std::string(
        ParseRequests("arrival,prompt,output\n" + rows, "--requests=f").status().message());
  };
  EXPECT_EQ(error(""), "--requests=f: has no requests");
  EXPECT_EQ(error("0 s,0,1\n"),
            "--requests=f: row 1: prompt \"0\": must be a whole number from 1 to 1000000000");
  EXPECT_EQ(error("2 s,1,1\n1 s,1,1\n"),
            "--requests=f: row 2: arrival \"1 s\": must not be before the row before");
  EXPECT_NE(error("soon,1,1\n").find("--requests=f: row 1: arrival "), std::string::npos);
  const std::string file = testing::TempDir() + "/requests.csv";
  ASSERT_TRUE(WriteFileAtomically(file, "arrival,prompt,output\n").ok());
  EXPECT_EQ(ReadRequests("--requests", file).status(),
            absl::FailedPreconditionError("--requests=" + file + ": has no requests"));
  EXPECT_NE(ParseRequests("prompt\n1\n", "--requests=f").status().message().find("--requests=f"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace pipelab
