#include <memory>
#include <vector>

#include "kernels/attention_call.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

class ReferenceAttentionKernels final : public AttentionKernels {
 public:
  explicit ReferenceAttentionKernels(Arena* arena) : arena_(arena) {}

  void DoForward(const AttentionShape& shape, const Tensor& qkv_M3C, const Tensor& out_MC,
                 const Tensor& lse_SHQ) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(1, call);
    const std::vector<double> qkv = Wide(qkv_M3C);
    Attention(call, qkv, qkv, WideResult(out_MC), WideResult(lse_SHQ));
  }
  void DoGradient(const AttentionShape& shape, const Tensor& dout_MC, const Tensor& qkv_M3C,
                  const Tensor& out_MC, const Tensor& lse_SHQ, const Tensor& dqkv_M3C) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(2, call);
    const std::vector<double> qkv = Wide(qkv_M3C);
    WideResult dqkv(dqkv_M3C);
    AttentionGradient(call, Wide(dout_MC), qkv, qkv, Wide(out_MC), Wide(lse_SHQ), dqkv, dqkv);
  }

  void DoRotate(const RotaryShape& shape, bool back, const Tensor& x_MC) override {
    WideResult x(x_MC);
    reference::Rotate(shape, back, RowsOf(x_MC).columns, x);
  }
  void DoCrossForward(const CrossAttentionShape& shape, const Tensor& q_MC, const Tensor& kv_N2C,
                      const Tensor& out_MC, const Tensor& lse_SHQ) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(1, call);
    Attention(call, Wide(q_MC), Wide(kv_N2C), WideResult(out_MC), WideResult(lse_SHQ));
  }
  void DoCrossGradient(const CrossAttentionShape& shape, const Tensor& dout_MC, const Tensor& q_MC,
                       const Tensor& kv_N2C, const Tensor& out_MC, const Tensor& lse_SHQ,
                       const Tensor& dq_MC, const Tensor& dkv_N2C) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(2, call);
    AttentionGradient(call, Wide(dout_MC), Wide(q_MC), Wide(kv_N2C), Wide(out_MC), Wide(lse_SHQ),
                      WideResult(dq_MC), WideResult(dkv_N2C));
  }

 private:
  std::shared_ptr<Charge> Scratch(int64_t blocks, const AttentionCall& call) {
    return arena_->Reserve(Bytes(4 * blocks * call.BlockFloats()), MemoryKind::kWorkspace);
  }

  Arena* const arena_;
};

}  // namespace

std::unique_ptr<AttentionKernels> MakeAttentionKernels(Arena* arena) {
  return std::make_unique<ReferenceAttentionKernels>(arena);
}

}  // namespace reference
}  // namespace pipelab
