// Gradients of the reference against central finite differences of its forwards, in double.
//
//   CheckGradients("Gelu", {x}, [&](const Inputs& v) { return Dot(y_of(v[0]), dy); }, {dx});
//
// With step h the difference errs by h^2 / 6 times the third derivative plus 2^-52 / h times the
// value: about 1e-10 at h = 1e-5 for values of order 1. Allowed is 1e-7 of the largest gradient.
#ifndef PIPELAB_KERNELS_CASES_GRADIENT_CHECK_H_
#define PIPELAB_KERNELS_CASES_GRADIENT_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pipelab {

using Vector = std::vector<double>;
using Inputs = std::vector<Vector>;

Vector NormalVector(int64_t n, const std::string& name);
std::vector<int32_t> RandomIndices(int64_t n, int64_t bound);
double Dot(const Vector& a, const Vector& b);

// The loss is weights . output; gradients[k] is what the kernels say for inputs[k], and inputs
// after those have none. At most 40 elements an input are checked, spread over it.
void CheckGradients(const std::string& name, Inputs inputs,
                    const std::function<double(const Inputs&)>& loss,
                    const std::vector<Vector>& gradients);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CASES_GRADIENT_CHECK_H_
