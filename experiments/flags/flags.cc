#include "experiments/flags/flags.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "experiments/flags/flag_scope.h"
#include "experiments/flags/waiting.h"
#include "glog/logging.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/exhaustion.h"
#include "tools/base/launch_place.h"
#include "tools/base/printable.h"

namespace pipelab {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;
constexpr int kDoesNotFit = 3;
constexpr absl::string_view kDoesNotFitPayload = "pipelab.does_not_fit";
// For the first of several processes to say what is wrong: a launcher ends all when one has ended.
constexpr absl::Duration kFirstLimit = absl::Seconds(10);

// glog and other libraries bring flags of their own; ours are defined below experiments/.
bool IsOurs(const absl::CommandLineFlag& flag) {
  return absl::StrContains(flag.Filename(), "experiments/");
}

absl::CommandLineFlag* FindOurs(absl::string_view name) {
  absl::CommandLineFlag* flag = absl::FindCommandLineFlag(CurrentFlagName(name));
  return flag != nullptr && IsOurs(*flag) ? flag : nullptr;
}

// The one list of names that options had before. Each is taken, with a warning, until 0.5.
constexpr std::pair<absl::string_view, absl::string_view> kOldNames[] = {
    {"chunks", "virtual_stages"},    {"gpus", "devices"},
    {"hop", "p2p_latency"},          {"kept", "activation_bytes"},
    {"large_gpus", "large_devices"}, {"micro_batch_samples", "stage_micro_batch_size"},
    {"number_type", "dtype"},        {"precision", "dtype"},
    {"samples", "micro_batch_size"}, {"update_every", "update_interval"},
};

// The flags that were set, and the name that each was given by.
std::map<std::string, std::string>& FlagsSet() {
  static auto* names = new std::map<std::string, std::string>;
  return *names;
}

// Notes that the flag is given by this name; one flag by two names is refused.
absl::Status NoteGiven(const absl::CommandLineFlag& flag, absl::string_view by_name) {
  const auto [it, first] = FlagsSet().try_emplace(std::string(flag.Name()), by_name);
  if (it->second != by_name) {
    return absl::InvalidArgumentError(absl::StrCat("--", it->second, " and --", by_name,
                                                   ": two names of one option; give --",
                                                   flag.Name(), " alone"));
  }
  if (first && by_name != flag.Name() && PlaceFromEnvironment().process == 0) {
    std::fprintf(stderr, "warning: --%s is now --%s; the old name goes away in 0.7\n",
                 std::string(by_name).c_str(), std::string(flag.Name()).c_str());
  }
  return absl::OkStatus();
}

std::string NearestFlag(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const auto& [known, flag] : absl::GetAllFlags()) {
    if (IsOurs(*flag)) names.push_back(known);
  }
  std::sort(names.begin(), names.end());
  return DidYouMean(name, names, "--");
}

absl::Status Set(absl::CommandLineFlag* flag, absl::string_view value) {
  std::string error;
  if (flag->ParseFrom(value, &error)) return absl::OkStatus();
  const char* what = flag->IsOfType<int>() || flag->IsOfType<int64_t>() ? "a whole number"
                     : flag->IsOfType<uint64_t>() ? "a whole number, not negative"
                     : flag->IsOfType<double>()   ? "a number"
                     : flag->IsOfType<bool>()     ? "true or false"
                                                  : "another value";
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag->Name(), "=", value, ": must be ", what));
}

void PrintHelp(absl::string_view target, absl::string_view summary) {
  std::printf("%s\n\n  tools/bazel run %s -- [options]\n\n", std::string(summary).c_str(),
              std::string(target).c_str());
  std::map<std::string, const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (IsOurs(*flag)) flags[std::string(name)] = flag;
  }
  for (const auto& [name, flag] : flags) {
    std::printf("  --%s (default %s)\n      %s\n", name.c_str(), flag->CurrentValue().c_str(),
                flag->Help().c_str());
  }
}

// A disk may be full. A reader that has seen enough (`... | head`) is no failure.
bool FlushStdout() {
  // A part that was written before may have failed, and its reason is all there is.
  if (std::ferror(stdout) == 0) errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  if (errno == EPIPE) return true;
  std::fprintf(stderr, "stdout: could not be written%s%s\n", errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return false;
}

}  // namespace

absl::string_view CurrentFlagName(absl::string_view name) {
  for (const auto& [old, now] : kOldNames) {
    if (name == old) return now;
  }
  return name;
}

bool FlagWasSet(absl::string_view name) { return FlagsSet().count(std::string(name)) > 0; }

absl::StatusOr<std::vector<std::string>> ParseFlags(absl::Span<const std::string> words) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (word == "--") {
      rest.insert(rest.end(), words.begin() + i + 1, words.end());
      break;
    }
    if (!absl::StartsWith(word, "--")) {
      rest.emplace_back(word);
      continue;
    }
    const absl::string_view body = word.substr(2);
    const size_t equals = body.find('=');
    const absl::string_view name = body.substr(0, equals);
    absl::Status set;
    if (absl::CommandLineFlag* flag = FindOurs(name)) {
      set = NoteGiven(*flag, name);
      if (!set.ok()) return set;
      if (equals != absl::string_view::npos) {
        set = Set(flag, body.substr(equals + 1));
      } else if (flag->IsOfType<bool>()) {
        set = Set(flag, "true");
      } else if (i + 1 < words.size()) {
        set = Set(flag, words[++i]);
      } else {
        set = absl::InvalidArgumentError(absl::StrCat("--", name, ": its value is missing"));
      }
    } else if (absl::CommandLineFlag* off =
                   absl::StartsWith(name, "no") ? FindOurs(name.substr(2)) : nullptr;
               off != nullptr && off->IsOfType<bool>() && equals == absl::string_view::npos) {
      set = Set(off, "false");
    } else {
      set = absl::InvalidArgumentError(
          absl::StrCat("--", name, ": unknown option; --help lists them", NearestFlag(name)));
    }
    if (!set.ok()) return set;
  }
  return rest;
}

FlagScope::FlagScope() : values_(ResolvedFlags()) { set_.swap(FlagsSet()); }

FlagScope::~FlagScope() {
  for (const auto& [name, value] : ResolvedFlags()) {
    const std::string& before = values_.at(name);
    if (value != before) CHECK(Set(FindOurs(name), before).ok()) << name;
  }
  set_.swap(FlagsSet());
}

void SetFlagDefaults(absl::Span<const std::pair<std::string, std::string>> values) {
  for (const auto& [name, value] : values) {
    absl::CommandLineFlag* flag = FindOurs(name);
    CHECK(flag != nullptr) << name;
    const absl::Status set = Set(flag, value);
    CHECK(set.ok()) << set;
  }
}

std::map<std::string, std::string> ResolvedFlags() {
  std::map<std::string, std::string> values;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (IsOurs(*flag)) values[std::string(name)] = flag->CurrentValue();
  }
  return values;
}

absl::Status DoesNotFit(absl::string_view message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kDoesNotFitPayload, absl::Cord("1"));
  return status;
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  if (absl::IsInvalidArgument(status)) return kUsage;
  if (absl::IsCancelled(status)) return kInterrupted;
  return status.GetPayload(kDoesNotFitPayload).has_value() ? kDoesNotFit : kFailure;
}

void PrintError(const absl::Status& status) {
  // An option's value or a file may hold line breaks and what steers a terminal; an error is one
  // line. One without a message has been told on stdout.
  if (status.message().empty()) return;
  std::fprintf(stderr, "%s\n", WithoutMiddle(Printable(status.message())).c_str());
}

namespace {

// Processes that were started together have the same words, and the first says for all what is
// wrong with them; then the launcher ends the others. Where it does not, this one has an error of
// its own, or a launcher that leaves it alone.
void PrintInTurn(const LaunchPlace& place, const absl::Status& status) {
  if (place.process > 0) absl::SleepFor(kFirstLimit);
  if (place.process == 0 || status.message().empty()) return PrintError(status);
  PrintError(absl::Status(status.code(), absl::StrCat("rank ", place.process, " of ",
                                                      place.processes, ": ", status.message())));
}

// "search" of "//experiments:pipelab", which has commands; else the program's name.
std::string LabelOf(absl::string_view target, const std::vector<std::string>& words) {
  const absl::string_view program = target.substr(target.find(':') + 1);
  return program == "pipelab" && !words.empty() ? words[0] : std::string(program);
}

// One of several processes shows how long it takes, and the launcher ends all.
absl::Status RunInSight(const std::string& label, const LaunchPlace& place,
                        const std::function<absl::Status(const std::vector<std::string>&)>& run,
                        const std::vector<std::string>& words) {
  if (place.process > 0) return run(words);
  WaitingOptions options;
  options.takes_interrupts = place.processes == 1;
  const Waiting waiting(label, options);
  return run(words);
}

}  // namespace

int RunMain(int argc, char** argv, absl::string_view target, absl::string_view summary,
            const std::function<absl::Status(const std::vector<std::string>& words)>& run) {
  FLAGS_logtostderr = true;
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging(argv[0]);
  FlagsSet().clear();
  HandleExhaustion();
  std::signal(SIGPIPE, SIG_IGN);  // `... | head` must not lose a report
  const LaunchPlace place = PlaceFromEnvironment();
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      if (place.process == 0) PrintHelp(target, summary);
      return FlushStdout() ? 0 : kFailure;
    }
  }
  auto rest = ParseFlags(words);
  const absl::Status status =
      rest.ok() ? RunInSight(LabelOf(target, *rest), place, run, *rest) : rest.status();
  if (status.ok()) return FlushStdout() ? 0 : kFailure;
  PrintInTurn(place, status);
  return ExitCode(status);
}

}  // namespace pipelab
