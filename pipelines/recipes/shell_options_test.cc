#include "pipelines/recipes/shell_options.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// "--a=1,2 --b=".
std::string ReadOptions(absl::string_view text) {
  const auto options = ParseShellOptions(text, "f");
  if (!options.ok()) return std::string(options.status().message());
  return absl::StrJoin(*options, " ", [](std::string* out, const ShellOption& o) {
    absl::StrAppend(out, o.name, "=", absl::StrJoin(o.values, ","));
  });
}

TEST(ParseShellOptions, TakesACommandLine) {
  EXPECT_EQ(ReadOptions("torchrun --nproc_per_node 8 train.py --lr 1e-4 \\\n  --bf16 --size=3"),
            "--nproc_per_node=8,train.py --lr=1e-4 --bf16= --size=3");
  EXPECT_EQ(ReadOptions("--a 1 2 -3 --b 'x y' \"z\" # --c 4\n--d\t5\r\n"),
            "--a=1,2,-3 --b=x y,z --d=5");
  EXPECT_EQ(ReadOptions("--layout Et*3|(tt|)*29,m|L"), "--layout=Et*3|(tt|)*29,m|L");
  EXPECT_EQ(ReadOptions(""), "");
}

TEST(ParseShellOptions, TakesAScript) {
  EXPECT_EQ(ReadOptions(R"(#!/bin/bash
export MAX=1
TP=8 # degree
NAME="a b"
OTHER=${TP}
ARGS=(
    --tp $TP
    --name "$NAME" --other ${OTHER} --pp ${PP:-$TP} --cp ${CP:-"2"}
    # --not 1
)
MORE=()
if [[ "$NAME" == "x" ]]; then
    MORE+=(
        "--split '99,1,0'"
        "--fast"
    )
fi
ARGS+=("${MORE[@]}")
WORLD=$(($TP*2)); python train.py ${ARGS[@]} --world $WORLD --unknown $NOT_SET
)"),
            "--tp=8 --name=a b --other=8 --pp=8 --cp=2 --split=99,1,0 --fast= --world=$(($TP*2)) "
            "--unknown=$NOT_SET");
}

TEST(ParseShellOptions, SaysWhichQuoteIsOpen) {
  EXPECT_THAT(ReadOptions("--a 1\n--b 'x\n--c"), HasSubstr("f:2: the quote ' is not closed"));
  EXPECT_THAT(ReadOptions("--a \"${X"), HasSubstr("f:1: the quote \" is not closed"));
}

// Each line doubles the value.
TEST(ParseShellOptions, BoundsWhatVariablesMake) {
  std::string text = "A=xxxxxxxx\n";
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, "A=$A$A\n");
  EXPECT_THAT(ReadOptions(text + "--a $A"), HasSubstr("is too long"));
}

}  // namespace
}  // namespace pipelab
