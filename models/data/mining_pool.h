// Two lists of sentences in which some have a partner in the other list, shuffled, and the answer
// which ones, kept apart.
//
//   const MiningTask task = MakeMiningTask(text, {/*seed=*/1});
//   PIPELAB_RETURN_IF_ERROR(WriteMiningTask(task, folder));
//   PIPELAB_ASSIGN_OR_RETURN(MiningPool pool, ReadMiningPool(folder));         // who mines
//   PIPELAB_ASSIGN_OR_RETURN(MiningTruth truth, ReadMiningTruth(folder));      // who judges
//
// Half of the pairs keep both sides, a quarter only the source, a quarter only the target. `wrong`
// adds sentences without a partner until each list has that many for each one with a partner, or
// there are no more. Without `with_pairs` no sentence has a partner: a half of the pairs gives
// sources, the other half targets.
//
// In the folder: source.txt, target.txt (a sentence a line), truth.txt ("source target", lines from
// 0, ascending). Errors of reading: NotFound, and InvalidArgument, with the line, for a truth that
// is not such a file.
#ifndef PIPELAB_MODELS_DATA_MINING_POOL_H_
#define PIPELAB_MODELS_DATA_MINING_POOL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/manuals.h"

namespace pipelab {

struct MiningPool {
  std::vector<std::string> source, target;
};
using MiningTruth = std::vector<std::pair<int32_t, int32_t>>;  // places in the lists, sorted

struct MiningTask {
  MiningPool pool;
  MiningTruth truth;
};

struct MiningTaskOptions {
  uint64_t seed = 1;
  double wrong = 0;
  bool with_pairs = true;
};

MiningTask MakeMiningTask(const ParallelText& text, const MiningTaskOptions& options);

absl::Status WriteMiningTask(const MiningTask& task, const std::string& folder);
absl::StatusOr<MiningPool> ReadMiningPool(const std::string& folder);
absl::StatusOr<MiningTruth> ReadMiningTruth(const std::string& folder);
// `file` names it in errors.
absl::StatusOr<MiningTruth> ParseMiningTruth(absl::string_view contents, absl::string_view file);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_MINING_POOL_H_
