// Damaged inputs from one seed.
#include <string>

#include "gtest/gtest.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/process_meeting.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

std::string WholeFrame(uint8_t kind, const std::string& bytes) {
  std::string frame;
  ByteWriter(&frame).Int(static_cast<int64_t>(bytes.size())).Raw(&kind, 1);
  return frame + bytes;
}

TEST(ProcessMeetingFuzz, Mutations) {
  std::string hello;
  ByteWriter(&hello).Int(3).Text("0123456789abcdef0123456789abcdef");
  RunMutations(
      {WholeFrame(1, hello), WholeFrame(3, "") + WholeFrame(4, "text") + WholeFrame(1, hello),
       " nowhere: a 79 1 k", "0123456789abcdef machine-1 40123 10.0.0.1 fd00::1 127.0.0.1"},
      20000);
}

}  // namespace
}  // namespace pipelab
