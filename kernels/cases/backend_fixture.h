// A test that runs on every backend, with the tensors that it wants.
//
//   TEST_P(BackendTest, SumsAreSums) { backend_->Add(Random({3}, "a"), Random({3}, "b"), y); }
//   INSTANTIATE_TEST_SUITE_P(All, BackendTest, AllBackends(), BackendName);
#ifndef PIPELAB_KERNELS_CASES_BACKEND_FIXTURE_H_
#define PIPELAB_KERNELS_CASES_BACKEND_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/backend.h"

namespace pipelab {

using BackendFactory = std::unique_ptr<Backend> (*)(Arena*);

class BackendTest : public testing::TestWithParam<BackendFactory> {
 protected:
  Tensor Random(Shape shape, absl::string_view name);
  Tensor Filled(Shape shape, float value);
  Tensor Clone(const Tensor& x);
  Tensor Int(std::vector<int32_t> values);
  Tensor Float(Shape shape, std::vector<float> values);
  static bool SameBits(const Tensor& a, const Tensor& b);

  Arena arena_;
  std::unique_ptr<Backend> backend_ = GetParam()(&arena_);
};

testing::internal::ParamGenerator<BackendFactory> AllBackends();
std::string BackendName(const testing::TestParamInfo<BackendFactory>& info);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CASES_BACKEND_FIXTURE_H_
