// Fetches every data set into the cache, ahead of a run without network, and says what came and
// what the baselines reach on it: the figures of docs/data.md.
//
//   bazel run //models/data:fetch
//   PIPELAB_DATA=/data bazel run //models/data:fetch     # another cache
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "models/data/austen.h"
#include "models/data/camera_frames.h"
#include "models/data/cox2.h"
#include "models/data/emoji.h"
#include "models/data/fashion_mnist.h"
#include "models/data/manuals.h"
#include "models/data/movielens.h"
#include "models/data/package_cache.h"
#include "models/data/summaries.h"
#include "models/data/theorem_graph.h"
#include "models/data/translations.h"
#include "models/data/wordnet_graph.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<std::string> AsStatusOr(absl::StatusOr<std::string> text) { return text; }

// Fetches the packages, loads their data and prints the summary. `load` takes a folder a package.
template <typename... Packages, typename Load>
absl::Status Show(Load load, const Packages&... packages) {
  absl::Time start = absl::Now();
  std::vector<std::string> dirs;
  for (const DebianPackage* package : {&packages...}) {
    PIPELAB_ASSIGN_OR_RETURN(dirs.emplace_back(), FetchDebianPackage(*package, DefaultDataCache()));
  }
  const double fetch_ms = absl::ToDoubleMilliseconds(absl::Now() - start);
  start = absl::Now();
  PIPELAB_ASSIGN_OR_RETURN(const auto data, load(dirs));
  const double load_ms = absl::ToDoubleMilliseconds(absl::Now() - start);
  PIPELAB_ASSIGN_OR_RETURN(const std::string summary, AsStatusOr(Summary(data)));
  std::cout << summary
            << absl::StrFormat("  fetched and checked in %.0f ms, read in %.0f ms\n  %s\n\n",
                               fetch_ms, load_ms, absl::StrJoin(dirs, "\n  "))
            << std::flush;
  return absl::OkStatus();
}

// A loader of one package's folder as a loader of folders.
template <typename Load>
auto One(Load load) {
  return [load](const std::vector<std::string>& dirs) { return load(dirs[0]); };
}

absl::Status Main() {
  PIPELAB_RETURN_IF_ERROR(Show(One(LoadAusten), AustenPackage()));
  PIPELAB_RETURN_IF_ERROR(Show(One(LoadFashionMnist), FashionMnistPackage()));
  PIPELAB_RETURN_IF_ERROR(Show(One(LoadIsoCodes), IsoCodesPackage()));
  PIPELAB_RETURN_IF_ERROR(Show(One(LoadMovieLens), DslabsPackage()));
  PIPELAB_RETURN_IF_ERROR(Show(One(LoadCox2), CaretPackage()));
  PIPELAB_RETURN_IF_ERROR(Show(One([](const std::string& dir) { return LoadCameraFrames(dir, 1); }),
                               CameraFramesPackage()));
  PIPELAB_RETURN_IF_ERROR(Show(One(LoadTheoremGraph), MetamathPackage()));
  PIPELAB_RETURN_IF_ERROR(Show(One(LoadWordNetGraph), WordNetPackage()));
  // It fetches the catalogues, too.
  const auto manuals = [](const std::vector<std::string>&) -> absl::StatusOr<ParallelText> {
    PIPELAB_ASSIGN_OR_RETURN(const ManualFolders folders, FetchManuals(DefaultDataCache()));
    return LoadManuals(folders, "de");
  };
  PIPELAB_RETURN_IF_ERROR(Show(manuals, ManualsPackage()));
  return Show(
      [](const std::vector<std::string>& dirs) { return LoadEmoji(dirs[0], dirs[1], dirs[2]); },
      EmojiFontPackage(), UnicodeDataPackage(), CldrPackage());
}

}  // namespace
}  // namespace pipelab

int main() {
  const absl::Status status = pipelab::Main();
  if (status.ok()) return 0;
  std::cerr << "fetch: " << status.message() << "\n";
  return 1;
}
