// One call of one kernel on one shape: its tensors, how to run it on any backend, how far a float32
// result may lie from the reference, and what it costs.
//
//   for (const KernelCase& c : KernelCases(CaseSize::kSmall)) {
//     std::vector<Tensor> tensors = MakeTensors(c, &arena, /*seed=*/1);
//     c.run(backend, tensors);
//   }
//
// Tolerance. With u = 2^-24, a sum of n products in float32 errs by about sqrt(n) u times the sum
// of the absolute products, since roundings are independent and centred (Higham and Mary, 2019);
// the worst case is n u. Allowed is ErrorFactor(n) = 4 (sqrt(n) + 2) u.
//  * kMultilinear: the result is a sum of products of inputs. The sum of absolute products is then
//    the reference kernel itself, run on the absolute values of its inputs: a bound for each
//    element.
//  * kSmooth: `error_terms` states n for the longest chain of roundings, and the bound is
//    ErrorFactor(n) * error_scale * max |reference|; each case says why its scale is enough. Where
//    terms cancel, the result says nothing about their size: `magnitude` then gives it from the
//    inputs.
//
// In bfloat16 a case has the same values rounded to 8 bits, in the reference too: float32 holds
// them. Sums are in float32 as before, so the same bound holds for the result before it is rounded,
// which errs by half a unit in the last of 8 places, 2^-8 of the number, once for each rounding
// (CaseInBFloat16) more. Results that stay float32 have the float32 bound alone, but where a
// library rounds what is added to them.
#ifndef PIPELAB_KERNELS_CASES_KERNEL_CASE_H_
#define PIPELAB_KERNELS_CASES_KERNEL_CASE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cases/shapes.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

enum class TensorRole { kInput, kOutput, kAccumulated };  // kAccumulated starts with values

struct CaseTensor {
  Shape shape;
  TensorRole role = TensorRole::kInput;
  double spread = 1;        // normal with this deviation
  bool positive = false;    // its absolute value instead
  int32_t index_bound = 0;  // > 0: int32 indices below it
};

// What the vendor's library would be asked alone for the same work: benchmarks compare with it.
struct LibraryConvolution {
  ConvolutionShape shape;
  ConvolutionPass pass;
};

enum class ErrorModel { kMultilinear, kSmooth };

// How a case is in bfloat16.
struct CaseInBFloat16 {
  std::vector<size_t> floats = {};  // tensors that are float32 there too; ids are ids
  int roundings = 1;                // of a result; 0: it is exact
  // How large a number is that is rounded on the way; null: as the result's element.
  std::function<double(const std::vector<Tensor>&)> size = nullptr;
  // The ones of `floats` to which a sum is added that a library may round first.
  std::vector<size_t> rounded_sums = {};
  // By how much each element of tensor `t` may be off for factors that are rounded on the way;
  // null: there are none.
  std::function<std::vector<double>(const std::vector<Tensor>&, size_t t)> on_the_way = nullptr;
};

struct KernelCase {
  std::string name;  // "Linear/17x16x33"
  std::vector<CaseTensor> tensors;
  std::function<void(Backend*, const std::vector<Tensor>&)> run;
  // Computes inputs that depend on others (a forward's statistics), on the reference; may be null.
  std::function<void(Backend*, const std::vector<Tensor>&)> prepare;
  ErrorModel error_model = ErrorModel::kSmooth;
  int64_t error_terms = 1;
  double error_scale = 1;
  std::function<double(const std::vector<Tensor>&)> magnitude;  // null: max |reference|
  double flops = 0;                           // of the products; 0 where memory is the bound
  double bytes = 0;                           // read and written once each
  std::optional<CaseInBFloat16> in_bfloat16;  // none: there is no such kernel
  DataType activations = DataType::kFloat32;
  std::optional<LibraryConvolution> convolution;
  std::optional<MatmulSize> matmul;

  bool IsBFloat16(size_t tensor) const;
};

// With bfloat16: those that are there in it, as "bfloat16/Linear/17x16x33".
std::vector<KernelCase> KernelCases(CaseSize size, DataType activations = DataType::kFloat32);

// The case's tensors with contents that depend on the case and the seed only; outputs hold NaN.
// Every tensor starts `shift` elements past an aligned address. `prepare` has run. Numbers are in
// float32, rounded to bfloat16 where a device has them so.
std::vector<Tensor> MakeTensors(const KernelCase& c, Arena* arena, uint64_t seed,
                                int64_t shift = 0);

double ErrorFactor(int64_t terms);

// Allowed |result - reference| of each element of tensor `t`; `results` are the reference's tensors
// after its run, with the given seed.
std::vector<double> ErrorBounds(const KernelCase& c, const std::vector<Tensor>& results, size_t t,
                                uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CASES_KERNEL_CASE_H_
