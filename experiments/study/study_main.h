// The frame of every study: flags, result folder, report, exit code. A study is one file with a
// function that fills a report, and one that study_list.h declares.
//
//   absl::Status Run(StudyRun* study) {
//     PIPELAB_ASSIGN_OR_RETURN(const Setting setting, Read());   // refuse bad options first
//     PIPELAB_RETURN_IF_ERROR(study->Begin());                   // the folder can be written
//     study->report().AddTable(...);
//     study->report().AddClaim(...);
//     return absl::OkStatus();                                   // the frame writes, prints
//   }
//   int RunGraphpipeScalingStudy(int argc, char** argv) {
//     RegisterStudyFlags(__FILE__);                              // study_flags.h
//     StudyInfo info;
//     info.name = "graphpipe_scaling";
//     ...
//     return RunStudyMain(argc, argv, info, Run);
//   }
//
// Every study has --out (the folder; empty: results/NAME of the checkout) and --quick, which gives
// the flags of `quick` that the user did not set smaller values, and says in the report what that
// leaves out. Settings, seed (where there is a flag of that name) and the command that gives the
// same result again are recorded; files' places are not.
//
// Exit codes: 0 done; 1 failure, with the report where it could be made; 2 usage. A claim that is
// missed is a result and no failure, unless the study says so (FailAtEnd).
//
// A new study: its file, its lines in study_list.h and study_list.cc, a test.
#ifndef PIPELAB_EXPERIMENTS_STUDY_STUDY_MAIN_H_
#define PIPELAB_EXPERIMENTS_STUDY_STUDY_MAIN_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "experiments/report/report.h"
#include "tools/base/file.h"

namespace pipelab {

struct StudyInfo {
  std::string name;         // of the target
  std::string title;        // of the report
  std::string summary;      // for --help
  std::string description;  // the report's first paragraphs; empty: the summary
  using FlagValues = std::vector<std::pair<std::string, std::string>>;
  FlagValues defaults;  // where they are others than those in the flags' definitions
  FlagValues quick;     // under --quick
  // What --quick leaves out, as the end of a sentence: "6 of 8 batches"; empty: nothing.
  std::string quick_leaves_out;
  // Flags that name files, and say nothing to others.
  std::vector<std::string> unrecorded;
  // Called with the whole of the study's work, and its status is the program's: for what comes
  // before and after (processes.h). Empty: nothing does.
  std::function<absl::Status(const std::function<absl::Status()>& work)> frame;
};

class StudyRun {
 public:
  explicit StudyRun(const StudyInfo& info, std::string command);

  const StudyInfo& info() const { return info_; }
  bool quick() const;
  const std::string& out() const { return out_; }          // the folder
  const std::string& command() const { return command_; }  // that gives the same again

  // For processes that do not report, where there are several: no folder, nothing written or
  // printed.
  void BeQuiet() { quiet_ = true; }

  // Once, when the options are known to be right and before anything that takes time.
  absl::Status Begin();
  Report& report();  // after Begin (CHECKed)

  // A line under the tables on the terminal: "checkpoint: a.safetensors".
  void Say(absl::string_view line);
  // The run fails with this once its report is written; the first one stays.
  void FailAtEnd(absl::Status status);

  // Writes and prints; the first of FailAtEnd's. For RunStudyMain.
  absl::Status Finish();

 private:
  const StudyInfo& info_;
  std::string command_, out_;
  absl::optional<OutputDirectory> folder_;
  absl::optional<Report> report_;
  std::vector<std::string> lines_;
  absl::Status at_end_;
  bool quiet_ = false;
};

int RunStudyMain(int argc, char** argv, const StudyInfo& info,
                 const std::function<absl::Status(StudyRun*)>& run);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_STUDY_STUDY_MAIN_H_
