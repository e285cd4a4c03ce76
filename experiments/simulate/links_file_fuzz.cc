// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. A links file that is read is a network that can be simulated; a decimal that is read
// has the digits that it may have.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "experiments/simulate/decimal.h"
#include "experiments/simulate/links_file.h"
#include "pipelines/cluster/network.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto network = pipelab::ParseLinks(text, "fuzz", 4, pipelab::Link{}, 1e6);
  if (network.ok() && !pipelab::CheckNetwork(*network).ok()) __builtin_trap();
  const auto decimals = pipelab::ParseDecimals("--fuzz", text, 3, "stage");
  if (decimals.ok()) {
    if (decimals->size() != 3) __builtin_trap();
    for (const pipelab::Decimal& d : *decimals) {
      if (d.digits < 0 || d.decimals < 0 || d.decimals > 9 || !std::isfinite(d.value())) {
        __builtin_trap();
      }
    }
  }
  const auto bytes = pipelab::ParseByteCounts("--fuzz", text, 1, "");
  if (bytes.ok() && (bytes->size() != 1 || (*bytes)[0].value() < 0)) __builtin_trap();
  return 0;
}
