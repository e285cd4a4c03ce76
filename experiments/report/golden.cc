#include "experiments/report/golden.h"

#include <cstdlib>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"

namespace pipelab {
namespace {

bool update = false;

}  // namespace

void ExpectGolden(absl::string_view path, const std::string& text) {
  if (update) {
    const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
    ASSERT_NE(workspace, nullptr) << "--update works with `bazel run`";
    const absl::Status status = WriteFileAtomically(JoinPath(workspace, path), text);
    ASSERT_TRUE(status.ok()) << status;
    return;
  }
  const auto golden = ReadFile(std::string(path));
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(text, *golden) << path << " differs; if that is meant: `bazel run` this test with "
                           << "`-- --update`";
}

int GoldenMain(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    CHECK_EQ(absl::string_view(argv[i]), "--update") << "the only option of this test";
    update = true;
  }
  return RUN_ALL_TESTS();
}

}  // namespace pipelab
