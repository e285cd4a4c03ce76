// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What is JSON is written and read again, TOML is read, a CSV row has the header's
// columns, and a quantity is a number from 0 on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/base/csv.h"
#include "tools/base/json.h"
#include "tools/base/quantity_text.h"
#include "tools/base/toml.h"
#include "tools/base/units.h"

namespace {

void CheckJson(absl::string_view text) {
  const auto value = pipelab::ParseJson(text, "fuzz");
  if (!value.ok()) return;
  const std::string written = pipelab::DumpJson(*value);
  const auto again = pipelab::ParseJson(written, "again");
  if (!again.ok() || pipelab::DumpJson(*again) != written) __builtin_trap();
  (void)pipelab::JsonField<bool>(*value, "a", "fuzz");
  (void)pipelab::JsonField<int64_t>(*value, "a", "fuzz");
  (void)pipelab::JsonField<double>(*value, "a", "fuzz");
  (void)pipelab::JsonField<std::string>(*value, "a", "fuzz");
}

void CheckCsv(absl::string_view text) {
  const auto table = pipelab::CsvTable::Parse(text, "fuzz", {"a", "b"});
  if (!table.ok()) return;
  const size_t last = static_cast<size_t>(std::max(table->Column("a"), table->Column("b")));
  for (const std::vector<std::string>& row : table->rows()) {
    if (row.size() <= last) __builtin_trap();
  }
}

template <typename Q>
void CheckQuantity(absl::string_view text) {
  const auto quantity = pipelab::ParseQuantity<Q>(text);
  if (quantity.ok() && !(quantity->value() >= 0)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckJson(text);
  (void)pipelab::ParseToml(text, "fuzz");
  CheckCsv(text);
  CheckQuantity<pipelab::Bytes>(text);
  CheckQuantity<pipelab::Nanoseconds>(text);
  CheckQuantity<pipelab::Flops>(text);
  CheckQuantity<pipelab::BytesPerSecond>(text);
  CheckQuantity<pipelab::FlopsPerSecond>(text);
  return 0;
}
