#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

// `q` holds the queries, `kv` the keys and values: one tensor or two.
template <class T>
AttentionData<T> DataOf(const AttentionCall& call, const Tensor& q, const Tensor& kv) {
  return {Data(q) + call.q_offset, Data(kv) + call.k_offset, Data(kv) + call.v_offset};
}

class CpuAttentionKernels final : public AttentionKernels {
 public:
  CpuAttentionKernels(Arena* arena, Sgemm* gemm) : arena_(arena), gemm_(gemm) {}

  void DoForward(const AttentionShape& shape, const Tensor& qkv_M3C, const Tensor& out_MC,
                 const Tensor& lse_SHQ) override {
    RunForward(CallOf(shape), qkv_M3C, qkv_M3C, out_MC, lse_SHQ);
  }
  void DoGradient(const AttentionShape& shape, const Tensor& dout_MC, const Tensor& qkv_M3C,
                  const Tensor& out_MC, const Tensor& lse_SHQ, const Tensor& dqkv_M3C) override {
    RunGradient(CallOf(shape), dout_MC, qkv_M3C, qkv_M3C, out_MC, lse_SHQ, dqkv_M3C, dqkv_M3C);
  }

  void DoRotate(const RotaryShape& shape, bool back, const Tensor& x_MC) override {
    const float* turns = TurnsOf(shape);
    const int64_t columns = RowsOf(x_MC).columns;
    for (int64_t sample = 0; sample < shape.samples; ++sample) {
      float* const x = Data(x_MC) + sample * shape.tokens * columns;
      RotateHeads(turns, back, shape.tokens, shape.heads, shape.head_size, shape.head_stride(),
                  columns, x);
    }
  }
  void DoShareHead(const Tensor& x_MD, const Tensor& y) override {
    const RowsSize of_x = RowsOf(x_MD), of_y = RowsOf(y);
    const int64_t heads = of_y.rows / of_x.rows;
    for (int64_t i = 0; i < of_y.rows; ++i) {
      std::copy_n(Data(x_MD) + i / heads * of_x.columns, of_x.columns, Data(y) + i * of_y.columns);
    }
  }
  void DoShareHeadGradient(const Tensor& dy, const Tensor& dx_MD) override {
    const RowsSize of_x = RowsOf(dx_MD), of_y = RowsOf(dy);
    const int64_t heads = of_y.rows / of_x.rows;
    for (int64_t i = 0; i < of_x.rows; ++i) {
      float* const sum = Data(dx_MD) + i * of_x.columns;
      std::fill_n(sum, of_x.columns, 0.0f);
      for (int64_t h = 0; h < heads; ++h) {
        const float* const head = Data(dy) + (i * heads + h) * of_y.columns;
        for (int64_t d = 0; d < of_x.columns; ++d) sum[d] += head[d];
      }
    }
  }
  void DoCrossForward(const CrossAttentionShape& shape, const Tensor& q_MC, const Tensor& kv_N2C,
                      const Tensor& out_MC, const Tensor& lse_SHQ) override {
    RunForward(CallOf(shape), q_MC, kv_N2C, out_MC, lse_SHQ);
  }
  void DoCrossGradient(const CrossAttentionShape& shape, const Tensor& dout_MC, const Tensor& q_MC,
                       const Tensor& kv_N2C, const Tensor& out_MC, const Tensor& lse_SHQ,
                       const Tensor& dq_MC, const Tensor& dkv_N2C) override {
    RunGradient(CallOf(shape), dout_MC, q_MC, kv_N2C, out_MC, lse_SHQ, dq_MC, dkv_N2C);
  }
  void DoMerge(const Tensor& part_NC, const Tensor& part_lse_HN, const Tensor& out_MC,
               const Tensor& lse_HM) override {
    const RowsSize part = RowsOf(part_lse_HN);
    MergeAttention(part.columns, RowsOf(lse_HM).columns, part.rows,
                   RowsOf(out_MC).columns / part.rows, Data(part_NC), Data(part_lse_HN),
                   Data(out_MC), Data(lse_HM));
  }

 private:
  void RunForward(const AttentionCall& call, const Tensor& q, const Tensor& kv, const Tensor& out,
                  const Tensor& lse) {
    const Tensor scores = Scratch(1, call);
    AttentionForward(call, DataOf<const float>(call, q, kv), gemm_, Data(scores), Data(out),
                     Data(lse));
  }
  void RunGradient(const AttentionCall& call, const Tensor& dout, const Tensor& q, const Tensor& kv,
                   const Tensor& out, const Tensor& lse, const Tensor& dq, const Tensor& dkv) {
    const Tensor scores = Scratch(2, call);
    AttentionBackward(call, Data(dout), DataOf<const float>(call, q, kv), Data(out), Data(lse),
                      gemm_, Data(scores.Rows(0, 1)), Data(scores.Rows(1, 2)),
                      DataOf<float>(call, dq, dkv));
  }
  Tensor Scratch(int64_t blocks, const AttentionCall& call) {
    return arena_->Allocate(DataType::kFloat32, {blocks, call.BlockFloats()},
                            MemoryKind::kWorkspace);
  }

  // [token][cosines of the pairs, then sines], in double and then rounded: an angle of a long text
  // has no digits left in float. The same for all layers of a model, so those of the last shape are
  // kept.
  const float* TurnsOf(const RotaryShape& s) {
    const auto key = std::make_tuple(s.first_token, s.tokens, s.head_size, s.base);
    if (key != turns_key_) {
      turns_.clear();
      for (int64_t token = s.first_token; token < s.first_token + s.tokens; ++token) {
        for (int64_t i = 0; i < s.head_size; ++i) {
          const int64_t half = s.head_size / 2;
          const double angle = s.Angle(token, i % half);
          turns_.push_back(static_cast<float>(i < half ? std::cos(angle) : std::sin(angle)));
        }
      }
      turns_key_ = key;
    }
    return turns_.data();
  }

  Arena* const arena_;
  Sgemm* const gemm_;
  std::tuple<int64_t, int64_t, int64_t, double> turns_key_{-1, 0, 0, 0};
  std::vector<float> turns_;
};

}  // namespace

std::unique_ptr<AttentionKernels> MakeAttentionKernels(Arena* arena, Sgemm* gemm) {
  return std::make_unique<CpuAttentionKernels>(arena, gemm);
}

}  // namespace cpu
}  // namespace pipelab
