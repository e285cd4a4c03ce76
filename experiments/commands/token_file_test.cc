#include "experiments/commands/token_file.h"

#include <sys/stat.h>

#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

ABSL_DECLARE_FLAG(std::string, token_file);

namespace pipelab {
namespace {

using ::testing::HasSubstr;

TEST(TokenFile, IsMadeAndReadForItsUserAlone) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/token");
  absl::SetFlag(&FLAGS_token_file, file);
  ASSERT_THAT(MakeTokenFile(), IsOk());
  const auto token = TokenFromFlag();
  ASSERT_THAT(token, IsOk());
  EXPECT_EQ(token->size(), 64u);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_THAT(TokenFromFlag(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       absl::StrCat("--token_file=", file,
                                    ": has mode 0644, so others can use it; it must be 0600 "
                                    "(chmod 600)")));
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  const std::string good = "sixteen letters!";
  for (const std::string& bad :
       {std::string("short"), absl::StrCat(good, std::string(1, '\0'), good),
        absl::StrCat(good, "\x1b[2J"), absl::StrCat(good, "\n", good),
        absl::StrCat(good, "\xc3\xa4"), std::string(5000, 'x')}) {
    ASSERT_THAT(WriteFileAtomically(file, bad), IsOk());
    EXPECT_THAT(TokenFromFlag(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("must have from 16 to 4096 printable ASCII")))
        << bad.size();
  }
  ASSERT_THAT(WriteFileAtomically(file, good + "\n"), IsOk());
  EXPECT_EQ(TokenFromFlag().value_or(""), good);
}

}  // namespace
}  // namespace pipelab
