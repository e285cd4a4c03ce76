// Programs, their simulated and trained steps are what they were: digests of each scheme with each
// option against a committed file. A change that means to change some writes it again:
//
//   bazel run //tests:program_digests_test -- --update
#include "tests/program_digests.h"

#include <set>
#include <string>
#include <vector>

#include "experiments/report/golden.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

TEST(ProgramDigests, AreAsCommitted) {
  std::string text;
  for (const DigestLine& line : AllDigestLines()) text += LineText(line);
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("BROKEN")));
  ExpectGolden("tests/testdata/program_digests.txt", text);
}

// Else --cases and --dump would show the first of several.
TEST(ProgramDigests, HaveOneNameEach) {
  std::set<std::string> lines, cases;
  for (const DigestLine& line : AllDigestLines()) {
    EXPECT_TRUE(lines.insert(line.name).second) << line.name;
    for (const DigestCase& one : line.cases) {
      EXPECT_TRUE(cases.insert(one.name).second) << one.name;
    }
  }
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) { return pipelab::GoldenMain(argc, argv); }
