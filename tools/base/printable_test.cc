#include "tools/base/printable.h"

#include <string>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

TEST(Printable, KeepsTextAndEscapesWhatSteers) {
  EXPECT_EQ(Printable("--data=Füße \\ \"x\" 中 😀"), "--data=Füße \\ \"x\" 中 😀");
  EXPECT_EQ(Printable("a\nstep step=7\r\x1b[2J\x7f"), "a\\nstep step=7\\x0d\\x1b[2J\\x7f");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // CSI of one character
  EXPECT_EQ(Printable("\x9b"
                      "2J \xff"),
            "\\x9b2J \\xff");                                                   // no UTF-8
  EXPECT_EQ(Printable("\xc0\x8a \xe0\x80\x9b"), "\\xc0\\x8a \\xe0\\x80\\x9b");  // longer forms
  EXPECT_EQ(Printable("\xe2\x80\xae"
                      "txt \xe2\x80"),
            "\\xe2\\x80\\xaetxt \\xe2\\x80");
  EXPECT_EQ(Printable(Printable("\x1b\n")), Printable("\x1b\n"));
}

TEST(WithoutMiddle, KeepsBothEndsAndWholeCharacters) {
  const std::string most(4096, 'x'), end(2048, 'x');
  EXPECT_EQ(WithoutMiddle(most), most);
  EXPECT_EQ(WithoutMiddle(most + most + "y"), end + " ... " + end.substr(1) + "y");
  EXPECT_EQ(WithoutMiddle(end.substr(1) + "中" + most + "中" + end.substr(1)),
            end.substr(1) + " ... " + end.substr(1));
}

}  // namespace
}  // namespace pipelab
