// GoogleTest matchers for absl::Status and absl::StatusOr.
//
//   EXPECT_THAT(Validate(schedule), IsOk());
//   EXPECT_THAT(MakeSchedule("x", p),
//               StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--scheme")));
//   PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule s, MakeSchedule("1f1b", p));
#ifndef PIPELAB_TOOLS_BASE_STATUS_MATCHERS_H_
#define PIPELAB_TOOLS_BASE_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_macros.h"

namespace pipelab {

inline const absl::Status& GetStatus(const absl::Status& s) { return s; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& s) {
  return s.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).ok();
}

MATCHER_P2(StatusIs, code, message, "has the status code and a message that fits") {
  const absl::Status& s = GetStatus(arg);
  *result_listener << s.ToString();
  return s.code() == code &&
         testing::ExplainMatchResult(message, std::string(s.message()), result_listener);
}

}  // namespace pipelab

#define PIPELAB_ASSERT_OK_AND_ASSIGN(lhs, expr) \
  PIPELAB_ASSERT_OK_AND_ASSIGN_IMPL(PIPELAB_STATUS_CONCAT(pipelab_or_, __LINE__), lhs, expr)

#define PIPELAB_ASSERT_OK_AND_ASSIGN_IMPL(var, lhs, expr) \
  auto var = (expr);                                      \
  ASSERT_TRUE(var.ok()) << var.status();                  \
  lhs = *std::move(var)

#endif  // PIPELAB_TOOLS_BASE_STATUS_MATCHERS_H_
