// Fetches every data set into the cache, ahead of a run without network, and says what came and
// what the baselines reach on it: the figures of docs/data.md.
//
//   bazel run //models/data:fetch
//   PIPELAB_DATA=/data bazel run //models/data:fetch     # another cache
#include <iostream>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "models/data/austen.h"
#include "models/data/cox2.h"
#include "models/data/fashion_mnist.h"
#include "models/data/movielens.h"
#include "models/data/package_cache.h"
#include "models/data/summaries.h"
#include "models/data/translations.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<std::string> AsStatusOr(absl::StatusOr<std::string> text) { return text; }

// Fetches the package, loads its data and prints their summary.
template <typename Load>
absl::Status Show(const DebianPackage& package, Load load) {
  absl::Time start = absl::Now();
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir, FetchDebianPackage(package, DefaultDataCache()));
  const double fetch_ms = absl::ToDoubleMilliseconds(absl::Now() - start);
  start = absl::Now();
  PIPELAB_ASSIGN_OR_RETURN(const auto data, load(dir));
  const double load_ms = absl::ToDoubleMilliseconds(absl::Now() - start);
  PIPELAB_ASSIGN_OR_RETURN(const std::string summary, AsStatusOr(Summary(data)));
  std::cout << summary
            << absl::StrFormat("  fetched and checked in %.0f ms, read in %.0f ms\n  %s\n\n",
                               fetch_ms, load_ms, dir)
            << std::flush;
  return absl::OkStatus();
}

absl::Status Main() {
  PIPELAB_RETURN_IF_ERROR(Show(AustenPackage(), LoadAusten));
  PIPELAB_RETURN_IF_ERROR(Show(FashionMnistPackage(), LoadFashionMnist));
  PIPELAB_RETURN_IF_ERROR(Show(IsoCodesPackage(), LoadIsoCodes));
  PIPELAB_RETURN_IF_ERROR(Show(DslabsPackage(), LoadMovieLens));
  return Show(CaretPackage(), LoadCox2);
}

}  // namespace
}  // namespace pipelab

int main() {
  const absl::Status status = pipelab::Main();
  if (status.ok()) return 0;
  std::cerr << "fetch: " << status.message() << "\n";
  return 1;
}
