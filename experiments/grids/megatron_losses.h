// The published baseline of breadth-first: depth-first as Megatron-LM executed it in 2022
// (pipelines/step/execution.h). What each of its losses takes, and how much of the headline depends
// on what is not known of that run.
//
//   PIPELAB_ASSIGN_OR_RETURN(Table t, MegatronLossesTable(model, *sweep.Find(kMegatron, 8)));
//   PIPELAB_ASSIGN_OR_RETURN(auto cases, MegatronSensitivity(model, /*devices=*/64, /*batch=*/8,
//                                                            Recompute::kBlocks));
//   report.AddTable(SensitivityTable(cases));
//   report.AddClaim(HeadlineClaim(cases, /*devices=*/64, /*batch=*/8));
#ifndef PIPELAB_EXPERIMENTS_GRIDS_MEGATRON_LOSSES_H_
#define PIPELAB_EXPERIMENTS_GRIDS_MEGATRON_LOSSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/search/search.h"

namespace pipelab {

inline constexpr char kMegatron[] = "Megatron-LM 2022";

// Step times of one configuration of that method, with each loss alone and with all the others, and
// what breadth-first, which takes `breadth_first`, gains over the rest.
absl::StatusOr<Table> MegatronLossesTable(const StepModel& model, const RankedStep& megatron,
                                          Nanoseconds breadth_first);

// Both methods' best where one thing, or two, are taken differently.
struct SensitivityCase {
  std::string name;
  std::string unknown;  // which; empty: the defaults
  // A launch gap and a bandwidth of sends that are plausible, and all else as in the code of 2022;
  // else an assumption that contradicts that code, or is of the machine for all methods.
  bool in_range = true;
  absl::optional<RankedStep> breadth_first, megatron;

  // In percent, of the first over the second; none where one of them does not fit.
  absl::optional<double> Gain() const;
};

// The defaults come first. `recompute`: kBlocks or kFull; the other is one of the cases.
absl::StatusOr<std::vector<SensitivityCase>> MegatronSensitivity(const StepModel& model,
                                                                 int64_t devices, int64_t batch,
                                                                 Recompute recompute);

Table SensitivityTable(const std::vector<SensitivityCase>& cases);

// Met where the defaults come near the published gain. A miss says on which unknown it depends,
// where a case of the range reaches it, or that none does, and which other assumption would.
Claim HeadlineClaim(const std::vector<SensitivityCase>& cases, int64_t devices, int64_t batch);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRIDS_MEGATRON_LOSSES_H_
