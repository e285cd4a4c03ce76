#include "tests/support/fault_injection.h"

#include <utility>

#include "absl/time/clock.h"
#include "tools/base/status_macros.h"

namespace pipelab {

class FaultInjector::Module : public StageModule {
 public:
  Module(FaultInjector* owner, int device, StageModule* module)
      : owner_(owner), device_(device), module_(module) {}

  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                              bool drop) override {
    PIPELAB_RETURN_IF_ERROR(Before(a));
    PIPELAB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                             module_->Forward(a, std::move(inputs), drop));
    return After(a, std::move(outputs));
  }
  absl::Status Recompute(const Action& a) override {
    PIPELAB_RETURN_IF_ERROR(Before(a));
    return module_->Recompute(a);
  }
  absl::StatusOr<std::vector<Tensor>> Backward(const Action& a,
                                               std::vector<Tensor> gradients) override {
    PIPELAB_RETURN_IF_ERROR(Before(a));
    PIPELAB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                             module_->Backward(a, std::move(gradients)));
    return After(a, std::move(outputs));
  }
  absl::Status BackwardWeight(const Action& a) override {
    PIPELAB_RETURN_IF_ERROR(Before(a));
    return module_->BackwardWeight(a);
  }
  absl::Status Step(const Action& a) override {
    PIPELAB_RETURN_IF_ERROR(Before(a));
    return module_->Step(a);
  }
  TensorSpec InputSpec(int edge, int slice) const override {
    return module_->InputSpec(edge, slice);
  }
  TensorSpec OutputSpec(int edge, int slice) const override {
    return module_->OutputSpec(edge, slice);
  }
  absl::StatusOr<std::vector<Tensor*>> Kept(const Action& a) override { return module_->Kept(a); }
  absl::StatusOr<Tensor> Gradients(absl::string_view p) override { return module_->Gradients(p); }
  SharedParameters* experts() override { return module_->experts(); }
  absl::StatusOr<PartedTensor> BeginGather() override { return module_->BeginGather(); }
  absl::Status EndGather() override { return module_->EndGather(); }
  absl::Status Release() override { return module_->Release(); }
  TensorSpec HopSpec(bool gradient) const override { return module_->HopSpec(gradient); }
  absl::StatusOr<Tensor> SendHop(bool gradient) override { return module_->SendHop(gradient); }
  absl::Status ReceiveHop(bool gradient, Tensor tensor) override {
    return module_->ReceiveHop(gradient, std::move(tensor));
  }
  absl::StatusOr<PartedTensor> BeginScatter() override { return module_->BeginScatter(); }
  absl::Status EndScatter() override { return module_->EndScatter(); }
  absl::StatusOr<Tensor> BeginNorm(const NormShare& share) override {
    return module_->BeginNorm(share);
  }
  absl::Status EndNorm(const Tensor& squares) override { return module_->EndNorm(squares); }
  int64_t library_ns() const override { return module_->library_ns(); }

 private:
  bool Hits(const Action& a) const {
    return device_ == owner_->fault_.device && a == owner_->fault_.action;
  }

  absl::Status Before(const Action& a) {
    if (owner_->fault_.kind == FaultKind::kSlow) absl::SleepFor(owner_->fault_.pause);
    if (!Hits(a)) return absl::OkStatus();
    if (owner_->fault_.kind == FaultKind::kError) return owner_->fault_.error;
    if (owner_->fault_.kind == FaultKind::kHang) {
      std::unique_lock<std::mutex> lock(owner_->mutex_);
      owner_->released_cv_.wait(lock, [&] { return owner_->released_; });
      return absl::CancelledError("released from an injected hang");
    }
    return absl::OkStatus();
  }

  std::vector<Tensor> After(const Action& a, std::vector<Tensor> tensors) {
    if (!Hits(a)) return tensors;
    switch (owner_->fault_.kind) {
      case FaultKind::kExtraTensor:
        tensors.push_back(Tensor());
        break;
      case FaultKind::kWrongShape:
        tensors[0] = tensors[0].Rows(1, tensors[0].dim(0));
        break;
      case FaultKind::kNoTensor:
        tensors[0] = Tensor();
        break;
      case FaultKind::kError:
      case FaultKind::kHang:
      case FaultKind::kSlow:
        break;
    }
    return tensors;
  }

  FaultInjector* const owner_;
  const int device_;
  StageModule* const module_;
};

StageModule* FaultInjector::Wrap(int device, StageModule* module) {
  wrapped_.push_back(std::make_unique<Module>(this, device, module));
  return wrapped_.back().get();
}

void FaultInjector::Release() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    released_ = true;
  }
  released_cv_.notify_all();
}

}  // namespace pipelab
