#include "kernels/comm/follow_up.h"

#include "absl/strings/cord.h"

namespace pipelab {
namespace {

constexpr char kFollowUpUrl[] = "pipelab/comm/follow-up";

}  // namespace

absl::Status MarkAsFollowUp(absl::Status error) {
  if (!error.ok()) error.SetPayload(kFollowUpUrl, absl::Cord());
  return error;
}

bool IsFollowUp(const absl::Status& status) { return status.GetPayload(kFollowUpUrl).has_value(); }

}  // namespace pipelab
