// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/data/emoji_test_writer.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(EmojiFuzz, TwentyThousandMutations) {
  const std::string png = PlainPng(255, 100, 0, 200, 6, 5);
  const std::string font = FontOf(0x1F600, {png, PlainPng(0, 0, 255, 255, 3, 3)});
  const std::string list =
      "# group: a\n1F600 FE0F ; fully-qualified # x E1.0 grinning face\n# group: b\n";
  const std::string xml =
      "<ldml><annotation cp=\"&amp;\" type=\"tts\">a&#x41;&lt;</annotation></ldml>";
  RunMutations({std::string(1, '\0') + font, "\1" + png, "\2" + list, "\3" + xml}, 20000);
}

}  // namespace
}  // namespace pipelab
