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
  void DoShareHead(const Tensor& x_MD, const Tensor& y) override {
    const RowsSize x = RowsOf(x_MD), of_y = RowsOf(y);
    reference::ShareHead(x.rows, x.columns, of_y.rows / x.rows, of_y.columns, Wide(x_MD),
                         WideResult(y));
  }
  void DoShareHeadGradient(const Tensor& dy, const Tensor& dx_MD) override {
    const RowsSize x = RowsOf(dx_MD), of_y = RowsOf(dy);
    reference::ShareHeadGradient(x.rows, x.columns, of_y.rows / x.rows, of_y.columns, Wide(dy),
                                 WideResult(dx_MD));
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
  void DoMerge(const Tensor& part_NC, const Tensor& part_lse_HN, const Tensor& out_MC,
               const Tensor& lse_HM) override {
    const RowsSize part = RowsOf(part_lse_HN);
    reference::Merge(part.columns, RowsOf(lse_HM).columns, part.rows, Wide(part_NC),
                     Wide(part_lse_HN), WideResult(out_MC), WideResult(lse_HM));
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
