// Messages between a rank and the others over NCCL, each behind its head: the receiver asks for the
// bytes once it has seen that the head is right.
//
//   NcclMessages messages(&world);
//   PIPELAB_ASSIGN_OR_RETURN(auto out, messages.Send(std::move(tensor), /*to=*/1, tag));
//   PIPELAB_ASSIGN_OR_RETURN(auto in, messages.Post(spec, /*from=*/1, tag, charge));
//   PIPELAB_RETURN_IF_ERROR(messages.Finish(*out, limit));
//   PIPELAB_ASSIGN_OR_RETURN(Tensor got, messages.Finish(in.get(), limit));
//
// Errors end the run at the caller (NcclWorld::OrFail). Only kernels/comm uses it.
#ifndef PIPELAB_KERNELS_CUDA_NCCL_MESSAGES_H_
#define PIPELAB_KERNELS_CUDA_NCCL_MESSAGES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/comm/communicator.h"
#include "kernels/cuda/nccl_link.h"
#include "kernels/cuda/nccl_world.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

class NcclMessages {
 public:
  // A message on its way out. Its memory stays until it is sent.
  struct Outgoing {
    int to = 0;
    uint64_t tag = 0;
    Tensor tensor;
    std::unique_ptr<NcclBytes> head;
    std::unique_ptr<NcclEvent> sent;  // null: to itself
  };
  struct Arrival;
  // A posted receive.
  struct Incoming {
    int from = 0;
    uint64_t tag = 0;
    TensorSpec spec;
    std::shared_ptr<Charge> charge;
    std::shared_ptr<Arrival> arrival;
  };

  explicit NcclMessages(NcclWorld* world) : world_(*world), posted_(world->size()) {}

  absl::StatusOr<std::shared_ptr<Outgoing>> Send(Tensor tensor, int to, uint64_t tag);
  absl::StatusOr<std::shared_ptr<Incoming>> Post(TensorSpec spec, int from, uint64_t tag,
                                                 std::shared_ptr<Charge> charge);
  // Goes on with the first posted receive of each other rank.
  absl::Status Progress();
  absl::Status Finish(const Outgoing& out, absl::Duration limit);
  absl::StatusOr<Tensor> Finish(Incoming* in, absl::Duration limit);

 private:
  absl::Status StartSend(int to, const WireHead& head, Outgoing* out);
  absl::StatusOr<bool> Advance(int from, Arrival* in);
  void TakeOwnMail();

  NcclWorld& world_;
  std::deque<std::pair<WireHead, Tensor>> to_self_;
  std::vector<std::deque<std::shared_ptr<Arrival>>> posted_;  // [from], in order
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_NCCL_MESSAGES_H_
