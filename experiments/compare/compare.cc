// tools/bazel run //experiments:compare -- A B
//
// Two result folders beside one another.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/compare/byte_equal.h"
#include "experiments/compare/compare_folders.h"
#include "experiments/flags/flags.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(bool, json, false, "print JSON instead of text (docs/results.md has the fields)");
ABSL_FLAG(std::string, json_out, "", "a file to write that JSON to");
ABSL_FLAG(bool, all, false, "also show what is equal or cannot be told");
ABSL_FLAG(bool, deterministic, false,
          "the deterministic columns alone, byte for byte, as two machines must have them; exit "
          "code 1 where they differ");
ABSL_FLAG(bool, check, false, "exit code 1 where anything differs beyond noise");

namespace pipelab {
namespace {

absl::Status Deterministic(const std::string& a, const std::string& b) {
  PIPELAB_ASSIGN_OR_RETURN(const ByteEqual same, CompareBytes(a, b));
  std::fputs(same.text.c_str(), stdout);
  if (same.differ == 0) return absl::OkStatus();
  return absl::FailedPreconditionError("deterministic columns differ");
}

absl::Status Run(const std::vector<std::string>& words) {
  if (words.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("compare takes two folders of results, as in: compare results/quickstart "
                     "other/quickstart; ",
                     words.size(), " were given"));
  }
  const std::string a = ResolveOutputPath(words[0], ""), b = ResolveOutputPath(words[1], "");
  if (absl::GetFlag(FLAGS_deterministic)) {
    for (const char* other : {"json", "json_out", "all", "check"}) {
      if (!FlagWasSet(other)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--", other,
                       ": --deterministic prints a line a study, and ends with exit "
                       "code 1 where any differs; give one of them"));
    }
    return Deterministic(a, b);
  }
  PIPELAB_ASSIGN_OR_RETURN(const ResultsComparison comparison, CompareResults(a, b));
  const std::string json = ComparisonJson(comparison);
  if (const std::string out = absl::GetFlag(FLAGS_json_out); !out.empty()) {
    const absl::Status written = WriteFileAtomically(ResolveOutputPath(out, ""), json);
    if (!written.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--json_out=", out, ": ", written.message()));
    }
  }
  const std::string text =
      absl::GetFlag(FLAGS_json) ? json : ComparisonText(comparison, absl::GetFlag(FLAGS_all));
  std::fputs(text.c_str(), stdout);
  if (!absl::GetFlag(FLAGS_check) || comparison.same()) return absl::OkStatus();
  return absl::FailedPreconditionError("the results differ");
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  return pipelab::RunMain(
      argc, argv, "//experiments:compare",
      "Compares two result folders A and B: settings, environment, claims, and metric by metric "
      "what is equal, the same within noise, or differs.\n\n"
      "  tools/bazel run //experiments:compare -- results/quickstart other/quickstart",
      pipelab::Run);
}
