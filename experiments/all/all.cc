#include "experiments/all/all.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/all/claim_records.h"
#include "experiments/all/deterministic_columns.h"
#include "experiments/all/results_page.h"
#include "experiments/all/run_studies.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/waiting.h"
#include "experiments/published/coverage.h"
#include "experiments/report/environment.h"
#include "experiments/study/study_flags.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, out, "", "folder of the results; empty: results of the checkout");
STUDY_FLAG(bool, quick, false, "each study's --quick: all within minutes");
STUDY_FLAG(std::string, only, "", "studies to run, separated by commas; empty: all");
STUDY_FLAG(std::string, skip, "", "studies to leave out");
STUDY_FLAG(bool, verbose, false,
           "show all that the studies say while they run, instead of a line every half minute");
STUDY_FLAG(bool, update, false,
           "write the claims of the studies that ran and, with --quick, the deterministic columns, "
           "that they record, to experiments/results");

constexpr char kClaimRecords[] = "claims";  // experiments/results/claims.csv

absl::StatusOr<std::set<std::string>> Names(absl::string_view option, const std::string& text,
                                            const std::vector<StudyProgram>& all) {
  std::set<std::string> names;
  if (!text.empty()) names = absl::StrSplit(text, ',');
  for (const std::string& name : names) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.name == name; }))
      continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", text, ": '", name, "' is not one of ",
                     absl::StrJoin(all, ", ", [](std::string* out, const StudyProgram& s) {
                       absl::StrAppend(out, s.name);
                     })));
  }
  return names;
}

absl::StatusOr<std::vector<StudyProgram>> Chosen(const std::vector<std::string>& names) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StudyProgram> all, StudyPrograms(names));
  PIPELAB_ASSIGN_OR_RETURN(const auto only, Names("--only", absl::GetFlag(FLAGS_only), all));
  PIPELAB_ASSIGN_OR_RETURN(const auto skip, Names("--skip", absl::GetFlag(FLAGS_skip), all));
  std::vector<StudyProgram> chosen;
  for (const StudyProgram& study : all) {
    if (skip.count(study.name) == 0 && (only.empty() || only.count(study.name) > 0)) {
      chosen.push_back(study);
    }
  }
  if (!chosen.empty()) return chosen;
  return absl::InvalidArgumentError(
      absl::StrCat("--skip=", absl::GetFlag(FLAGS_skip), ": leaves no study to run"));
}

// "12.3 s; 4 claims met, 1 missed; deterministic columns equal".
std::string Line(const StudyOutcome& o, absl::Duration time) {
  std::string line = absl::StrCat(absl::FormatDuration(absl::Trunc(time, absl::Milliseconds(100))));
  if (!o.failure.empty()) absl::StrAppend(&line, "; FAILED: ", o.failure);
  if (!o.result.has_value()) return line;
  int met = 0;
  for (const Claim& c : o.result->claims) met += c.state == ClaimState::kMet ? 1 : 0;
  absl::StrAppend(&line, "; ", met, " claims met, ", o.missed(), " missed");
  if (!o.reference.empty()) absl::StrAppend(&line, "; deterministic columns ", o.reference);
  if (!o.not_compared.empty()) absl::StrAppend(&line, "; not compared: ", o.not_compared);
  return line;
}

// A path in the checkout.
absl::StatusOr<std::string> InCheckout(absl::string_view path) {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace != nullptr) return JoinPath(workspace, path);
  return absl::InvalidArgumentError("--update: works with `bazel run`, which names the checkout");
}

absl::Status WriteReference(const std::string& name, const std::string& text) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string path,
                           InCheckout(absl::StrCat("experiments/results/", name, ".csv")));
  return WriteFileAtomically(path, text);
}

absl::StatusOr<std::vector<ClaimRecord>> CommittedClaims() {
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReferenceOf(kClaimRecords));
  return ParseClaimRecords(text, kClaimRecords);
}

// The claims are those of all studies, also of those that no test runs again: a turn is noticed
// here.
absl::Status CheckExplained(const std::vector<ClaimRecord>& all) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string path, InCheckout("CHANGELOG.md"));
  PIPELAB_ASSIGN_OR_RETURN(const std::string changelog, ReadFile(path));
  const std::vector<std::string> lines = Unexplained(all, changelog);
  if (lines.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("claims.csv is written, and claims turned: ", absl::StrJoin(lines, "; ")));
}

absl::StatusOr<StudyOutcome> RunOne(const StudyProgram& study, const RunStudiesOptions& options) {
  StudyOutcome o = RunStudy(study, options);
  if (!options.quick || !o.result.has_value()) return o;
  o.not_compared = WhyNothingToCompare(*o.result);
  if (!o.not_compared.empty()) return o;
  if (absl::GetFlag(FLAGS_update)) {
    PIPELAB_RETURN_IF_ERROR(WriteReference(o.name, o.result->deterministic));
    o.reference = "written";
    return o;
  }
  const absl::StatusOr<std::string> reference = ReferenceOf(study.name);
  o.reference = reference.ok() ? CompareLines(*reference, o.result->deterministic)
                               : "are not committed: --update writes them";
  return o;
}

// The claims that studies record (claim_records.h), beside the committed ones. Says on standard
// error what differs.
absl::Status CheckClaimRecords(const std::vector<StudyOutcome>& outcomes, bool quick) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ClaimRecord> committed, CommittedClaims());
  std::vector<ClaimRecord> all = committed;
  for (const StudyOutcome& o : outcomes) {
    if (!o.result.has_value() || !o.not_compared.empty()) continue;
    const std::vector<ClaimRecord> before = Select(committed, o.name);
    std::vector<ClaimRecord> now =
        ToCommit(before, RecordsOf(o.name, o.result->claims, !quick), !quick);
    for (const std::string& line : ClaimDifferences(before, now)) {
      Waiting::Say(line);
    }
    NoteTurns(before, &now);
    Replace(o.name, std::move(now), &all);
  }
  if (absl::GetFlag(FLAGS_update)) {
    PIPELAB_RETURN_IF_ERROR(WriteReference(kClaimRecords, ClaimRecordsCsv(all)));
    PIPELAB_RETURN_IF_ERROR(CheckExplained(all));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<PublishedItem> items, PublishedItems());
  const std::vector<std::string> unanswered = Unanswered(items, all);
  if (unanswered.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("experiments/published/coverage.json: no study records ",
                                          absl::StrJoin(unanswered, "; ")));
}

absl::Status Run(const std::vector<std::string>& names, const std::vector<std::string>& words) {
  if (!words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0], "': not an option; options begin with --"));
  }
  RunStudiesOptions options;
  options.quick = absl::GetFlag(FLAGS_quick);
  options.verbose = absl::GetFlag(FLAGS_verbose);
  options.progress = true;
  options.out = absl::GetFlag(FLAGS_out);
  options.out =
      options.out.empty() ? ResolveOutputPath("", ".") : ResolveOutputPath(options.out, "");
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StudyProgram> studies, Chosen(names));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<PublishedItem> items, PublishedItems());
  // Told before hours of work where the committed claims are not at hand.
  PIPELAB_RETURN_IF_ERROR(CommittedClaims().status());
  PIPELAB_RETURN_IF_ERROR(CheckWritableDirectory("--out", options.out));
  std::vector<StudyOutcome> outcomes;
  int failed = 0, missed = 0;
  const absl::Time begin = absl::Now();
  for (const StudyProgram& study : studies) {
    const std::string name =
        absl::StrCat("[", outcomes.size() + 1, "/", studies.size(), "] ", study.name);
    Waiting::Say(absl::StrCat(name, " ..."));
    const absl::Time start = absl::Now();
    PIPELAB_ASSIGN_OR_RETURN(StudyOutcome o, RunOne(study, options));
    Waiting::Say(absl::StrCat(name, ": ", Line(o, absl::Now() - start)));
    failed += o.failure.empty() ? 0 : 1;
    missed += o.missed();
    outcomes.push_back(std::move(o));
    Waiting::Output output;
    output.Keep(absl::StrCat("the results of ", outcomes.size(), " of ", studies.size(),
                             " studies in ", options.out));
  }
  ResultsPageOptions page;
  page.quick = options.quick;
  page.environment = EnvironmentFields(ReadEnvironment());
  PIPELAB_ASSIGN_OR_RETURN(page.committed, CommittedClaims());
  const std::string file = JoinPath(options.out, "RESULTS.md");
  PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(file, ResultsPage(outcomes, items, page)));
  {
    const Waiting::Output output;
    std::printf("%zu studies in %s, %d claims missed\n%s\n", outcomes.size(),
                absl::FormatDuration(absl::Trunc(absl::Now() - begin, absl::Seconds(1))).c_str(),
                missed, file.c_str());
  }
  if (failed > 0) {
    return absl::InternalError(absl::StrCat(failed, " studies failed: ", file, " says why"));
  }
  return CheckClaimRecords(outcomes, options.quick);
}

}  // namespace

int RunAllStudies(int argc, char** argv, const std::vector<std::string>& studies) {
  RegisterStudyFlags(__FILE__);
  return RunMain(
      argc, argv, "//experiments:all",
      "Runs every study, each into a folder of its own, and writes RESULTS.md: what was claimed, "
      "published and found, what is missed first.",
      [&](const std::vector<std::string>& words) { return Run(studies, words); });
}

}  // namespace pipelab
