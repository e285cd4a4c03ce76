// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read bounds no array beyond its end, and is read again from what it says.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/comm/wire_head.h"
#include "kernels/tensor/tensor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using pipelab::WireHead;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<int> process_of = {0, 0, 1, 1};
  const auto mpi = pipelab::ReadMpiHead(bytes, /*process=*/1, /*own=*/0, process_of);
  if (mpi.ok()) {
    if (process_of.at(mpi->from) != 1 || process_of.at(mpi->to) != 0) __builtin_trap();
    if (mpi->bytes_tag < 0 && mpi->bytes + sizeof(*mpi) != size) __builtin_trap();
  }
  WireHead head;
  if (size < sizeof(head)) return 0;
  std::memcpy(&head, data, sizeof(head));
  const auto spec = pipelab::SpecOf(head, 3);
  if (spec.ok()) {
    int64_t bytes_of_spec = 0;
    const int64_t n = pipelab::NumElements(spec->shape);
    if (__builtin_mul_overflow(n, pipelab::SizeOf(spec->type), &bytes_of_spec)) __builtin_trap();
    if (n < 0 || *pipelab::DataTypeName(spec->type) == '\0') __builtin_trap();
  }
  const auto claim = pipelab::ClaimOf(head, 3);
  if (claim.ok() && *pipelab::CollectiveName(claim->op) == '?') __builtin_trap();
  return 0;
}
