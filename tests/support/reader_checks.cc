#include "tests/support/reader_checks.h"

#include <string>

#include "absl/status/statusor.h"
#include "glog/logging.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "tools/base/json.h"

namespace pipelab {
namespace {

void CheckOneLine(const absl::Status& status) {
  CHECK(status.code() == absl::StatusCode::kInvalidArgument) << status;
  CHECK(!status.message().empty());
  CHECK(status.message().find('\n') == absl::string_view::npos) << status;
}

// Counts the schedule; whether it is valid.
bool IsValid(const Schedule& s, Readings* readings) {
  ++readings->read;
  const absl::Status valid = Validate(s);
  CHECK_EQ(Lower(s, {}).ok(), valid.ok()) << valid;
  if (!valid.ok()) CheckOneLine(valid);
  readings->valid += valid.ok();
  return valid.ok();
}

void CheckText(absl::string_view input, Readings* readings) {
  const absl::StatusOr<Schedule> s = ParseSchedule(input);
  if (!s.ok()) return CheckOneLine(s.status());
  IsValid(*s, readings);
  const std::string canonical = ToText(*s);
  const absl::StatusOr<Schedule> again = ParseSchedule(canonical);
  CHECK(again.ok()) << again.status();
  CHECK_EQ(ToText(*again), canonical);
}

void CheckCsv(absl::string_view input, Readings* readings) {
  const absl::StatusOr<Schedule> s = ParseCsv(input);
  if (!s.ok()) return CheckOneLine(s.status());
  if (!IsValid(*s, readings)) return;
  const absl::StatusOr<std::string> canonical = ToCsv(*s);
  CHECK(canonical.ok()) << canonical.status();
  const absl::StatusOr<Schedule> again = ParseCsv(*canonical);
  CHECK(again.ok()) << again.status();
  CHECK_EQ(ToText(*again), ToText(*s));
}

void CheckJson(absl::string_view input, Readings* readings) {
  if (const auto value = ParseJson(input, "fuzz"); value.ok()) {
    const std::string canonical = DumpJson(*value);
    const auto again = ParseJson(canonical, "again");
    CHECK(again.ok()) << again.status();
    CHECK_EQ(DumpJson(*again), canonical);
  } else {
    CheckOneLine(value.status());
  }
  const absl::StatusOr<Schedule> s = ScheduleFromJson(input, "fuzz");
  if (!s.ok()) return CheckOneLine(s.status());
  if (!IsValid(*s, readings)) return;
  const std::string canonical = ToJson(*s);
  const absl::StatusOr<Schedule> again = ScheduleFromJson(canonical, "again");
  CHECK(again.ok()) << again.status();
  CHECK_EQ(ToJson(*again), canonical);
  CHECK_EQ(ToText(*again), ToText(*s));
}

}  // namespace

Readings CheckReaders(absl::string_view input) {
  Readings readings;
  CheckText(input, &readings);
  CheckCsv(input, &readings);
  CheckJson(input, &readings);
  return readings;
}

}  // namespace pipelab
