// Softmax attention: causal, bidirectional, over a slice of the queries, and cross attention.
//
//   AttentionKernels& k = backend->attention();
//   k.Forward(shape, qkv_M3C, out_MC, lse_SHQ);
//   k.Gradient(shape, dout_MC, qkv_M3C, out_MC, lse_SHQ, dqkv_M3C);
//
// out = softmax(q k^T / sqrt(head_size)) v for each (sample, head); heads lie side by side in a
// row. The forward keeps the log-sum-exp of each query, lse[sample, head, query].
//
// Scores exist for one block of at most kAttentionBlockRows query rows of one (sample, head) at a
// time: the workspace of a call is exactly min(kAttentionBlockRows, queries) * keys floats forward
// and twice that in the gradient, on every backend (models/graph/attention_workspace.h predicts
// it), where `keys` are those that some query may see, with a window those that a block's rows may
// see. With `key_tile` they are at most so many: a call goes over the keys of a block tile by tile
// with the running largest score and sum of each query, and its scratch does not grow with the
// sequence (FlashAttention-2: Dao, arXiv 2307.08691).
#ifndef PIPELAB_KERNELS_ATTENTION_KERNELS_H_
#define PIPELAB_KERNELS_ATTENTION_KERNELS_H_

#include <cmath>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/shape_checks.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// Most query rows whose scores exist at once.
inline constexpr int64_t kAttentionBlockRows = 64;

// Heads of one call of self attention. Sequences never see one another. Q, k and v are
// [samples * tokens, ...]; what belongs to a query (out, lse) is [samples * num_queries(), ...].
//
// A call may be about a slice of the queries, the tokens [first_query, first_query + queries) of
// each sample. Causal queries read the k and v up to their slice's end only, so the later ones need
// not be there yet. The slices of a sequence have the bits of one call where each begins at a
// multiple of kAttentionBlockRows: the blocks are then the same. Elsewhere sums over keys are of
// other lengths, and results differ by rounding.
//
// Grouped queries (Ainslie et al., EMNLP 2023): heads h of q with the same h / (heads / kv_heads)
// share a head of k and v. With C = heads * head_size a row of q, k and v has C + 2 kv_width()
// numbers.
struct AttentionShape {
  int64_t samples = 0, tokens = 0, heads = 0, head_size = 0;
  bool causal = true;
  int64_t first_query = 0, queries = 0;  // of each sample; 0 queries: all
  // How many tokens of each sample are keys, the rest being padding. Empty: all. Not for causal
  // attention, whose real tokens never see the padding behind them.
  absl::Span<const int32_t> key_lengths = {};
  int64_t kv_heads = 0;  // divides heads; 0: as many
  int64_t window = 0;    // causal: a token sees so many, itself the last of them; 0: all before
  int64_t key_tile = 0;  // most keys whose scores exist at once; 0: all that a block sees

  int64_t kv_width() const { return (kv_heads == 0 ? heads : kv_heads) * head_size; }
  int64_t num_queries() const { return queries == 0 ? tokens : queries; }
  int64_t end_query() const { return first_query + num_queries(); }
  // Tokens whose keys and values some query of the call reads: the first ones.
  int64_t num_keys() const { return causal ? end_query() : tokens; }
};

// Cross attention: queries of one sequence, keys and values of another; or self attention whose
// queries are apart from the keys, because a device has some of them.
struct CrossAttentionShape {
  int64_t samples = 0, queries = 0, keys = 0, heads = 0, head_size = 0;
  absl::Span<const int32_t> key_lengths = {};  // as above
  int64_t kv_heads = 0;                        // as above
  // Causal: the queries are tokens from first_query on of the keys' own sequence, of which `keys`
  // are here. Each query sees one of them at least.
  bool causal = false;
  int64_t first_query = 0;
  int64_t q_row = 0;       // numbers of a row of q's tensor, which q begins; 0: q's alone
  bool adds_keys = false;  // the gradient of k and v is added to what is there, not written
  int64_t window = 0;      // as above
  // Values of another width than queries and keys, as in latent attention; 0: the same. A row of
  // kv then has k and v of one head side by side, head by head. Not with kv_heads.
  int64_t value_size = 0;
  int64_t key_tile = 0;  // as above
  // The gradient of q is added too. With lse and out over more keys than those of the call, it is
  // what these keys add.
  bool adds_queries = false;

  int64_t width() const { return heads * head_size; }
  int64_t kv_width() const { return (kv_heads == 0 ? heads : kv_heads) * head_size; }
  int64_t out_width() const { return heads * (value_size == 0 ? head_size : value_size); }
  int64_t kv_row() const { return value_size == 0 ? 2 * kv_width() : width() + out_width(); }
  int64_t row() const { return q_row == 0 ? width() : q_row; }
};

// Rotary positions (Su et al., arXiv 2104.09864), of the first `heads` heads of each row: of q and
// k where these begin a row. Rows are those of `tokens` tokens of each sample, from first_token on.
struct RotaryShape {
  int64_t samples = 0, tokens = 0, first_token = 0;
  int64_t heads = 0, head_size = 0;  // head_size is even
  double base = 10000;
  int64_t stride = 0;  // from one head to the next, of which head_size numbers turn; 0: head_size

  int64_t head_stride() const { return stride == 0 ? head_size : stride; }
  int64_t width() const { return heads * head_size; }  // numbers that turn
  // Radians by which numbers `pair` and `pair` + head_size / 2 of a token's heads turn.
  double Angle(int64_t token, int64_t pair) const {
    return static_cast<double>(token) *
           std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(head_size));
  }
};

class AttentionKernels {
 public:
  virtual ~AttentionKernels() = default;

  // qkv_M3C holds q, k, v side by side.
  void Forward(const AttentionShape& shape, const Tensor& qkv_M3C, const Tensor& out_MC,
               const Tensor& lse_SHQ) {
    CheckAttention("Attention", shape, {&qkv_M3C}, {&out_MC}, lse_SHQ);
    DoForward(shape, qkv_M3C, out_MC, lse_SHQ);
  }
  // Writes the gradient of the call's q. Gradients of k and v add up over the slices of a sequence,
  // which come from the last to the first: the call with the last token writes those of all tokens,
  // every other one adds to the tokens that it reads. Padding has zeros.
  void Gradient(const AttentionShape& shape, const Tensor& dout_MC, const Tensor& qkv_M3C,
                const Tensor& out_MC, const Tensor& lse_SHQ, const Tensor& dqkv_M3C) {
    CheckAttention("AttentionGradient", shape, {&qkv_M3C, &dqkv_M3C}, {&dout_MC, &out_MC}, lse_SHQ);
    DoGradient(shape, dout_MC, qkv_M3C, out_MC, lse_SHQ, dqkv_M3C);
  }

  // Turns the heads in place, or back, which is the gradient's way.
  void Rotate(const RotaryShape& shape, bool back, const Tensor& x_MC) {
    CheckRotary("Rotate", shape, x_MC);
    DoRotate(shape, back, x_MC);
  }

  // One head for all: row i of x_MD to the first D numbers of rows [i H, i H + H) of y, [M H, ...].
  void ShareHead(const Tensor& x_MD, const Tensor& y) {
    CheckSharedHead("ShareHead", x_MD, y);
    DoShareHead(x_MD, y);
  }
  // The sum of each row of x over the heads.
  void ShareHeadGradient(const Tensor& dy, const Tensor& dx_MD) {
    CheckSharedHead("ShareHeadGradient", dx_MD, dy);
    DoShareHeadGradient(dy, dx_MD);
  }

  // q_MC has a row for each query, kv_N2C k and v side by side for each key.
  void CrossForward(const CrossAttentionShape& shape, const Tensor& q_MC, const Tensor& kv_N2C,
                    const Tensor& out_MC, const Tensor& lse_SHQ) {
    CheckCrossAttention("CrossAttention", shape, {&q_MC}, {&out_MC}, {&kv_N2C}, lse_SHQ);
    DoCrossForward(shape, q_MC, kv_N2C, out_MC, lse_SHQ);
  }
  void CrossGradient(const CrossAttentionShape& shape, const Tensor& dout_MC, const Tensor& q_MC,
                     const Tensor& kv_N2C, const Tensor& out_MC, const Tensor& lse_SHQ,
                     const Tensor& dq_MC, const Tensor& dkv_N2C) {
    CheckCrossAttention("CrossAttentionGradient", shape, {&q_MC, &dq_MC}, {&dout_MC, &out_MC},
                        {&kv_N2C, &dkv_N2C}, lse_SHQ);
    DoCrossGradient(shape, dout_MC, q_MC, kv_N2C, out_MC, lse_SHQ, dq_MC, dkv_N2C);
  }

  // What the first N of a sequence's M queries see in other keys joins what they have seen, outputs
  // weighted by their sums: lse becomes log(e^lse + e^part_lse).
  void Merge(const Tensor& part_NC, const Tensor& part_lse_HN, const Tensor& out_MC,
             const Tensor& lse_HM) {
    CheckMerge("Merge", part_NC, part_lse_HN, out_MC, lse_HM);
    DoMerge(part_NC, part_lse_HN, out_MC, lse_HM);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoForward(const AttentionShape& shape, const Tensor& qkv_M3C, const Tensor& out_MC,
                         const Tensor& lse_SHQ) = 0;
  virtual void DoGradient(const AttentionShape& shape, const Tensor& dout_MC, const Tensor& qkv_M3C,
                          const Tensor& out_MC, const Tensor& lse_SHQ, const Tensor& dqkv_M3C) = 0;
  virtual void DoRotate(const RotaryShape& shape, bool back, const Tensor& x_MC) = 0;
  virtual void DoShareHead(const Tensor& x_MD, const Tensor& y) = 0;
  virtual void DoShareHeadGradient(const Tensor& dy, const Tensor& dx_MD) = 0;
  virtual void DoCrossForward(const CrossAttentionShape& shape, const Tensor& q_MC,
                              const Tensor& kv_N2C, const Tensor& out_MC,
                              const Tensor& lse_SHQ) = 0;
  virtual void DoCrossGradient(const CrossAttentionShape& shape, const Tensor& dout_MC,
                               const Tensor& q_MC, const Tensor& kv_N2C, const Tensor& out_MC,
                               const Tensor& lse_SHQ, const Tensor& dq_MC,
                               const Tensor& dkv_N2C) = 0;
  virtual void DoMerge(const Tensor& part_NC, const Tensor& part_lse_HN, const Tensor& out_MC,
                       const Tensor& lse_HM) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_ATTENTION_KERNELS_H_
