// pipelab check: is a schedule of a file valid, and if not, why.
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "experiments/commands/command.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/flags/output.h"
#include "pipelines/ir/validate.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Takes "device 12" (with blanks, commas and colons around) off the front of *text.
bool TakeNumber(absl::string_view name, absl::string_view* text, int64_t* value) {
  absl::string_view rest = *text;
  if (!absl::ConsumePrefix(&rest, name) || !absl::ConsumePrefix(&rest, " ")) return false;
  size_t digits = 0;
  while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
  if (digits == 0) return false;
  *value = std::strtoll(std::string(rest.substr(0, digits)).c_str(), nullptr, 10);
  rest.remove_prefix(digits);
  while (absl::ConsumePrefix(&rest, ",") || absl::ConsumePrefix(&rest, ":") ||
         absl::ConsumePrefix(&rest, " ") || absl::ConsumePrefix(&rest, "(")) {
  }
  *text = rest;
  return true;
}

// The validator's line, taken apart: what it does not name is null.
nlohmann::json ScheduleVerdict(const absl::Status& status) {
  nlohmann::json verdict = {{"schema", kOutputSchema}, {"valid", status.ok()}};
  if (status.ok()) return verdict;
  absl::string_view text = status.message();
  verdict["reason"] = std::string(text);
  verdict["device"] = verdict["position"] = verdict["action"] = nullptr;
  absl::ConsumePrefix(&text, "deadlock: ");
  int64_t number = 0;
  if (!TakeNumber("device", &text, &number)) return verdict;
  verdict["device"] = number;
  if (TakeNumber("position", &text, &number)) verdict["position"] = number;
  const size_t end = text.find_first_of(" ):,");
  const absl::string_view action = text.substr(0, end);
  if (!action.empty() && std::isdigit(static_cast<unsigned char>(action[0]))) {
    verdict["action"] = std::string(action);
  }
  return verdict;
}

std::string Line(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::Status CheckCommand(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(const ScheduleInput input,
                           ReadScheduleInput(words, /*takes_scheme=*/false));
  const absl::Status valid = Validate(input.schedule);
  if (input.kind == InputKind::kJson) {
    PIPELAB_RETURN_IF_ERROR(WriteOutput("stdout", "-", Line(ScheduleVerdict(valid))));
    // The verdict is the only line: an error without a message prints nothing more.
    return valid.ok() ? valid : absl::FailedPreconditionError("");
  }
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  const Schedule& s = input.schedule;
  const std::string note = SkippedNote(input);
  return WriteOutput(
      "stdout", "-",
      absl::StrFormat("%s: valid: %d devices, %d stages, %d micro-batches, %d replicas%s\n",
                      input.source, s.num_devices(), s.num_stages(), s.num_micro_batches,
                      s.placement.num_replicas(), note.empty() ? "" : absl::StrCat("; ", note)));
}

}  // namespace pipelab
