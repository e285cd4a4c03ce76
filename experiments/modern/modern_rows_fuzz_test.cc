// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "experiments/modern/modern_rows.h"
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(ModernRowsFuzz, TwentyThousandMutations) {
  const std::string rows =
      "id,tag,system,gpu,gpus,precision,model,seq,gbs,mbs,tp,pp,cp,ep,vp,fsdp,recompute,"
      "tokens_per_s_per_gpu,step_s,notes,kernels,tflops_per_gpu\n"
      "a-1,read,s,H100,64,BF16,m,4096,256,1,2,4,1,,3,zero1,none,100,,\"peak memory 24.5 GB; "
      "x\",,400\n";
  const std::string models =
      "id,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,experts,experts_per_token,"
      "shared_experts,moe_ffn,dense_layers,tie_embeddings,attention\n"
      "m,4,64,8,2,8,96,1000,8,2,1,32,1,yes,gqa swiglu\n";
  ASSERT_TRUE(ParseModernRows(rows, "f").ok());
  ASSERT_TRUE(ParseModernModels(models, "f").ok());
  const std::string simumax =
      "case,measured_ms,measured_peak_gib\n"
      "llama3_70b_l12_tp2_cp4_pp1_dp1_seq131072_mbc4_cef,11315.7,112.67\n";
  const std::string mlperf =
      "version,system,gpu,gpus,tp,pp,vp,cp,gbs,seq,precision,median_step_s\n"
      "v5.0,one,GB200,512,4,8,8,2,896,8192,fp8,19.3\n";
  const std::string libai =
      "gpus,D,T,P,micro_batch,global_batch,recompute,samples_per_s\n8,4,2,1,32,1024,blocks,73.2\n";
  const std::string golden =
      "case,platform,cluster,gpus,step_s,peak_bytes,options\na,b,dgx-h100,8,1.1,2e9,--bf16\n";
  const std::string primus =
      R"({"2": {"total": 9, "fwd_start": [0], "fwd_end": [3], "bwd_start": [4], "bwd_end": [9]}})";
  RunMutations({rows, models, simumax, mlperf, libai, golden, primus}, 20000);
}

}  // namespace
}  // namespace pipelab
