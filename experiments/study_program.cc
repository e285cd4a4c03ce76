// Every study in one program:
//
//   pipelab_study NAME [options]        one study (study_list.h)
//   pipelab_study all [options]         all of them (all/all.h)
//   NAME [options]                      the same, by a link of the study's name to the program
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "experiments/all/all.h"
#include "experiments/flags/flags.h"
#include "experiments/study/study_list.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/exhaustion.h"

namespace pipelab {
namespace {

constexpr int kUsageError = 2;  // as flags.h has it
constexpr char kAllStudies[] = "all";

// Those that `all` runs, in its order: the quickstart is a program of its own, beside this one.
std::vector<std::string> NamesOfAll() {
  std::vector<std::string> names = {"quickstart"};
  for (const StudyEntry& study : StudyList()) {
    if (study.in_all) names.emplace_back(study.name);
  }
  return names;
}

bool IsStudy(absl::string_view name) {
  if (name == kAllStudies) return true;
  for (const StudyEntry& study : StudyList()) {
    if (name == study.name) return true;
  }
  return false;
}

int RunByName(absl::string_view name, int argc, char** argv) {
  if (name == kAllStudies) return RunAllStudies(argc, argv, NamesOfAll());
  for (const StudyEntry& study : StudyList()) {
    if (name == study.name) return study.run(argc, argv);
  }
  return kUsageError;
}

int PrintStudies() {
  std::printf(
      "Runs a study.\n\n  pipelab_study NAME [options]\n  pipelab_study NAME --help\n\n"
      "  %s (these but swarm_survival, and //experiments:quickstart)\n",
      kAllStudies);
  for (const StudyEntry& study : StudyList()) std::printf("  %s\n", study.name);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int Refuse(absl::string_view name) {
  std::vector<absl::string_view> names = {kAllStudies};
  for (const StudyEntry& study : StudyList()) names.emplace_back(study.name);
  PrintError(absl::InvalidArgumentError(
      absl::StrCat("'", name, "': no study; --help lists them", DidYouMean(name, names))));
  return kUsageError;
}

int RunProgram(int argc, char** argv) {
  const absl::string_view program = argc > 0 ? argv[0] : "";
  const absl::string_view by_link = program.substr(program.rfind('/') + 1);
  if (IsStudy(by_link)) return RunByName(by_link, argc, argv);
  if (argc < 2) {
    std::fprintf(stderr, "a study is missing; --help lists them\n");
    return kUsageError;
  }
  const absl::string_view name = argv[1];
  if (name == "--help" || name == "-h") return PrintStudies();
  return IsStudy(name) ? RunByName(name, argc - 1, argv + 1) : Refuse(name);
}

}  // namespace
}  // namespace pipelab

PIPELAB_HANDLES_EXHAUSTION;

int main(int argc, char** argv) { return pipelab::RunProgram(argc, argv); }
