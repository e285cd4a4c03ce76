#include "experiments/modern/product_depth.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "models/graph/operation.h"

namespace pipelab {
namespace {

constexpr double kHalfDepth = 320, kFp8Depth = 640;
constexpr double kOfGpt3 = 1.07;

}  // namespace

bool HasProductDepth(const std::string& gpu) {
  return absl::StartsWith(gpu, "H100") || absl::StartsWith(gpu, "H200");
}

ProductDepth HopperDepth(NumberType type) {
  return {kHalfDepth, type == NumberType::kFp8 ? kFp8Depth : kHalfDepth};
}

void TakeDeepProducts(ClusterSpec* cluster) {
  const auto curve = cluster->device.arithmetic.find(OperationKind::kMatmul);
  if (curve == cluster->device.arithmetic.end()) return;
  for (auto& point : curve->second.value.points) point.share = std::min(1.0, point.share * kOfGpt3);
}

}  // namespace pipelab
