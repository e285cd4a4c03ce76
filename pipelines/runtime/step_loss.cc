#include "pipelines/runtime/step_loss.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/comm/byte_codec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::string ToBytes(const std::vector<LossPart>& parts, const LoadsOfLayers& loads) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Int(static_cast<int64_t>(parts.size()));
  for (const LossPart& part : parts) {
    out.Int(part.place).Double(part.gradient_norm).Int(static_cast<int64_t>(part.losses.size()));
    for (const auto& [micro_batch, loss] : part.losses) out.Int(micro_batch).Double(loss);
  }
  out.Int(static_cast<int64_t>(loads.size()));
  for (const auto& [layer, of_layer] : loads) {
    out.Int(layer).Int(of_layer.dropped).Int(static_cast<int64_t>(of_layer.rows.size()));
    for (const int64_t rows : of_layer.rows) out.Int(rows);
  }
  return bytes;
}

absl::Status AddFromBytes(const std::string& bytes, std::vector<LossPart>* parts,
                          LoadsOfLayers* loads) {
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
  LoadsOfLayers more;
  for (int64_t n = in.Int(); n > 0 && in.ok(); --n) {
    ExpertLoads& of_layer = more[static_cast<int>(in.Int())];
    of_layer.dropped = in.Int();
    for (int64_t e = in.Int(); e > 0 && in.ok(); --e) of_layer.rows.push_back(in.Int());
  }
  AddLoads(more, loads);
  return in.ok() ? absl::OkStatus()
                 : absl::DataLossError("what another process sent is not a list of losses");
}

}  // namespace

void AddLoads(const LoadsOfLayers& more, LoadsOfLayers* sum) {
  for (const auto& [layer, loads] : more) AddLoads(loads, &(*sum)[layer]);
}

double LargestLoad(const LoadsOfLayers& loads) {
  double largest = 0;
  for (const auto& [layer, of_layer] : loads) {
    const int64_t all = std::accumulate(of_layer.rows.begin(), of_layer.rows.end(), int64_t{0});
    if (all == 0) continue;
    const int64_t most = *std::max_element(of_layer.rows.begin(), of_layer.rows.end());
    const double mean = static_cast<double>(all) / static_cast<double>(of_layer.rows.size());
    largest = std::max(largest, static_cast<double>(most) / mean);
  }
  return largest;
}

StepLoss SumLosses(std::vector<LossPart> parts, LoadsOfLayers loads) {
  std::sort(parts.begin(), parts.end(),
            [](const LossPart& a, const LossPart& b) { return a.place < b.place; });
  std::map<int, double> losses;
  for (const LossPart& part : parts) {
    for (const auto& [micro_batch, loss] : part.losses) losses[micro_batch] += loss;
  }
  StepLoss all;
  for (const auto& [micro_batch, loss] : losses) all.sum += loss;
  if (!parts.empty()) all.gradient_norm = parts[0].gradient_norm;
  all.loads = std::move(loads);
  return all;
}

absl::StatusOr<StepLoss> SumLossesOfProcesses(ProcessGroup& group, const std::vector<LossPart>& own,
                                              const LoadsOfLayers& loads, absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                           group.ToAll(ToBytes(own, loads), limit));
  std::vector<LossPart> parts;
  LoadsOfLayers sum;
  for (const std::string& bytes : all) PIPELAB_RETURN_IF_ERROR(AddFromBytes(bytes, &parts, &sum));
  return SumLosses(std::move(parts), std::move(sum));
}

}  // namespace pipelab
