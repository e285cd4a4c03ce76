// Runs studies as programs, one after the other, each into a folder of its own.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<StudyProgram> all, StudyPrograms());
//   StudyOutcome o = RunStudy(all[0], {.quick = true, .out = "results"});
//
// A study that fails is an outcome, not an error: the others still run.
#ifndef PIPELAB_EXPERIMENTS_ALL_RUN_STUDIES_H_
#define PIPELAB_EXPERIMENTS_ALL_RUN_STUDIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/all/results_page.h"

namespace pipelab {

struct StudyProgram {
  std::string name, path;
};

// Those of experiments/studies.bzl, in its order. NotFound where the program's data are not beside
// it.
absl::StatusOr<std::vector<StudyProgram>> StudyPrograms();
absl::StatusOr<std::vector<StudyProgram>> ParseStudyPrograms(absl::string_view text,
                                                             absl::string_view what);

struct RunStudiesOptions {
  bool quick = false;
  std::string out;        // folder of the folders
  bool progress = false;  // shows what the study says on standard error
};

// Into OUT/NAME, where an older result stays if the study fails; it is no outcome then.
StudyOutcome RunStudy(const StudyProgram& study, const RunStudiesOptions& options);

// The committed deterministic columns of a quick run; NotFound where there are none.
absl::StatusOr<std::string> ReferenceOf(absl::string_view study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_RUN_STUDIES_H_
