#include "experiments/report/environment.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/process.h"

namespace pipelab {
namespace {

// Packages whose version can change a number: libraries that are linked, and the C library.
constexpr const char* kPackages[] = {"libabsl-dev", "libbenchmark-dev", "libc6",
                                     "libdnnl-dev", "libopenmpi-dev",   "libstdc++6",
                                     "g++",         "bazel-bootstrap"};

// Standard output of a program, or nothing when it cannot run or fails.
std::string OutputOf(const std::vector<std::string>& arguments, const std::string& directory = "") {
  ProcessOptions options;
  options.directory = directory;
  options.timeout = absl::Seconds(10);
  const auto result = RunProcess(arguments, options);
  if (!result.ok() || result->exit_code != 0) return "";
  return std::string(absl::StripAsciiWhitespace(result->output));
}

// The text after `key` and the separator in the first line of a file that starts with the key.
std::string FieldOf(const std::string& path, absl::string_view key, char separator) {
  const auto text = ReadFile(path);
  if (!text.ok()) return "unknown";
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(separator, 1));
    if (absl::StripAsciiWhitespace(parts.first) != key) continue;
    absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    absl::ConsumePrefix(&value, "\"");
    absl::ConsumeSuffix(&value, "\"");
    return std::string(value);
  }
  return "unknown";
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// As the driver's files say; a count before the name where there are several of it.
std::string Gpus() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    names.push_back(FieldOf((entry.path() / "information").string(), "Model", ':'));
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (size_t i = 0; i < names.size();) {
    const size_t first = i;
    while (i < names.size() && names[i] == names[first]) ++i;
    absl::StrAppend(&text, text.empty() ? "" : ", ", i - first, " x ", names[first]);
  }
  return text.empty() ? "none" : text;
}

void ReadCommit(Environment& env) {
  env.commit = "unknown";
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) return;  // not started by `bazel run`: the binary may be of any commit
  const std::string commit = OutputOf({"git", "rev-parse", "HEAD"}, workspace);
  if (commit.empty()) return;
  env.commit = commit;
  env.modified =
      !OutputOf({"git", "--no-optional-locks", "status", "--porcelain", "--untracked-files=no"},
                workspace)
           .empty();
}

std::vector<std::pair<std::string, std::string>> PackageVersions() {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* name : kPackages) {
    const std::string version = OutputOf({"dpkg-query", "-W", "-f", "${Version}", name});
    if (!version.empty()) found.emplace_back(name, version);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Environment ReadEnvironment() {
  Environment env;
  env.date = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  ReadCommit(env);
#if defined(__clang__)
  env.compiler = __VERSION__;
#else
  env.compiler = absl::StrCat("gcc ", __VERSION__);
#endif
#ifdef NDEBUG
  env.build = "opt";
#else
  env.build = "debug";
#endif
  env.cpu = FieldOf("/proc/cpuinfo", "model name", ':');
  env.cores = UsableCores();
  env.gpu = Gpus();
  env.os = FieldOf("/etc/os-release", "PRETTY_NAME", '=');
  utsname kernel = {};
  if (uname(&kernel) == 0) {
    // The number only: what builders append may name a machine.
    const std::string release = kernel.release;
    absl::StrAppend(&env.os, ", ", kernel.sysname, " ", release.substr(0, release.find('-')), " ",
                    kernel.machine);
  }
  env.packages = PackageVersions();
  return env;
}

std::string EnvironmentJson(const Environment& env) {
  nlohmann::json packages = nlohmann::json::object();
  for (const auto& [name, version] : env.packages) packages[name] = version;
  return DumpJson({{"date", env.date},
                   {"commit", env.commit},
                   {"modified", env.modified},
                   {"compiler", env.compiler},
                   {"build", env.build},
                   {"cpu", env.cpu},
                   {"cores", env.cores},
                   {"gpu", env.gpu},
                   {"os", env.os},
                   {"packages", packages}});
}

std::vector<std::pair<std::string, std::string>> EnvironmentFields(const Environment& env) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"date (UTC)", env.date},
      {"commit", absl::StrCat(env.commit, env.modified ? ", with local changes" : "")},
      {"compiler", absl::StrCat(env.compiler, ", ", env.build)},
      {"processor", env.cpu},
      {"cores", absl::StrCat(env.cores)},
      {"GPU", env.gpu},
      {"system", env.os},
  };
  for (const auto& package : env.packages) fields.push_back(package);
  return fields;
}

}  // namespace pipelab
