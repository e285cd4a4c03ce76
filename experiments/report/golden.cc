#include "experiments/report/golden.h"

#include <filesystem>
#include <system_error>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"

namespace pipelab {
namespace {

bool update = false;

}  // namespace

void ExpectGolden(absl::string_view path, const std::string& text) {
  if (update) {
    // Behind the link of the test's folder is the checkout's file; a new one has to be made first.
    std::error_code error;
    const auto source = std::filesystem::canonical(std::string(path), error);
    ASSERT_FALSE(error) << path << ": " << error.message();
    const absl::Status status = WriteFileAtomically(source.string(), text);
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
