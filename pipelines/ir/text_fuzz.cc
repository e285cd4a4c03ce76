// libFuzzer's entry: docs/development.md has the commands. With gcc: //tests:schedule_fuzz.
#include <cstddef>
#include <cstdint>

#include "tests/support/reader_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pipelab::CheckReaders(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
