// Flops a second of one kind of product from registers: int4_speed.h.
#ifndef PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_H_
#define PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_H_

namespace pipelab {
namespace cpu {

// Runs so many rounds of 16 independent products; the flops done. 0: compiled without AVX-512.
double Fp32Products(int rounds);
double Bf16Products(int rounds);
double Int8Products(int rounds);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_H_
