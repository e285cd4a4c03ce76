// Products with 4-bit weights on one core here, beside their limit and oneDNN's products with
// float32 and bfloat16 weights.
//
//   const std::vector<Int4Time> times = MeasureInt4({8192, 10240, 128}, {1, 2, 4});
//   report.AddTable(Int4TimeTable({8192, 10240, 128}, times));
#ifndef PIPELAB_EXPERIMENTS_INFERENCE_INT4_TIMES_H_
#define PIPELAB_EXPERIMENTS_INFERENCE_INT4_TIMES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/inference/int4_law.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "kernels/int4_layout.h"

namespace pipelab {

struct Int4Time {
  Int4Math math = Int4Math::kInt8;
  int64_t batch = 0;
  double seconds = 0;
  double memory_seconds = 0, flops_seconds = 0;      // the bounds
  double float32_seconds = 0, bfloat16_seconds = 0;  // oneDNN's best; infinite: none here
  double float32_limit_seconds = 0;                  // of float32 weights, by the same law
  double limit_seconds() const { return std::max(memory_seconds, flops_seconds); }
  double share() const { return limit_seconds() / seconds; }
  double over_float32() const { return float32_seconds / seconds; }
  double law_over_float32() const { return float32_limit_seconds / limit_seconds(); }
};

// Limits and rivals are measured between the products of one batch. In int8 and, where the
// processor has products of it, bfloat16; empty where it has neither AVX-512 nor AVX2.
std::vector<Int4Time> MeasureInt4(const Int4Shape& shape, const std::vector<int64_t>& batches);
Table Int4TimeTable(const Int4Shape& shape, const std::vector<Int4Time>& times);
// Adds those of int8 here, measured and by the law.
void AddInt4TimeCurves(const std::vector<Int4Time>& times, Int4Curves* curves);
// `why_not`: where nothing was measured.
std::vector<Claim> Int4TimeClaims(const std::vector<Int4Time>& times, const std::string& why_not);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_INFERENCE_INT4_TIMES_H_
