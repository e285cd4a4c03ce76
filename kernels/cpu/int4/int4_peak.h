// Flops a second of one kind of product from registers: int4_speed.h.
#ifndef PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_H_
#define PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_H_

namespace pipelab {
namespace cpu {

// Runs so many rounds of independent products; the flops done. 0: compiled without the
// instructions.
double Avx512Fp32Products(int rounds);
double Avx512Bf16Products(int rounds);
double Avx512Int8Products(int rounds);
double Avx2Fp32Products(int rounds);
double Avx2Int8Products(int rounds);  // in pairs, added to sums of 16 bits

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_INT4_INT4_PEAK_H_
