#include "models/graph/operation.h"

#include <array>
#include <utility>

#include "tools/base/name_table.h"

namespace pipelab {
namespace {

constexpr std::array<std::pair<OperationKind, const char*>, 12> kOperationKinds = {
    {{OperationKind::kMatmul, "matmul"},
     {OperationKind::kConvolution, "convolution"},
     {OperationKind::kAttention, "attention"},
     {OperationKind::kElementwise, "elementwise"},
     {OperationKind::kLayerNorm, "layer_norm"},
     {OperationKind::kBatchNorm, "batch_norm"},
     {OperationKind::kActivation, "activation"},
     {OperationKind::kGelu, "gelu"},
     {OperationKind::kPool, "pool"},
     {OperationKind::kLoss, "loss"},
     {OperationKind::kOptimizer, "optimizer"},
     {OperationKind::kMeasured, "measured"}}};

}  // namespace

const char* OperationKindName(OperationKind kind) { return NameInTable(kOperationKinds, kind); }

absl::StatusOr<OperationKind> FindOperationKind(absl::string_view name) {
  return FindInTable(kOperationKinds, name);
}

}  // namespace pipelab
