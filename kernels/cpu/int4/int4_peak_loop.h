// The loop of int4_peak.h's functions; internal to each file that includes it.
#ifndef PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_LOOP_H_
#define PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_LOOP_H_

namespace pipelab {
namespace cpu {
namespace {

// `rounds` times kSums of product(sum, x), of so many flops; all flops. As many sums as hide a
// product's latency and fit registers. The compiler must believe that x may be anything, each time,
// and that sums are read.
template <int kSums, class V, class F>
double RunProducts(int rounds, int flops, V x, const F& product) {
  V sums[kSums] = {};
  for (V& sum : sums) asm volatile("" : "+v"(sum));  // not known to be equal
  for (int i = 0; i < rounds; ++i) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 16
    for (int j = 0; j < kSums; ++j) sums[j] = product(sums[j], x);
  }
  for (V& sum : sums) asm volatile("" : : "v"(sum));
  return double{1} * rounds * kSums * flops;
}

}  // namespace
}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_LOOP_H_
