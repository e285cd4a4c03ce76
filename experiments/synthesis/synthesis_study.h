// How good synthesized orders are: against the catalogue at the same memory, against their bounds,
// and on models whose stages or devices are unequal.
//
//   PIPELAB_ASSIGN_OR_RETURN(const SynthesisStudy study, RunSynthesisStudy(size));
//   for (Table& t : SynthesisTables(study)) report.AddTable(std::move(t));
//   for (Claim& c : SynthesisClaims(study)) report.AddClaim(std::move(c));
//
// Searches end by rounds and nodes, so figures do not depend on the machine, unless a limit of time
// ends one; then the row says so.
#ifndef PIPELAB_EXPERIMENTS_SYNTHESIS_SYNTHESIS_STUDY_H_
#define PIPELAB_EXPERIMENTS_SYNTHESIS_SYNTHESIS_STUDY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct SynthesisStudySize {
  int most_devices = 16;          // of the grid of equal times: 2, 4, 8, ... of them
  int most_small = 8;             // micro-batches of small sizes
  bool large = true;              // P = 32, M = 128
  int rounds = 6, cases = 20;     // of varied beams; of unequal cases
  int widest = 256;               // beam
  int64_t exact_nodes = 1 << 21;  // of an exact search
  double small_limit_s = 60, large_limit_s = 300, unequal_limit_s = 60;
  int slice_cases = 4;    // of problems with token slices
  int idle_devices = 16;  // of the grid of idle times: 4, 8 and 16 of them
  int idle_rounds = 12;
  int64_t idle_moves = 20000;  // SynthesisOptions::moves
  double idle_limit_s = 60;    // a problem of it
};

// A problem and what came out.
struct SynthesizedRow {
  std::string name;
  int devices = 0, micro_batches = 0;
  std::string placement, times, memory;
  std::string scheme;    // the best of the catalogue; empty: none fits
  double catalogue = 0;  // its makespan, in forwards of equal times or ns
  double makespan = 0, bound = 0;
  std::string reason, found_by;
  bool optimal = false, stopped = false;

  double gap() const { return makespan > 0 ? (makespan - bound) / makespan : 0; }
};

// A step of a model.
struct UnequalCaseRow {
  std::string name, placement, scheme;  // none of the catalogue fits: an empty scheme
  double catalogue_ms = 0, step_ms = 0, passes_ms = 0, bound_ms = 0;

  bool stopped = false;  // by the limit of time

  double gain() const { return 1 - step_ms / catalogue_ms; }
};

// With up to so many token slices of a micro-batch. Steps of a model, or passes of equal times (1
// ms each of a whole micro-batch).
struct SlicesRow {
  int slices = 1;
  UnequalCaseRow found;
};

struct SynthesisStudy {
  std::vector<SynthesizedRow> equal, small, medium, large;
  std::vector<UnequalCaseRow> unequal;
  std::vector<SlicesRow> slices;
};

double MedianOf(std::vector<double> values);  // 0 of none

absl::StatusOr<SynthesisStudy> RunSynthesisStudy(const SynthesisStudySize& size);
std::vector<Table> SynthesisTables(const SynthesisStudy& study);
std::vector<Claim> SynthesisClaims(const SynthesisStudy& study);

// Steps of models: the first `cases` of 20.
absl::StatusOr<std::vector<UnequalCaseRow>> RunUnequalCases(const SynthesisStudySize& size);

// The first `slice_cases` of equal times and three sizes of Llama-3 8B, each with up to 1, 2 and 4
// token slices.
absl::StatusOr<std::vector<SlicesRow>> RunSliceCases(const SynthesisStudySize& size);
Table SlicesTable(const std::vector<SlicesRow>& rows);
Claim SlicesClaim(const std::vector<SlicesRow>& rows);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SYNTHESIS_SYNTHESIS_STUDY_H_
