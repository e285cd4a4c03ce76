#include "pipelines/serving/request_file.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/csv.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/quantity_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostTokens = 1'000'000'000;
constexpr int64_t kFileLimit = int64_t{1} << 28;

}  // namespace

absl::StatusOr<std::vector<Request>> ParseRequests(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable table,
                           CsvTable::Parse(text, what, {"arrival", "prompt", "output"}));
  std::vector<Request> requests;
  for (const std::vector<std::string>& row : table.rows()) {
    const auto wrong = [&](const auto&... why) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": row ", requests.size() + 1, ": ", why...));
    };
    Request request;
    const absl::StatusOr<Nanoseconds> arrival =
        ParseQuantity<Nanoseconds>(row[table.Column("arrival")]);
    if (!arrival.ok()) return wrong("arrival ", arrival.status().message());
    request.arrival = *arrival;
    if (!requests.empty() && request.arrival < requests.back().arrival) {
      return wrong("arrival \"", row[table.Column("arrival")],
                   "\": must not be before the row before");
    }
    const std::pair<const char*, int64_t*> counts[] = {{"prompt", &request.prompt},
                                                       {"output", &request.output}};
    for (const auto& [name, count] : counts) {
      const std::string& cell = row[table.Column(name)];
      if (absl::SimpleAtoi(cell, count) && *count >= 1 && *count <= kMostTokens) continue;
      return wrong(name, " \"", cell, "\": must be a whole number from 1 to ", kMostTokens);
    }
    requests.push_back(request);
  }
  if (requests.empty()) return absl::InvalidArgumentError(absl::StrCat(what, ": has no requests"));
  return requests;
}

absl::StatusOr<std::vector<Request>> ReadRequests(absl::string_view option,
                                                  absl::string_view path) {
  const std::string what = absl::StrCat(option, "=", path);
  const absl::StatusOr<std::string> text = ReadTextFile(path, kFileLimit);
  if (!text.ok()) {
    return absl::Status(text.status().code(), absl::StrCat(option, ": ", text.status().message()));
  }
  return FaultOfFile(ParseRequests(*text, what));
}

}  // namespace pipelab
