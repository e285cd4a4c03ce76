// Runs studies as programs, one after the other, each into a folder of its own.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<StudyProgram> all, StudyPrograms({"travel"}));
//   StudyOutcome o = RunStudy(all[0], {.quick = true, .out = "results"});
//
// A study that fails is an outcome, not an error: the others still run.
#ifndef PIPELAB_EXPERIMENTS_ALL_RUN_STUDIES_H_
#define PIPELAB_EXPERIMENTS_ALL_RUN_STUDIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "experiments/all/results_page.h"

namespace pipelab {

struct StudyProgram {
  std::string name;
  std::vector<std::string> command;  // the program and its first arguments; options follow
};

// This program, which is pipelab_study (study_program.cc), with the names of studies; "quickstart"
// is the program of that name beside it.
absl::StatusOr<std::vector<StudyProgram>> StudyPrograms(const std::vector<std::string>& names);

struct RunStudiesOptions {
  bool quick = false;
  std::string out;  // folder of the folders
  // What of the study's words goes to standard error: all of them, or a line now and then
  // (SomeLines).
  bool verbose = false, progress = false;
};

// Lines of a program that says much, few enough to be read: the last whole line that has come, once
// `every` has gone by since the one before, or since the begin.
class SomeLines {
 public:
  SomeLines(absl::Duration every, absl::Time begin) : every_(every), said_(begin) {}

  // With what comes; empty: nothing to say now.
  std::string Add(absl::string_view text, absl::Time now);

 private:
  const absl::Duration every_;
  absl::Time said_;
  std::string rest_, line_;  // of a line that has not ended; the last that has
};

// Into OUT/NAME, where an older result stays if the study fails; it is no outcome then.
StudyOutcome RunStudy(const StudyProgram& study, const RunStudiesOptions& options);

// The committed deterministic columns of a quick run; NotFound where there are none.
absl::StatusOr<std::string> ReferenceOf(absl::string_view study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_RUN_STUDIES_H_
