#include "experiments/commands/schedules_page.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

TEST(SchedulesPage, IsTheFileInDocs) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string page, SchedulesPage());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string file, ReadFile("docs/schedules.md"));
  EXPECT_TRUE(page == file) << "docs/schedules.md is not what the catalogue makes now; write it "
                               "with\n  bazel run //experiments:schedule_docs -- --update";
}

TEST(SchedulesPage, ReadmesPicturesAreOfTheCatalogue) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto pictures, SchemePictures());
  EXPECT_FALSE(pictures.empty());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string readme, ReadFile("README.md"));
  for (const auto& [name, svg] : pictures) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string file, ReadFile(name));
    EXPECT_TRUE(file == svg) << name
                             << " is not what the catalogue makes now; write it with\n"
                                "  bazel run //experiments:schedule_docs -- --update";
    EXPECT_THAT(readme, HasSubstr("](" + name + ")"));
  }
}

// A scheme is in it with its name, paper and picture, and the known closed form of 1F1B.
TEST(SchedulesPage, HasEveryScheme) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string page, SchedulesPage());
  for (const Scheme& scheme : Catalog()) {
    EXPECT_THAT(page, HasSubstr("\n## " + std::string(scheme.name) + "\n"));
    EXPECT_THAT(page, HasSubstr(std::string(scheme.paper)));
  }
  EXPECT_THAT(page, HasSubstr("device 0 |abcd......AAeBBfCCgDDhEE.FF.GG.HH|"));
  EXPECT_THAT(page, HasSubstr("Makespan 33, in flight 4 3 2 1."));  // min(M, P - d)
  EXPECT_THAT(page, HasSubstr("in flight 8."));  // gpipe: the same on each device
  EXPECT_THAT(page, HasSubstr(" | 1 | 27.27 | 30.43 | 9.86 | 64 |"));  // gpipe: 3 / 11, ...
}

}  // namespace
}  // namespace pipelab
