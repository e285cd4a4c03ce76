#include "experiments/training/processes.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "experiments/flags/flags.h"
#include "kernels/comm/follow_up.h"
#include "kernels/comm/launch.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// What one process does for all (serial training) may take that long.
constexpr absl::Duration kEndLimit = absl::Hours(24);
// For the first process to fetch data.
constexpr absl::Duration kFetchLimit = absl::Hours(1);
// For the process that failed to say its own error, after this one has heard an echo.
constexpr absl::Duration kReasonLimit = absl::Seconds(1);
// For the first process to print, before others end: launchers end all when one has.
constexpr absl::Duration kFirstLeavingLimit = absl::Seconds(3);

std::atomic<bool> g_told{false};

[[noreturn]] void Leave(const absl::Status& why, bool tells) {
  if (tells && !g_told.exchange(true)) PrintError(why);
  std::fflush(stdout);
  _exit(ExitCode(why));  // not through MPI_Finalize, which waits for those that failed
}

}  // namespace

absl::StatusOr<Processes> Processes::Join() {
  ProcessGroupOptions options;
  options.catch_signals = true;
  options.on_end = [](const absl::Status& why, bool tells) { Leave(why, tells); };
  absl::StatusOr<std::unique_ptr<Transport>> transport = JoinProcesses(options);
  if (!transport.ok()) return transport.status();
  Processes processes(*std::move(transport));
  if (!processes.speaks()) {
    Progress::SilenceAll();
    if (std::freopen("/dev/null", "w", stdout) == nullptr) {
      return processes.End(absl::UnavailableError("/dev/null cannot be opened"));
    }
  }
  return processes;
}

absl::Status Processes::CheckSame(absl::string_view what, absl::string_view text) const {
  if (group() == nullptr) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const std::string first, group()->FromFirst(text, kFetchLimit));
  if (first == text) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("rank ", group()->rank(), " has other ", what,
                                                    " than rank 0: ", text, ", not ", first));
}

// From the first process to the others.
absl::Status Processes::PassTurn() const {
  if (group() == nullptr) return absl::OkStatus();
  return group()->FromFirst("", kFetchLimit).status();
}

absl::Status Processes::End(absl::Status status) {
  ProcessGroup* const all = group();
  if (all == nullptr) return status;
  if (status.ok()) {
    status = all->FromFirst("done", kEndLimit).status();
    if (status.ok()) {
      transport_ = nullptr;
      return status;
    }
  }
  // The words of the process that failed, where this one has but heard of it.
  if (IsFollowUp(status)) {
    const absl::Time deadline = absl::Now() + kReasonLimit;
    while (!all->program().ended() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
    if (all->program().ended()) status = all->program().Check();
  } else {
    status = all->program().Fail(std::move(status));
  }
  if (!speaks()) all->AwaitFirstLeaving(kFirstLeavingLimit);
  Leave(status, speaks());
}

}  // namespace pipelab
