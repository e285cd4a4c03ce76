// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it.
#include <cstddef>
#include <cstdint>

#include "experiments/modern/golden_rows.h"
#include "experiments/modern/libai_rows.h"
#include "experiments/modern/mlperf_rows.h"
#include "experiments/modern/modern_rows.h"
#include "experiments/modern/primus_timeline.h"
#include "experiments/modern/simumax_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)pipelab::ParseModernRows(bytes, "fuzz");
  (void)pipelab::ParseModernModels(bytes, "fuzz");
  pipelab::ModernModel model;
  model.id = "llama3-70b";
  (void)pipelab::ParseSimumaxRows(bytes, "fuzz", {model});
  (void)pipelab::ParseMlperfRows(bytes, "fuzz");
  (void)pipelab::ParseLibaiRows(bytes, "fuzz");
  (void)pipelab::ParseGoldenRows(bytes, "fuzz");
  (void)pipelab::ParsePrimusRank(bytes, "fuzz", /*steps=*/2, /*micro_batches=*/1);
  return 0;
}
