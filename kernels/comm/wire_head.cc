#include "kernels/comm/wire_head.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status Bad(int peer, const Parts&... parts) {
  return absl::DataLossError(absl::StrCat("rank ", peer, " sent a head with ", parts...));
}

absl::StatusOr<DataType> TypeOf(int32_t type, int peer) {
  switch (static_cast<DataType>(type)) {
    case DataType::kFloat32:
    case DataType::kInt32:
    case DataType::kBFloat16:
      // The enumeration has one byte, so others look like these.
      if (type == static_cast<int32_t>(static_cast<DataType>(type))) {
        return static_cast<DataType>(type);
      }
  }
  return Bad(peer, "data type ", type, ", which there is not");
}

}  // namespace

absl::Status SetSpec(const Tensor& tensor, int rank, WireHead* head) {
  if (tensor.shape().size() > head->shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " sends ", tensor.shape().size(),
                                                   " dimensions; at most ", head->shape.size(),
                                                   " can be"));
  }
  head->type = static_cast<int32_t>(tensor.type());
  for (const int64_t d : tensor.shape()) head->shape[head->dims++] = d;
  return absl::OkStatus();
}

absl::StatusOr<TensorSpec> SpecOf(const WireHead& head, int peer) {
  TensorSpec spec;
  PIPELAB_ASSIGN_OR_RETURN(spec.type, TypeOf(head.type, peer));
  if (head.dims < 0 || head.dims > WireHead::kMostDims) {
    return Bad(peer, head.dims, " dimensions; at most ", WireHead::kMostDims, " can be");
  }
  int64_t bytes = SizeOf(spec.type);
  for (int32_t i = 0; i < head.dims; ++i) {
    const int64_t size = head.shape[i];
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) {
      return Bad(peer, "size ", size, " of dimension ", i, ", which no tensor has");
    }
    spec.shape.push_back(size);
  }
  return spec;
}

absl::StatusOr<CollectiveClaim> ClaimOf(const WireHead& head, int peer) {
  CollectiveClaim claim;
  if (head.op < 0 || head.op > static_cast<int32_t>(CollectiveOp::kAllToAll)) {
    return Bad(peer, "collective ", head.op, ", which there is not");
  }
  if (head.size < 0) return Bad(peer, head.size, " elements");
  claim.op = static_cast<CollectiveOp>(head.op);
  claim.root = head.root;
  PIPELAB_ASSIGN_OR_RETURN(claim.type, TypeOf(head.type, peer));
  claim.size = head.size;
  return claim;
}

absl::StatusOr<MpiHead> ReadMpiHead(absl::string_view message, int process, int own,
                                    const std::vector<int>& process_of) {
  MpiHead head;
  const auto bad = [process](const auto&... parts) {
    return absl::DataLossError(absl::StrCat("process ", process, " sent ", parts...));
  };
  if (message.size() < sizeof(head)) {
    return bad("a head of ", message.size(), " bytes, which are ", sizeof(head));
  }
  std::memcpy(&head, message.data(), sizeof(head));
  const int32_t devices = static_cast<int32_t>(process_of.size());
  if (head.from < 0 || head.from >= devices || process_of[head.from] != process) {
    return bad("a head from rank ", head.from, ", which is not one of its own");
  }
  if (head.to < 0 || head.to >= devices || process_of[head.to] != own) {
    return bad("a head to rank ", head.to, ", which is not here");
  }
  const auto behind = static_cast<int64_t>(message.size() - sizeof(head));
  if (head.bytes < 0 || head.bytes_tag < -1 || behind != (head.bytes_tag < 0 ? head.bytes : 0)) {
    return bad("a head of ", head.bytes, " bytes with ", behind, " behind it (tag ", head.bytes_tag,
               ")");
  }
  if (head.number < 0) {
    PIPELAB_ASSIGN_OR_RETURN(const TensorSpec spec, SpecOf(head, head.from));
    if (NumElements(spec.shape) * SizeOf(spec.type) != head.bytes) {
      return bad("a head of ", head.bytes, " bytes for ", DataTypeName(spec.type),
                 ShapeToString(spec.shape));
    }
  }
  return head;
}

}  // namespace pipelab
