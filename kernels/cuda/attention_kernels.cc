#include <cmath>
#include <memory>

#include "kernels/attention_call.h"
#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

class CudaAttentionKernels final : public AttentionKernels {
 public:
  CudaAttentionKernels(Arena* arena, Device* device) : arena_(arena), device_(device) {}

  void DoForward(const AttentionShape& shape, const Tensor& qkv_M3C, const Tensor& out_MC,
                 const Tensor& lse_SHQ) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(1, call);
    Run(call, qkv_M3C, qkv_M3C, out_MC, lse_SHQ);
  }
  void DoGradient(const AttentionShape& shape, const Tensor& dout_MC, const Tensor& qkv_M3C,
                  const Tensor& out_MC, const Tensor& lse_SHQ, const Tensor& dqkv_M3C) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(2, call);
    RunGradient(call, dout_MC, qkv_M3C, qkv_M3C, out_MC, lse_SHQ, dqkv_M3C, dqkv_M3C);
  }

  void DoRotate(const RotaryShape& s, bool back, const Tensor& x_MC) override {
    const RowsSize size = RowsOf(x_MC);
    const RotaryNumbers numbers = {
        size.rows,    s.tokens,         s.first_token,       s.heads,        s.head_size,
        size.columns, std::log(s.base), back ? -1.0f : 1.0f, s.head_stride()};
    ByType(x_MC, [&](auto at) { gpu::Rotate(*device_, numbers, at(x_MC)); });
  }
  void DoShareHead(const Tensor& x_MD, const Tensor& y) override {
    const RowsSize x = RowsOf(x_MD), of_y = RowsOf(y);
    ByType(x_MD, [&](auto at) {
      gpu::ShareHead(*device_, at(x_MD), x.rows, x.columns, of_y.rows / x.rows, of_y.columns,
                     at(y));
    });
  }
  void DoShareHeadGradient(const Tensor& dy, const Tensor& dx_MD) override {
    const RowsSize x = RowsOf(dx_MD), of_y = RowsOf(dy);
    ByType(dy, [&](auto at) {
      gpu::ShareHeadGradient(*device_, at(dy), x.rows, x.columns, of_y.rows / x.rows, of_y.columns,
                             at(dx_MD));
    });
  }
  void DoCrossForward(const CrossAttentionShape& shape, const Tensor& q_MC, const Tensor& kv_N2C,
                      const Tensor& out_MC, const Tensor& lse_SHQ) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(1, call);
    Run(call, q_MC, kv_N2C, out_MC, lse_SHQ);
  }
  void DoCrossGradient(const CrossAttentionShape& shape, const Tensor& dout_MC, const Tensor& q_MC,
                       const Tensor& kv_N2C, const Tensor& out_MC, const Tensor& lse_SHQ,
                       const Tensor& dq_MC, const Tensor& dkv_N2C) override {
    const AttentionCall call = CallOf(shape);
    const auto scratch = Scratch(2, call);
    RunGradient(call, dout_MC, q_MC, kv_N2C, out_MC, lse_SHQ, dq_MC, dkv_N2C);
  }
  void DoMerge(const Tensor& part_NC, const Tensor& part_lse_HN, const Tensor& out_MC,
               const Tensor& lse_HM) override {
    const RowsSize part = RowsOf(part_lse_HN);
    ByType(out_MC, [&](auto at) {
      MergeAttention(*device_, part.columns, RowsOf(lse_HM).columns, part.rows,
                     RowsOf(out_MC).columns / part.rows, at(part_NC), Data(part_lse_HN), at(out_MC),
                     Data(lse_HM));
    });
  }

 private:
  void Run(const AttentionCall& call, const Tensor& q, const Tensor& kv, const Tensor& out,
           const Tensor& lse) {
    ByType(q, [&](auto at) {
      Attention(*device_, NumbersOf(call), at(q), at(kv), at(out), Data(lse));
    });
  }
  void RunGradient(const AttentionCall& call, const Tensor& dout, const Tensor& q, const Tensor& kv,
                   const Tensor& out, const Tensor& lse, const Tensor& dq, const Tensor& dkv) {
    ByType(q, [&](auto at) {
      AttentionGradient(*device_, NumbersOf(call), at(dout), at(q), at(kv), at(out), Data(lse),
                        at(dq), at(dkv));
    });
  }

  AttentionNumbers NumbersOf(const AttentionCall& c) {
    CHECK_LE(c.head_size, kMostHeadSize) << "the width of a head";
    CHECK_LE(c.value_size, kMostHeadSize) << "the width of a head's values";
    AttentionNumbers n;
    n.samples = c.samples;
    n.heads = c.heads;
    n.group = c.group;
    n.size = c.head_size;
    n.value_size = c.value_size;
    n.queries = c.queries;
    n.keys = c.keys;
    n.causal = c.causal;
    n.first_query = c.first_query;
    n.window = c.window;
    n.writes_all_keys = c.writes_all_keys;
    n.adds_queries = c.adds_queries;
    n.key_lengths = device_->Upload(c.key_lengths);
    n.q_offset = c.q_offset;
    n.q_row = c.q_row;
    n.q_sample = c.q_sample;
    n.k_offset = c.k_offset;
    n.v_offset = c.v_offset;
    n.kv_row = c.kv_row;
    n.kv_sample = c.kv_sample;
    n.kv_head = c.kv_head;
    return n;
  }
  // Scores are in shared memory; what the interface promises is charged all the same.
  std::shared_ptr<Charge> Scratch(int64_t blocks, const AttentionCall& call) {
    return arena_->Reserve(Bytes(4 * blocks * call.BlockFloats()), MemoryKind::kWorkspace);
  }

  Arena* const arena_;
  Device* const device_;
};

}  // namespace

std::unique_ptr<AttentionKernels> MakeAttentionKernels(Arena* arena, Device* device) {
  return std::make_unique<CudaAttentionKernels>(arena, device);
}

}  // namespace gpu
}  // namespace pipelab
