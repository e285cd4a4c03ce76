// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. Claims that are read are written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "experiments/report/claim_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto claims = pipelab::ParseClaims(text, "fuzz");
  if (!claims.ok()) return 0;
  const std::string written = pipelab::ClaimsJson("fuzz", *claims);
  const auto again = pipelab::ParseClaims(written, "again");
  if (!again.ok() || pipelab::ClaimsJson("fuzz", *again) != written) __builtin_trap();
  return 0;
}
