// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is read must be written and read back the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "experiments/predict/measured_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rows = pipelab::ParseMeasuredRows(text, "fuzz");
  if (!rows.ok()) return 0;
  std::string written = absl::StrCat(rows->header, "\n");
  for (const pipelab::MeasuredRow& row : rows->rows) absl::StrAppend(&written, row.text, "\n");
  const auto again = pipelab::ParseMeasuredRows(written, "again");
  if (!again.ok() || again->rows.size() != rows->rows.size()) __builtin_trap();
  for (size_t i = 0; i < rows->rows.size(); ++i) {
    const pipelab::MeasuredRow &a = rows->rows[i], &b = again->rows[i];
    if (a.gpus != a.tensor * a.data * a.pipeline || a.micro_batches() < 1) __builtin_trap();
    if (a.text != b.text || a.batch != b.batch || a.milliseconds != b.milliseconds) {
      __builtin_trap();
    }
  }
  return 0;
}
