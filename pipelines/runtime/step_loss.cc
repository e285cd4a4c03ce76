#include "pipelines/runtime/step_loss.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/comm/byte_codec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::string ToBytes(const std::vector<LossPart>& parts) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Int(static_cast<int64_t>(parts.size()));
  for (const LossPart& part : parts) {
    out.Int(part.place).Double(part.gradient_norm).Int(static_cast<int64_t>(part.losses.size()));
    for (const auto& [micro_batch, loss] : part.losses) out.Int(micro_batch).Double(loss);
  }
  return bytes;
}

absl::Status AddFromBytes(const std::string& bytes, std::vector<LossPart>* parts) {
  ByteReader in(bytes);
  for (int64_t n = in.Int(); n > 0 && in.ok(); --n) {
    LossPart part;
    part.place = in.Int();
    part.gradient_norm = in.Double();
    for (int64_t m = in.Int(); m > 0 && in.ok(); --m) {
      const int micro_batch = static_cast<int>(in.Int());
      part.losses[micro_batch] = in.Double();
    }
    parts->push_back(std::move(part));
  }
  return in.ok() ? absl::OkStatus()
                 : absl::DataLossError("what another process sent is not a list of losses");
}

}  // namespace

StepLoss SumLosses(std::vector<LossPart> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const LossPart& a, const LossPart& b) { return a.place < b.place; });
  std::map<int, double> losses;
  for (const LossPart& part : parts) {
    for (const auto& [micro_batch, loss] : part.losses) losses[micro_batch] += loss;
  }
  StepLoss all;
  for (const auto& [micro_batch, loss] : losses) all.sum += loss;
  if (!parts.empty()) all.gradient_norm = parts[0].gradient_norm;
  return all;
}

absl::StatusOr<StepLoss> SumLossesOfProcesses(ProcessGroup& group, const std::vector<LossPart>& own,
                                              absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> all, group.ToAll(ToBytes(own), limit));
  std::vector<LossPart> parts;
  for (const std::string& bytes : all) PIPELAB_RETURN_IF_ERROR(AddFromBytes(bytes, &parts));
  return SumLosses(std::move(parts));
}

}  // namespace pipelab
