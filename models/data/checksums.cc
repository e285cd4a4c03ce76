#include "models/data/checksums.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/base/process.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace fs = std::filesystem;

// Runs the program in `dir`. Its messages in English: they are read here.
absl::StatusOr<ProcessResult> RunIn(const std::vector<std::string>& arguments,
                                    absl::string_view dir) {
  ProcessOptions options;
  options.directory = std::string(dir);
  options.output_limit = 16 << 20;
  options.environment = {{"LC_ALL", "C"}};
  auto result = RunProcess(arguments, options);
  if (absl::IsNotFound(result.status())) {  // NotFound here would read as "no such file"
    return absl::UnavailableError(result.status().message());
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> PlainFiles(absl::string_view dir) {
  std::error_code error;
  std::vector<std::string> files;
  const fs::path base{std::string(dir)};
  fs::recursive_directory_iterator it(base, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error) || it->is_symlink(error)) continue;
    files.push_back(absl::StrCat("./", it->path().lexically_relative(base).string()));
  }
  if (error) {
    return absl::UnknownError(absl::StrCat(dir, ": cannot be listed: ", error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::string> Sha256OfFile(absl::string_view path, const std::string& program) {
  PIPELAB_ASSIGN_OR_RETURN(const ProcessResult r, RunIn({program, "--", std::string(path)}, ""));
  absl::string_view sum = r.output;
  absl::ConsumePrefix(&sum, "\\");  // marks a file name with odd letters
  sum = sum.substr(0, sum.find(' '));
  if (r.exit_code != 0 || sum.size() != 64) {
    return absl::UnknownError(absl::StrCat(path, ": no SHA-256: ", LastLine(r.error)));
  }
  return std::string(sum);
}

absl::StatusOr<std::string> Sha256List(absl::string_view dir, const std::string& program) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> files, PlainFiles(dir));
  std::string list;
  constexpr size_t kAtOnce = 500;  // a command line has a limit
  for (size_t first = 0; first < files.size(); first += kAtOnce) {
    std::vector<std::string> arguments = {program, "--"};
    const size_t last = std::min(files.size(), first + kAtOnce);
    arguments.insert(arguments.end(), files.begin() + first, files.begin() + last);
    PIPELAB_ASSIGN_OR_RETURN(const ProcessResult r, RunIn(arguments, dir));
    if (r.exit_code != 0) {
      return absl::UnknownError(absl::StrCat(dir, ": no SHA-256: ", LastLine(r.error)));
    }
    list += r.output;
  }
  return list;
}

absl::Status CheckSha256List(absl::string_view dir, absl::string_view list_path,
                             const std::string& program) {
  PIPELAB_ASSIGN_OR_RETURN(
      const ProcessResult r,
      RunIn({program, "--check", "--strict", "--quiet", "--", std::string(list_path)}, dir));
  if (r.exit_code == 0) return absl::OkStatus();
  // "./path: FAILED" on standard output; a fault of the list itself on the other.
  const std::vector<absl::string_view> lines = absl::StrSplit(r.output, '\n');
  const std::string fault = lines[0].empty() ? LastLine(r.error) : std::string(lines[0]);
  return absl::DataLossError(absl::StrCat(dir, ": has changed since it was unpacked: ", fault));
}

}  // namespace pipelab
