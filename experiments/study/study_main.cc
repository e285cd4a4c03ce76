#include "experiments/study/study_main.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/waiting.h"
#include "experiments/study/study_flags.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, out, "", "folder of the report; empty: results/NAME of the checkout");
STUDY_FLAG(bool, quick, false,
           "a smaller study, for a first look; its report says what is left out");

using Flags = std::map<std::string, std::string>;

bool Has(const StudyInfo::FlagValues& values, const std::string& name) {
  return std::any_of(values.begin(), values.end(),
                     [&](const auto& value) { return value.first == name; });
}

bool Recorded(const StudyInfo& info, const std::string& name) {
  return name != "out" &&
         std::find(info.unrecorded.begin(), info.unrecorded.end(), name) == info.unrecorded.end();
}

void ApplyQuick(const StudyInfo& info) {
  if (!absl::GetFlag(FLAGS_quick)) return;
  for (const auto& [name, value] : info.quick) {
    if (!FlagWasSet(name)) SetFlagDefaults({{name, value}});
  }
}

// With every recorded flag that is not as the study, or --quick, has it.
std::string CommandOf(const StudyInfo& info, const Flags& defaults) {
  const bool quick = absl::GetFlag(FLAGS_quick);
  std::string flags;
  for (const auto& [name, value] : ResolvedFlags()) {
    if (!Recorded(info, name) || name == "quick") continue;
    const bool by_quick = quick && Has(info.quick, name);
    if (by_quick ? FlagWasSet(name) : defaults.at(name) != value) {
      absl::StrAppend(&flags, " --", name, "=", value);
    }
  }
  if (quick) flags = " --quick" + flags;
  return absl::StrCat("tools/bazel run //experiments:", info.name, flags.empty() ? "" : " --",
                      flags);
}

ReportOptions OptionsOf(const StudyInfo& info, const std::string& command, const Flags& flags) {
  ReportOptions about;
  about.name = info.name;
  about.title = info.title;
  about.summary = info.description.empty() ? info.summary : info.description;
  about.command = command;
  const auto seed = flags.find("seed");
  if (seed != flags.end() && !absl::SimpleAtoi(seed->second, &about.seed)) about.seed = 0;
  return about;
}

}  // namespace

StudyRun::StudyRun(const StudyInfo& info, std::string command)
    : info_(info),
      command_(std::move(command)),
      out_(ResolveOutputPath(absl::GetFlag(FLAGS_out), info.name)) {}

bool StudyRun::quick() const { return absl::GetFlag(FLAGS_quick); }

absl::Status StudyRun::Begin() {
  CHECK(!report_.has_value()) << "Begin() once";
  if (!quiet_) {
    PIPELAB_ASSIGN_OR_RETURN(folder_, OutputDirectory::Create("--out", out_));
  }
  const Flags flags = ResolvedFlags();
  report_.emplace(OptionsOf(info_, command_, flags));
  for (const auto& [name, value] : flags) {
    if (Recorded(info_, name)) report_->AddConfig(name, value);
  }
  if (quick() && !info_.quick_leaves_out.empty()) {
    report_->AddNote(absl::StrCat("--quick leaves out ", info_.quick_leaves_out, "."));
  }
  return absl::OkStatus();
}

Report& StudyRun::report() {
  CHECK(report_.has_value()) << "Begin() comes first";
  return *report_;
}

void StudyRun::Say(absl::string_view line) { lines_.emplace_back(line); }

void StudyRun::FailAtEnd(absl::Status status) {
  if (at_end_.ok()) at_end_ = std::move(status);
}

absl::Status StudyRun::Finish() {
  if (quiet_) return at_end_;
  Waiting::Output output;
  PIPELAB_RETURN_IF_ERROR(report().WriteTo(&*folder_));
  output.Keep(out_);
  std::printf("%s\nreport: %s/report.html\n", report().ToTerminal().c_str(), out_.c_str());
  for (const std::string& line : lines_) std::printf("%s\n", line.c_str());
  return at_end_;
}

int RunStudyMain(int argc, char** argv, const StudyInfo& info,
                 const std::function<absl::Status(StudyRun*)>& run) {
  RegisterStudyFlags(__FILE__);
  SetFlagDefaults(info.defaults);
  const Flags defaults = ResolvedFlags();
  return RunMain(argc, argv, absl::StrCat("//experiments:", info.name), info.summary,
                 [&](const std::vector<std::string>& words) -> absl::Status {
                   if (!words.empty()) {
                     return absl::InvalidArgumentError(
                         absl::StrCat("'", words[0], "': not an option; options begin with --"));
                   }
                   ApplyQuick(info);
                   const auto work = [&]() -> absl::Status {
                     StudyRun study(info, CommandOf(info, defaults));
                     PIPELAB_RETURN_IF_ERROR(run(&study));
                     return study.Finish();
                   };
                   return info.frame ? info.frame(work) : work();
                 });
}

}  // namespace pipelab
