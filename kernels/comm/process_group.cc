#include "kernels/comm/process_group.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/follow_up.h"
#include "kernels/comm/frame_link.h"
#include "kernels/comm/process_hub.h"
#include "kernels/comm/process_meeting.h"
#include "tools/base/launch_place.h"
#include "tools/base/secret.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kPings = 8;

// The offset of the shortest round trip.
absl::StatusOr<int64_t> ClockOffset(ProcessHub& hub, absl::Duration limit) {
  ProcessHub::Echo best;
  for (int i = 0; i < kPings; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(const ProcessHub::Echo echo, hub.Ping(limit));
    if (i == 0 || echo.round_trip_ns < best.round_trip_ns) best = echo;
  }
  return best.offset_ns;
}

// Every address of this machine only where other machines have to reach it.
absl::StatusOr<Listener> ListenWhereAsked(const std::string& option) {
  if (!option.empty()) return Listen(option);
  const char* const asked = std::getenv(kListenVariable);
  if (asked == nullptr || *asked == '\0') {
    if (!PlaceFromEnvironment().one_host) return Listen("*");
    absl::StatusOr<Listener> loopback = Listen("127.0.0.1");
    return loopback.ok() ? loopback : Listen("::1");
  }
  absl::StatusOr<Listener> listener = Listen(asked);
  if (listener.ok()) return listener;
  return absl::Status(listener.status().code(),
                      absl::StrCat(kListenVariable, "=", asked, ": ", listener.status().message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Create(
    int rank, int size, const Rendezvous& rendezvous, const ProcessGroupOptions& options) {
  if (size < 1 || rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(absl::StrCat("process ", rank, " of ", size));
  }
  const std::string machine = MachineId();
  Links links;
  bool same_machine = true;
  if (rank == 0) {
    const absl::StatusOr<Listener> listening = ListenWhereAsked(options.listen_on);
    if (!listening.ok()) {  // the others are at the rendezvous, too
      rendezvous(0, MeetingPlace::Nowhere(listening.status())).status().IgnoreError();
      return listening.status();
    }
    const Listener& listener = *listening;
    const MeetingPlace meeting = {NewSecret(kTokenBytes), machine, listener.port,
                                  listener.addresses};
    absl::StatusOr<std::string> told = rendezvous(0, meeting.ToText());
    absl::StatusOr<Links> all =
        told.ok() ? Accept(listener.fd, size, meeting.token, options) : told.status();
    close(listener.fd);
    if (!all.ok()) return all.status();
    links = *std::move(all);
  } else {
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, rendezvous(rank, ""));
    PIPELAB_ASSIGN_OR_RETURN(const MeetingPlace meeting, MeetingPlace::FromText(text));
    same_machine = meeting.machine == machine;
    PIPELAB_ASSIGN_OR_RETURN(links, Connect(meeting, rank, size, options));
  }
  auto hub = std::make_shared<ProcessHub>(rank, size, std::move(links), options);
  hub->Start();
  auto group = std::unique_ptr<ProcessGroup>(new ProcessGroup(hub, 0));
  if (!same_machine) {
    PIPELAB_ASSIGN_OR_RETURN(group->clock_offset_ns_, ClockOffset(*hub, options.start_limit));
  }
  PIPELAB_RETURN_IF_ERROR(group->Meet(options.start_limit));
  return group;
}

ProcessGroup::ProcessGroup(std::shared_ptr<ProcessHub> hub, int64_t clock_offset_ns)
    : hub_(std::move(hub)),
      program_(hub_->Run(ProcessHub::kProgram)),
      clock_offset_ns_(clock_offset_ns) {}

ProcessGroup::~ProcessGroup() { hub_->Leave(); }

void ProcessGroup::AwaitFirstLeaving(absl::Duration limit) { hub_->AwaitFirstLeaving(limit); }

SharedRun& ProcessGroup::program() { return *program_; }
int ProcessGroup::rank() const { return hub_->rank(); }
int ProcessGroup::size() const { return hub_->size(); }
int64_t ProcessGroup::clock_offset_ns() const { return clock_offset_ns_; }

absl::StatusOr<std::vector<std::string>> ProcessGroup::ToAll(absl::string_view mine,
                                                             absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, hub_->Exchange(mine, true, true, limit));
  ByteReader in(bytes);
  std::vector<std::string> texts(size());
  for (std::string& text : texts) text = in.Text();
  if (!in.ok()) return absl::DataLossError("what rank 0 sent is not everybody's text");
  return texts;
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::ToFirst(absl::string_view mine,
                                                               absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, hub_->Exchange(mine, true, false, limit));
  std::vector<std::string> texts(rank() == 0 ? size() : 0);
  ByteReader in(bytes);
  for (std::string& text : texts) text = in.Text();
  return texts;
}

absl::StatusOr<std::string> ProcessGroup::FromFirst(absl::string_view text_of_0,
                                                    absl::Duration limit) {
  return hub_->Exchange(text_of_0, false, true, limit);
}

absl::Status ProcessGroup::Agree(const absl::Status& mine, absl::Duration limit) {
  std::string bytes;
  ByteWriter(&bytes).Int(static_cast<int64_t>(mine.code())).Text(mine.message());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> all, ToAll(bytes, limit));
  for (int r = 0; r < size(); ++r) {
    ByteReader in(all[r]);
    const auto code = static_cast<absl::StatusCode>(in.Int());
    if (in.ok() && code == absl::StatusCode::kOk) continue;
    absl::Status error(code, absl::StrCat("rank ", r, " of ", size(), ": ", in.Text()));
    return r == rank() ? error : MarkAsFollowUp(std::move(error));
  }
  return absl::OkStatus();
}

std::shared_ptr<SharedRun> ProcessGroup::BeginRun() { return hub_->Run(runs_++); }

void ProcessGroup::SetWhereabouts(int device, std::function<std::string()> text) {
  hub_->SetWhereabouts(device, std::move(text));
}
std::string ProcessGroup::Whereabouts(int device) const { return hub_->Whereabouts(device); }

absl::Status SharedRun::Check() const { return hub_->Check(*this); }
absl::Status SharedRun::Fail(absl::Status why) { return hub_->Fail(*this, std::move(why)); }

}  // namespace pipelab
