// Data sets that are Debian packages: fetched once through apt, checked by SHA-256, unpacked in a
// cache.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string dir, FetchDebianPackage(kAusten, DefaultDataCache()));
//   ReadFile(JoinPath(dir, "usr/share/..."));
//
// Neither root nor a package's dependencies are needed: `apt-get download` and `dpkg-deb -x`
// install nothing. A folder of the cache appears whole, by one rename; callers at the same time and
// interrupted ones do no harm. Every later call checks the unpacked files against their sums,
// recorded when they were unpacked.
//
// Errors are one line: Unavailable without apt, network or the package (callers may then use
// generated data and say so), FailedPrecondition when another version is on offer, DataLoss for a
// wrong sum, InvalidArgument when the cache cannot be written.
#ifndef PIPELAB_MODELS_DATA_PACKAGE_CACHE_H_
#define PIPELAB_MODELS_DATA_PACKAGE_CACHE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pipelab {

struct DebianPackage {
  std::string name;
  std::string version;
  std::string sha256;  // of the .deb, 64 lower-case hexadecimal digits
};

// Programs and limits; tests put their own in place.
struct FetchOptions {
  std::string apt_get = "apt-get";
  std::string dpkg_deb = "dpkg-deb";
  std::string sha256sum = "sha256sum";
  absl::Duration timeout = absl::Minutes(5);  // of one program
  bool update_lists = true;                   // root may run `apt-get update` where it never ran
};

// $PIPELAB_DATA, else $XDG_CACHE_HOME/pipelab/data, else ~/.cache/pipelab/data; empty when none is
// set.
std::string DefaultDataCache();

// The folder the package is unpacked in, from the cache or through apt.
absl::StatusOr<std::string> FetchDebianPackage(const DebianPackage& package,
                                               absl::string_view cache_dir,
                                               const FetchOptions& options = {});

// The same from the cache alone: NotFound when it is not there, DataLoss when its files have
// changed. Writes nothing.
absl::StatusOr<std::string> FindDebianPackage(const DebianPackage& package,
                                              absl::string_view cache_dir,
                                              const FetchOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_PACKAGE_CACHE_H_
