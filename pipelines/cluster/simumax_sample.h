// A system of SimuMax in a few lines, for tests. Its numbers are no machine's.
#ifndef PIPELAB_PIPELINES_CLUSTER_SIMUMAX_SAMPLE_H_
#define PIPELAB_PIPELINES_CLUSTER_SIMUMAX_SAMPLE_H_

namespace pipelab {

inline constexpr char kSimumaxSample[] = R"({
  "sys_name": "box", "num_per_node": 4,
  "accelerator": {"backend": "cuda", "mem_gbs": 64, "mode": "roofline",
    "op": {
      "matmul": {"tflops": 1000, "efficient_factor": 0.5, "accurate_efficient_factor": {
        "b=1, m=4096, k=8192, n=2048, layout=TN, accumulate=False, out_dtype=bf16": 0.7,
        "b=1, m=4096, k=2048, n=8192, layout=NN, accumulate=False, out_dtype=bf16": 0.6,
        "b=1, m=2048, k=4096, n=8192, layout=NT, accumulate=True, out_dtype=fp32": 0.4,
        "b=1, m=2048, k=4096, n=8192, layout=NT, accumulate=True, out_dtype=bf16": 0.3}},
      "group_matmul": {"tflops": 1000, "efficient_factor": 0.2, "accurate_efficient_factor": {
        "ng=8, M=2048, N=4096, K=1024, main_grad_dtype=fp32, stage=fwd, accumulate=False": 0.25}},
      "fp8_matmul": {"tflops": 2000, "efficient_factor": 0, "accurate_efficient_factor": {}},
      "sdp_fwd": {"tflops": 1000, "efficient_factor": 0.8, "accurate_efficient_factor": {
        "batch=1, seq_len=4096, head_num=8, qk_head_dim=128, qkv_contiguous=True": 0.9,
        "batch=1, seq_len=4096, head_num=8, qk_head_dim=128, qkv_contiguous=False": 0.1}},
      "sdp_bwd": {"tflops": 1000, "efficient_factor": 0.8, "accurate_efficient_factor": {
        "batch=1, seq_len=4096, head_num=8, qk_head_dim=128, qkv_contiguous=True": 0.5}},
      "default": {"tflops": 1000, "efficient_factor": 0.5}},
    "bandwidth": {"default": {"efficient_factor": 0.5, "gbps": 4000, "latency_us": 20}}},
  "networks": {"intra_with_pcie": false,
    "high_intra_node": {"bandwidth": {"efficient_factor": 1.0, "gbps": 400, "latency_us": 9},
      "op": {"all_reduce": {"efficient_factor": 0.75, "latency_us": 6},
        "all_gather": {"efficient_factor": 0.5, "latency_us": 8, "fixed_latency_us": 20},
        "reduce_scatter": {"efficient_factor": 0.5, "latency_us": 4, "fixed_latency_us": 30},
        "all2all": {"efficient_factor": 0.6},
        "p2p": {"efficient_factor": 1.5, "latency_us": 15}}},
    "inter_node": {"bandwidth": {"efficient_factor": 1, "gbps": 200, "latency_us": 35},
      "op": {"all_reduce": {}, "all_gather": {}, "reduce_scatter": {}, "p2p": {}}}}
})";

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_SIMUMAX_SAMPLE_H_
