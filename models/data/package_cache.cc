#include "models/data/package_cache.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/data/checksums.h"
#include "models/data/folder.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kFiles = "files";           // what the package holds
constexpr absl::string_view kSums = "files.sha256";     // of the above, in sha256sum's own form
constexpr absl::string_view kStamp = "package.sha256";  // of the .deb it came from

std::string Title(const DebianPackage& package) {
  return absl::StrCat("package ", package.name, " ", package.version);
}

// The sum is in the name: another build of the same version never takes this one's place.
std::string EntryPath(const DebianPackage& package, absl::string_view cache_dir) {
  return JoinPath(cache_dir, absl::StrCat(package.name, "_", package.version, "_",
                                          absl::string_view(package.sha256).substr(0, 12)));
}

absl::StatusOr<ProcessResult> RunDpkg(const DebianPackage& package,
                                      const std::vector<std::string>& arguments,
                                      const std::string& directory, const FetchOptions& options) {
  ProcessOptions process;
  process.directory = directory;
  process.timeout = options.timeout;
  process.environment = {{"LC_ALL", "C"}, {"DEBIAN_FRONTEND", "noninteractive"}};
  auto result = RunProcess(arguments, process);
  if (!result.ok())
    return absl::UnavailableError(absl::StrCat(Title(package), ": ", result.status().message()));
  return result;
}

absl::StatusOr<ProcessResult> RunApt(const DebianPackage& package,
                                     std::vector<std::string> arguments,
                                     const std::string& directory, const FetchOptions& options) {
  std::vector<std::string> all = {options.apt_get, "-q", "-o", "Acquire::Retries=2"};
  // As root apt works as the user _apt, who may not write here.
  if (geteuid() == 0) all.insert(all.end(), {"-o", "APT::Sandbox::User=root"});
  all.insert(all.end(), arguments.begin(), arguments.end());
  return RunDpkg(package, all, directory, options);
}

// The first of apt's "E: " lines: later ones only repeat that it failed.
std::string AptReason(const ProcessResult& result) {
  const size_t at = absl::StartsWith(result.error, "E: ") ? 0 : result.error.find("\nE: ");
  if (at == std::string::npos) return LastLine(result.error);
  const absl::string_view line = absl::string_view(result.error).substr(at == 0 ? 3 : at + 4);
  return std::string(line.substr(0, line.find('\n')));
}

// The one .deb in the folder; empty when there is none.
std::string FindDeb(const std::string& dir) {
  const absl::StatusOr<std::vector<std::string>> debs = NamesIn(dir, ".deb");
  return debs.ok() && !debs->empty() ? JoinPath(dir, debs->front()) : "";
}

// Lets apt put the .deb into `dir`. A version apt does not have may still be there under the bare
// name, when only its lists are odd; the sum decides then.
absl::StatusOr<std::string> Download(const DebianPackage& package, const std::string& dir,
                                     const FetchOptions& options) {
  const std::string exact = absl::StrCat(package.name, "=", package.version);
  const auto unknown = [](const ProcessResult& r) {
    return r.exit_code != 0 && (absl::StrContains(r.error, "Unable to locate package") ||
                                absl::StrContains(r.error, "No packages found"));
  };
  PIPELAB_ASSIGN_OR_RETURN(ProcessResult r, RunApt(package, {"download", exact}, dir, options));
  if (unknown(r) && options.update_lists && geteuid() == 0) {
    LOG(INFO) << "apt knows no package " << package.name << ": running apt-get update";
    PIPELAB_RETURN_IF_ERROR(
        RunApt(package, {"update"}, dir, options).status());  // the next try judges it
    PIPELAB_ASSIGN_OR_RETURN(r, RunApt(package, {"download", exact}, dir, options));
  }
  if (unknown(r)) {
    return absl::UnavailableError(
        absl::StrCat(Title(package),
                     ": apt does not know it; run 'apt-get update' as root, with Debian 12's main "
                     "section among apt's sources"));
  }
  if (r.exit_code != 0 && absl::StrContains(r.error, "was not found")) {
    PIPELAB_ASSIGN_OR_RETURN(r, RunApt(package, {"download", package.name}, dir, options));
  }
  const std::string deb = FindDeb(dir);
  if (r.exit_code != 0 || deb.empty()) {
    return absl::UnavailableError(
        absl::StrCat(Title(package), ": apt-get download failed: ", AptReason(r)));
  }
  return deb;
}

absl::Status CheckDownload(const DebianPackage& package, const std::string& deb,
                           const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string sum, Sha256OfFile(deb, options.sha256sum));
  if (sum == package.sha256) return absl::OkStatus();
  // Another version is no damage; an unreadable one is.
  auto field = RunDpkg(package, {options.dpkg_deb, "-f", deb, "Version"}, "", options);
  const std::string version =
      field.ok() && field->exit_code == 0 ? LastLine(field->output) : package.version;
  const std::string name = fs::path(deb).filename().string();
  if (version != package.version) {
    return absl::FailedPreconditionError(absl::StrCat(
        Title(package), ": apt offers version ", version, " (", name, ", sha256 ", sum,
        "); version ", package.version, " with sha256 ", package.sha256, " is needed"));
  }
  return absl::DataLossError(absl::StrCat(name, ": sha256 is ", sum, ", must be ", package.sha256,
                                          ": damaged on its way, and removed"));
}

absl::Status Unpack(const DebianPackage& package, const std::string& deb, const std::string& dir,
                    const FetchOptions& options) {
  const std::string files = JoinPath(dir, kFiles);
  PIPELAB_ASSIGN_OR_RETURN(const ProcessResult r,
                           RunDpkg(package, {options.dpkg_deb, "-x", deb, files}, dir, options));
  if (r.exit_code != 0) {
    return absl::DataLossError(
        absl::StrCat(Title(package), ": dpkg-deb cannot unpack it: ", LastLine(r.error)));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string sums, Sha256List(files, options.sha256sum));
  if (sums.empty()) return absl::DataLossError(absl::StrCat(Title(package), ": holds no files"));
  PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(dir, kSums), sums));
  PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(dir, kStamp), package.sha256 + "\n"));
  std::remove(deb.c_str());
  return absl::OkStatus();
}

// Makes `work` the entry. Whoever comes second finds the first one's there, and takes that. A
// damaged entry moves to `aside` first; renames, so that a reader sees the old folder or the new,
// whole.
absl::Status Publish(const DebianPackage& package, const std::string& work,
                     const std::string& aside, absl::string_view cache_dir,
                     const FetchOptions& options) {
  const std::string entry = EntryPath(package, cache_dir);
  int error = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (std::rename(work.c_str(), entry.c_str()) == 0) return absl::OkStatus();
    error = errno;
    if (FindDebianPackage(package, cache_dir, options).ok()) return absl::OkStatus();
    std::rename(entry.c_str(), aside.c_str());
  }
  return absl::UnknownError(absl::StrCat(
      entry,
      ": cannot be put in place: ", std::error_code(error, std::generic_category()).message()));
}

}  // namespace

std::string DefaultDataCache() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string data = variable("PIPELAB_DATA"); !data.empty()) return data;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return JoinPath(cache, "pipelab/data");
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : JoinPath(home, ".cache/pipelab/data");
}

absl::StatusOr<std::string> FindDebianPackage(const DebianPackage& package,
                                              absl::string_view cache_dir,
                                              const FetchOptions& options) {
  const std::string entry = EntryPath(package, cache_dir);
  if (cache_dir.empty() || !PathExists(entry)) {
    return absl::NotFoundError(
        absl::StrCat(Title(package), ": not in the data cache '", cache_dir, "'"));
  }
  const auto stamp = ReadFile(JoinPath(entry, kStamp), 1000);
  if (!stamp.ok() || *stamp != package.sha256 + "\n") {
    return absl::DataLossError(absl::StrCat(entry, ": has no stamp of the package's sha256"));
  }
  const std::string files = JoinPath(entry, kFiles);
  PIPELAB_RETURN_IF_ERROR(CheckSha256List(files, absl::StrCat("../", kSums), options.sha256sum));
  return files;
}

absl::StatusOr<std::string> FetchDebianPackage(const DebianPackage& package,
                                               absl::string_view cache_dir,
                                               const FetchOptions& options) {
  const auto cached = FindDebianPackage(package, cache_dir, options);
  if (cached.ok() || absl::IsUnavailable(cached.status())) return cached;
  PIPELAB_RETURN_IF_ERROR(CheckWritableDirectory("PIPELAB_DATA", cache_dir));
  PIPELAB_ASSIGN_OR_RETURN(const std::string scratch,
                           MakeScratchDirectory(cache_dir, package.name));
  const auto discard = absl::MakeCleanup([&] { RemoveTree(scratch).IgnoreError(); });
  if (absl::IsDataLoss(cached.status())) {
    LOG(WARNING) << cached.status().message() << ": fetching it again";
  }
  const std::string work = JoinPath(scratch, "new");
  PIPELAB_RETURN_IF_ERROR(MakeDirectories(work));
  PIPELAB_ASSIGN_OR_RETURN(const std::string deb, Download(package, work, options));
  PIPELAB_RETURN_IF_ERROR(CheckDownload(package, deb, options));
  PIPELAB_RETURN_IF_ERROR(Unpack(package, deb, work, options));
  PIPELAB_RETURN_IF_ERROR(Publish(package, work, JoinPath(scratch, "damaged"), cache_dir, options));
  return JoinPath(EntryPath(package, cache_dir), kFiles);
}

}  // namespace pipelab
