#include "experiments/modern/flash_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "models/graph/operation.h"
#include "pipelines/cluster/kernel_rates.h"

namespace pipelab {
namespace {

constexpr int kLengths = 6;  // 512, 1024, ... 16384 tokens
using Rates = std::array<double, kLengths>;
struct RatesOfHeads {
  Rates of_64, of_128;  // by the head's size
};
constexpr RatesOfHeads kH100 = {{141, 192, 232, 257, 273, 284}, {163, 221, 265, 294, 308, 328}};
constexpr Rates kB200OfAll = {258.71, 299.37, 320.70, 312.45, 332.97, 345.80};
constexpr RatesOfHeads kB200 = {kB200OfAll, kB200OfAll};
constexpr RatesOfHeads kA100 = {{88, 119, 140, 156, 165, 171}, {99, 133, 155, 173, 182, 189}};

double Between(double a, double b, double share) { return a + (b - a) * share; }

double At(const Rates& rates, int64_t tokens) {
  const double place =
      std::clamp(std::log2(static_cast<double>(tokens) / 512), 0.0, kLengths - 1.0);
  const int left = std::min(static_cast<int>(place), kLengths - 2);
  return Between(rates[left], rates[left + 1], place - left);
}

}  // namespace

absl::optional<double> FlashAttention2Rate(const std::string& gpu, int64_t head_size,
                                           int64_t tokens) {
  const RatesOfHeads* known = nullptr;
  for (const auto& [name, rates] :
       {std::make_pair("A100", &kA100), std::make_pair("H100", &kH100),
        std::make_pair("B200", &kB200), std::make_pair("GB200", &kB200)}) {
    if (absl::StartsWith(gpu, name)) known = rates;
  }
  if (known == nullptr) return absl::nullopt;
  const RatesOfHeads& table = *known;
  const double wide = std::clamp((static_cast<double>(head_size) - 64) / 64, 0.0, 1.0);
  return Between(At(table.of_64, tokens), At(table.of_128, tokens), wide);
}

void TakeFlashAttention2(const std::string& gpu, int64_t head_size, int64_t tokens,
                         ClusterSpec* cluster, double share) {
  const absl::optional<double> rate = FlashAttention2Rate(gpu, head_size, tokens);
  const auto peak = cluster->device.peaks.find(NumberType::kBf16);
  const auto curve = cluster->device.arithmetic.find(OperationKind::kAttention);
  if (!rate.has_value() || peak == cluster->device.peaks.end() ||
      curve == cluster->device.arithmetic.end()) {
    return;
  }
  const double of_peak = share * *rate * 1e12 / peak->second.value.value();
  auto& points = curve->second.value.points;
  const double times = of_peak / points.back().share;
  for (auto& point : points) point.share *= times;
  DropRates(OperationKind::kAttention, NumberType::kBf16, &cluster->device);
  curve->second.source = "published: FlashAttention-2, forward and backward";
}

}  // namespace pipelab
