#include "pipelines/runtime/slice_exchanger.h"

#include <utility>

#include "absl/status/statusor.h"
#include "kernels/tensor/arena.h"

namespace pipelab {

SliceExchanger::SliceExchanger(const Program& program, int device,
                               std::unique_ptr<Communicator> communicator,
                               const std::function<int(int device)>& rank_of, absl::Duration limit)
    : communicator_(std::move(communicator)), limit_(limit) {
  const auto shares = [&](const std::vector<ChunkShare>& chunks) {
    std::vector<Share> all;
    all.reserve(chunks.size());
    for (const ChunkShare& c : chunks) all.push_back({rank_of(c.device), c.first, c.count});
    return all;
  };
  for (const Instruction& i : program.instructions[device]) {
    if (i.op != OpCode::kCompute || i.arg < 0) continue;
    const PassExchange& pass = program.exchanges[i.arg];
    const Action& a = pass.action;
    passes_[{a.stage, a.micro_batch, a.slice, a.kind != ActionKind::kForward}] = {
        pass.slot, shares(pass.given), shares(pass.received)};
  }
}

ChunkExchange* SliceExchanger::Of(const Action& a) {
  const bool forward = a.kind == ActionKind::kForward;
  if (!forward && a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) {
    return nullptr;
  }
  const auto found = passes_.find({a.stage, a.micro_batch, a.slice, !forward});
  if (found == passes_.end()) return nullptr;
  pass_ = &found->second;
  sends_.clear();
  receives_.clear();
  return this;
}

uint64_t SliceExchanger::TagOf(std::map<int, uint64_t>* counts, int peer) const {
  return static_cast<uint64_t>(pass_->slot) << 32 | (*counts)[peer]++;
}

void SliceExchanger::Send(Tensor tensor, int peer) {
  if (!status_.ok()) return;
  const Bytes bytes(tensor.bytes());
  const absl::StatusOr<Ticket> sent =
      communicator_->Send(std::move(tensor), peer, TagOf(&sends_, peer));
  // A peer posts its receives of a layer before it waits for anything there.
  status_ = sent.ok() ? communicator_->Wait(*sent, limit_).status() : sent.status();
  traffic_ += bytes;
}

std::function<Tensor()> SliceExchanger::Receive(DataType type, Shape shape, int peer,
                                                Arena* arena) {
  const auto any = [=] { return arena->Allocate(type, shape, MemoryKind::kActivation); };
  if (!status_.ok()) return any;
  const Bytes bytes(NumElements(shape) * SizeOf(type));
  const absl::StatusOr<Ticket> receiving = communicator_->Receive(
      {type, shape}, peer, TagOf(&receives_, peer), arena->Reserve(bytes, MemoryKind::kActivation));
  status_ = receiving.status();
  if (!status_.ok()) return any;
  return [=] {
    absl::StatusOr<Tensor> arrived = communicator_->Wait(*receiving, limit_);
    if (arrived.ok()) return *std::move(arrived);
    if (status_.ok()) status_ = arrived.status();
    return any();
  };
}

}  // namespace pipelab
