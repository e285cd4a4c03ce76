#include "tools/base/secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

TEST(Secret, AFileIsForItsUserAlone) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/secret");
  ASSERT_THAT(WriteFileAtomically(file, "a word"), IsOk());
  for (const int mode : {0600, 0400, 0700}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    EXPECT_EQ(ReadSecretFile(file).value_or("none"), "a word") << mode;
  }
  for (const auto& [mode, text] : {std::pair(0644, "0644"), std::pair(0640, "0640"),
                                   std::pair(0602, "0602"), std::pair(0610, "0610")}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    EXPECT_THAT(ReadSecretFile(file),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         absl::StrCat(file, ": has mode ", text,
                                      ", so others can use it; it must be 0600 (chmod 600)")));
  }
  EXPECT_THAT(ReadSecretFile(file + ".none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(".none: cannot be read")));
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  ASSERT_THAT(WriteFileAtomically(file, std::string(65537, 'x')), IsOk());
  EXPECT_THAT(ReadSecretFile(file),
              StatusIs(absl::StatusCode::kOutOfRange,
                       absl::StrCat(file, ": larger than the 65536 bytes that can be read here")));
  // Root alone gives files away; to others, this one is another user's.
  const bool given = chown(file.c_str(), geteuid() + 1, -1) == 0;
  struct stat info;
  if (!given && (stat("/etc/passwd", &info) != 0 || info.st_uid == geteuid())) return;
  EXPECT_THAT(ReadSecretFile(given ? file : "/etc/passwd"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("belongs to user ")));
}

}  // namespace
}  // namespace pipelab
