// libFuzzer entry for the parsers of schedules: nothing crashes, and what is accepted survives
// validation and comes back from its own text. Built by hand with clang:
//
//   bazel build //pipelines/ir:text_fuzz --repo_env=CC=clang
//       --copt=-fsanitize=fuzzer-no-link,address --linkopt=-fsanitize=fuzzer,address
#include <cstddef>
#include <cstdint>

#include "glog/logging.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const absl::StatusOr<pipelab::Schedule>& s :
       {pipelab::ParseSchedule(text), pipelab::ParseCsv(text)}) {
    if (!s.ok()) {
      CHECK(!s.status().message().empty());
      continue;
    }
    pipelab::Validate(*s).IgnoreError();
    const std::string canonical = pipelab::ToText(*s);
    const absl::StatusOr<pipelab::Schedule> again = pipelab::ParseSchedule(canonical);
    CHECK(again.ok()) << again.status();
    CHECK_EQ(pipelab::ToText(*again), canonical);
  }
  return 0;
}
