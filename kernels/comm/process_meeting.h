// How the processes of a group get their connections to process 0. What it tells the others (where
// it listens, and a token that nobody else knows) goes through a Rendezvous.
//
//   MeetingPlace m = {NewSecret(kTokenBytes), MachineId(), port, addresses};  // process 0
//   Links links = *Accept(listener, size, m.token, options);
//   Links links = *Connect(*MeetingPlace::FromText(text), rank, size, options);   // another
//
// Anybody can connect to the port. Before the token is there a connection may send kLargestHello
// bytes in ProcessGroupOptions::hello_limit; one that sends more, something else or nothing is
// closed. Nobody else waits for it, and at most kMostStrangers beyond those that are expected are
// open at one time. Only process_group.cc uses this.
#ifndef PIPELAB_KERNELS_COMM_PROCESS_MEETING_H_
#define PIPELAB_KERNELS_COMM_PROCESS_MEETING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/comm/frame_link.h"
#include "kernels/comm/process_group.h"

namespace pipelab {

using Links = std::vector<std::unique_ptr<FrameLink>>;  // [rank]

constexpr int kTokenBytes = 16;
constexpr uint64_t kLargestHello = 256;  // bytes: rank and token are 48
constexpr size_t kMostStrangers = 64;

// What process 0 tells the others: where it is, and what tells it from any other program.
struct MeetingPlace {
  std::string token, machine;
  int port = 0;
  std::vector<std::string> addresses;

  std::string ToText() const;
  // In its place where process 0 cannot listen: FromText gives the error, as a follow-up.
  static std::string Nowhere(const absl::Status& why);
  static absl::StatusOr<MeetingPlace> FromText(const std::string& text);
};

// The same for all processes of one running kernel, whose steady clocks are one.
std::string MachineId();

// Process 0: takes a connection from each other process. DeadlineExceeded names those that did not
// come within options.start_limit of now.
absl::StatusOr<Links> Accept(int listener, int size, const std::string& token,
                             const ProcessGroupOptions& options);
// Another process: tries all addresses of process 0 at once, since some may mean another machine
// from here, and takes the one that answers with the token.
absl::StatusOr<Links> Connect(const MeetingPlace& meeting, int rank, int size,
                              const ProcessGroupOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_PROCESS_MEETING_H_
