#include "pipelines/recipes/shell_options.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// Options of one letter and torchrun's count, those that begin with "--no-" do not.
OptionRole RoleInTest(absl::string_view name) {
  if (absl::StartsWith(name, "--no-")) return OptionRole::kWithoutInfluence;
  return name.size() == 3 || name == "--nnodes" || name == "--nproc-per-node"
             ? OptionRole::kCounts
             : OptionRole::kUnknown;
}

// "--a=1,2 --b=".
std::string ReadOptions(absl::string_view text, const ScriptChoice& choice = {}) {
  const auto options = ReadShellOptions(text, "f", choice, RoleInTest);
  if (!options.ok()) return std::string(options.status().message());
  return absl::StrJoin(*options, " ", [](std::string* out, const ShellOption& o) {
    absl::StrAppend(out, o.name, "=", absl::StrJoin(o.values, ","));
  });
}

// What train.py gets behind this script.
std::string ReadBehind(absl::string_view script, absl::string_view words, std::string set = "") {
  return ReadOptions(absl::StrCat(script, "\ntorchrun train.py ", words, "\n"),
                     {"", std::move(set)});
}

TEST(ReadShellOptions, TakesAFileOfOptions) {
  EXPECT_EQ(ReadOptions("--a 1 2 -3 --b 'x y' \"z\" # --c 4\n--d\t5\r\n"),
            "--a=1,2,-3 --b=x y,z --d=5");
  EXPECT_EQ(ReadOptions("# all\n--layout Et*3|(tt|)*29,m|L\n"), "--layout=Et*3|(tt|)*29,m|L");
  EXPECT_EQ(ReadOptions("--a 1 \\\n --b\nTP=8\n--c $TP ${X:-9}"), "--a=1 --b= --c=8,9");
  EXPECT_EQ(ReadOptions("TP=8\n--a $TP\n--b 2"), "--a=8 --b=2");
  EXPECT_EQ(ReadOptions("A=(--a 1)\nB=3\nC=\"--c $B\"\n"), "--a=1 --c=3");  // without a launch
  EXPECT_EQ(ReadOptions(""), "");
}

TEST(ReadShellOptions, SplitsStrings) {
  EXPECT_EQ(ReadBehind("A=\"--a 1 \\\n  --b 'x y'\n --c\"\nA+=\" --d 4\"", "$A --e \"x$A\""),
            "--a=1 --b='x,y' --c= --d=4 --e=x--a 1   --b 'x y'\n --c --d 4");
  EXPECT_EQ(ReadBehind("A=\"$A --a 1\"; A=\"${A} --b\"", "${A} --c '$A' --d \\$A --e x\\\ny"),
            "--a=1 --b= --c=$A --d=$A --e=xy");
  EXPECT_EQ(ReadBehind("C=\"torchrun train.py --a 1 --b '2 3'\"\neval $C\nexit", ""),
            "--a=1 --b=2 3");
  EXPECT_EQ(ReadBehind("X=a.b.c E=", "--a ${X%.*} ${X##*.} ${X/a/z} ${X^^} ${#X} ${X:2:1} --b $E"),
            "--a=a.b,c,z.b.c,A.B.C,5,b --b=");
  EXPECT_EQ(ReadBehind("IFS=,; X=1,2", "--a $X"), "--a=1,2");
}

TEST(ReadShellOptions, TakesArraysWhereTheyAreExpanded) {
  const std::string arrays = "A=(--a 1 'x y' # it's\n --b)\nB=(--c 9)\nA+=(--d)\n";
  EXPECT_EQ(ReadBehind(arrays, "--e 5 ${A[@]}"), "--e=5 --a=1,x,y --b= --d=");
  EXPECT_EQ(ReadBehind(arrays, "\"${A[@]}\" --e ${#A[@]} ${A[1]} ${A[-4]}"),
            "--a=1,x y --b= --d= --e=5,1,1");
  EXPECT_EQ(ReadBehind(arrays, "--e \"x ${B[*]}\" ${A[@]:3:1}"), "--e=x --c 9 --b=");
  EXPECT_EQ(ReadBehind("E=(); E[2]=7", "--a \"${E[@]}\" --b \"\" ${E[2]}"), "--a=7 --b=,7");
  EXPECT_EQ(ReadBehind("declare -A M=([s]=8 [l]=80); S=l", "--a ${M[$S]} ${!M[@]}"), "--a=80,s,l");
}

TEST(ReadShellOptions, TakesTheBranchThatIsTaken) {
  const std::string by_case =
      "case $SIZE in\n small|tiny) N=8 ;;\n [0-9]*B) N=${SIZE%B} ;;\n *) N=80\nesac";
  EXPECT_EQ(ReadBehind("SIZE=small\n" + by_case, "--a $N"), "--a=8");
  EXPECT_EQ(ReadBehind("SIZE=13B\n" + by_case, "--a $N"), "--a=13");
  EXPECT_EQ(ReadBehind(by_case, "--a $N", "SIZE=large"), "--a=80");
  const std::string by_if =
      "if [ -z \"$N\" ]; then N=1; fi\n"
      "if [[ $N == 1* && ! ( $N -gt 19 || -n $E ) ]]; then N=2; elif ((N > 5)); then N=3\n"
      "else N=4; fi\n[ \"$N\" = 2 ] && A=and || A=or\ntest $N -ge 3 -o $N != 2 || B=b";
  EXPECT_EQ(ReadBehind("N=\nE=\n" + by_if, "--a $N $A $B"), "--a=2,and,b");
  EXPECT_EQ(ReadBehind("N=20\nE=\n" + by_if, "--a $N $A $B"), "--a=3,or");
  EXPECT_EQ(ReadBehind("N=0\nE=\n" + by_if, "--a $N $A $B"), "--a=4,or");
  EXPECT_EQ(ReadOptions("if true; then torchrun train.py --a 1; exit; fi\ntorchrun train.py --a 2"),
            "--a=1");
}

TEST(ReadShellOptions, NamesConditionsThatDecide) {
  const std::string by_case = "case $1 in\nsmall) N=8;;\nlarge) N=80;;\n*) echo no; exit 1;;\nesac";
  EXPECT_EQ(ReadBehind(by_case, "--a $N"),
            "f:1: 'case $1' decides about options of the launch, and is not known; give "
            "--set=1=small");
  EXPECT_EQ(ReadBehind(by_case, "--a $N", "1=large"), "--a=80");
  EXPECT_EQ(
      ReadBehind("N=8; S=$1\nif [ $S = big ]; then N=80; fi\n[[ -f $X ]] && M=1", "--a $N $M"),
      "f:2: '[ $S = big ]' decides about options of the launch, and is not known (line 3, "
      "too); give --set=S=big,X=...");
  EXPECT_THAT(ReadBehind("A=${DEBUG:+1}", "--a 2 $A"), HasSubstr("--set=DEBUG=..."));
  EXPECT_THAT(ReadBehind("nvidia-smi && N=1", "--a 2 $N"),
              HasSubstr("f:1: 'nvidia-smi' decides about options"));
  // These have no influence: what ends the script, makes folders, or gives such options.
  EXPECT_EQ(ReadBehind("cd $D || exit 1\n[ $# -lt 2 ] && { echo usage; exit 1; }\n"
                       "if [ ! -d $D ]; then mkdir -p $D; fi\nif [ $D = x ]; then L=--no-l; fi",
                       "--a 2 $L"),
            "--a=2");
  EXPECT_EQ(ReadOptions("if [ $X = a ]; then torchrun train.py --a 1; else train.py --a 1; fi"),
            "--a=1");
  std::string many;
  for (int i = 0; i < 20; ++i) absl::StrAppend(&many, "if [ $X = ", i, " ]; then V", i, "=1; fi\n");
  EXPECT_THAT(ReadBehind(many, "--a 1"), HasSubstr("too many conditions are not known"));
}

TEST(ReadShellOptions, NamesValuesThatAreNotKnown) {
  EXPECT_EQ(ReadBehind("G=$(nvidia-smi | wc -l)", "--a $((G * 2)) --b $T --no-save $G/$X"),
            "f:1: --a $(nvidia-smi | wc -l): a command's output, which is not known; so are --b "
            "$T; give --set=G=...,T=...");
  EXPECT_EQ(ReadBehind("G=$(nvidia-smi | wc -l)", "--a $((G * 2)) --b $T --no-save $X", "G=4,T=5"),
            "--a=8 --b=5 --no-save=$X");
  EXPECT_THAT(ReadBehind("source m.sh", "--no-save x ${MODEL[@]}"),
              HasSubstr("f:2: --no-save ${MODEL[@]}: a variable that the text does not set (line 1 "
                        "reads m.sh); give --set=MODEL=..."));
  EXPECT_EQ(ReadBehind("source m.sh", "--a 1 ${MODEL[@]}", "MODEL=(--b 2)"), "--a=1 --b=2");
  EXPECT_THAT(ReadBehind("while read l; do N=$((N + 1)); done <x", "--a $N"),
              HasSubstr("--set=N="));
  EXPECT_EQ(ReadBehind("while ! nc -z $H; do sleep 1; done", "--a 1"), "--a=1");
  EXPECT_THAT(ReadBehind("read -r N", "--a $N"), HasSubstr("--set=N="));
  EXPECT_EQ(ReadBehind("N=8; X=$N", "--a $X", "X=9"), "--a=9");
  EXPECT_THAT(ReadBehind("", "--a 1", "Q=1"), HasSubstr("--set=Q=1: the script has no variable Q"));
  EXPECT_THAT(ReadBehind("", "--a 1", "1"), HasSubstr("must be NAME=VALUE"));
}

TEST(ReadShellOptions, RunsFunctionsAndLoops) {
  EXPECT_EQ(ReadOptions("f() { local n=$1; shift; torchrun train.py --a $n \"$@\" --b $#; }\n"
                        "n=5; f 2 --c 'x y'"),
            "--a=2 --c=x y --b=2");
  EXPECT_EQ(
      ReadBehind("for i in 1 2 {3..5}; do [ $i = 4 ] && continue; A+=\" $i\"; done", "--a $A"),
      "--a=1,2,3,5");
  EXPECT_EQ(ReadBehind("for ((i = 0; i < 4; i++)); do N=$((N + i)); done\n"
                       "while [ $N -gt 5 ]; do N=$((N - 1)); done",
                       "--a $N"),
            "--a=5");
  EXPECT_EQ(
      ReadBehind("S=1\nwhile [ $# -gt 0 ]; do case $1 in -s) S=$2;; esac; shift; done", "--a $S"),
      "--a=1");
  EXPECT_EQ(ReadBehind("S=1\nwhile getopts s: o; do S=$OPTARG; done\n"
                       "while [ -n \"$1\" ]; do S=$1; shift; done",
                       "--a $S --no-save /x/bash"),
            "--a=1 --no-save=/x/bash");
  EXPECT_THAT(ReadBehind("N=0\nfor h in $(cat hosts); do N=$((N + 1)); done", "--a $N"),
              HasSubstr("--set=N="));
  EXPECT_EQ(ReadBehind("(N=1); N=2; echo | N=3", "--a $N"), "--a=2");
  EXPECT_THAT(ReadBehind("i=0\nwhile true; do i=$((i + 1)); done", ""),
              HasSubstr("f:2: the loop does not end within 1000 turns"));
}

TEST(ReadShellOptions, TakesTheLaunchAlone) {
  for (const char* launcher :
       {"srun --nodes=1 --ntasks-per-node=4 python", "nsys profile -o x --trace cuda python -u",
        "ray job submit --address=x -- python3", "docker run --gpus all img torchrun --rdzv x",
        "A=1 numactl -N 1 env B=2 nohup time python3", "deepspeed --hostfile h", "exec ./run",
        "singularity exec --nv img.sif python -m torch.distributed.run --rdzv x", "mpirun -np 8"}) {
    const std::string script =
        absl::StrCat("ray stop --force\necho train.py --a 9 --b 9\n", launcher,
                     " pretrain_gpt.py --a 1 --b 2 2>&1 | tee --z log &\n");
    EXPECT_EQ(ReadOptions(script), "--a=1 --b=2") << script;
  }
  EXPECT_EQ(ReadOptions("torchrun --nnodes=2 --nproc-per-node 8 --rdzv x train.py --a 1"),
            "--nnodes=2 --nproc-per-node=8 --a=1");
  EXPECT_EQ(ReadOptions("export N=3\nsrun -l bash -lc 'cd x && torchrun train.py --a $N'"),
            "--a=3");
  EXPECT_EQ(ReadOptions("N=3\ndocker run i bash -c \"python -m x.pretrain --a $N\" | cat"),
            "--a=3");
  EXPECT_EQ(ReadOptions("cat >x <<E\ntrain.py --a 1\nE\npython $F --a 2 --b 3"), "--a=2 --b=3");
  EXPECT_THAT(ReadOptions("ray stop --force\n./run.sh\nbash x.sh"),
              HasSubstr("no command launches a Python program with options of Megatron-LM, as in "
                        "torchrun pretrain_gpt.py --num-layers 32; line 3 runs x.sh"));
  std::string others;
  for (int i = 1; i <= 9; ++i) absl::StrAppend(&others, "bash ", i, ".sh\n");
  EXPECT_THAT(ReadOptions(others), HasSubstr("; line 1 runs 1.sh, line 2 runs 2.sh, "));
  EXPECT_THAT(ReadOptions(others), HasSubstr("line 8 runs 8.sh and 1 more, which is not read"));
  EXPECT_THAT(
      ReadOptions("torchrun train.py --a 1\n  --b 2"),
      HasSubstr("f:2: --b begins a command; a \\ is missing at the end of the line before"));
}

TEST(ReadShellOptions, ListsSeveralLaunches) {
  const std::string two = "train.py --a 1\nfor i in 2 3; do pretrain.py --a $i; done\n";
  EXPECT_EQ(ReadOptions(two),
            "--launch: missing; f has 3 launches: 1 train.py (line 1), 2 pretrain.py (line 2), 3 "
            "pretrain.py (line 2); give one's number or program");
  EXPECT_EQ(ReadOptions(two, {"3", ""}), "--a=3");
  EXPECT_EQ(ReadOptions(two, {"train.py", ""}), "--a=1");
  EXPECT_THAT(ReadOptions(two, {"pretrain.py", ""}), HasSubstr("--launch=pretrain.py: f has 3"));
  EXPECT_THAT(ReadOptions(two, {"4", ""}), HasSubstr("--launch=4: f has 3 launches"));
  EXPECT_EQ(ReadOptions("train.py --a 1\ntrain.py --a 1 --no-x 2"), "--a=1");  // the same counts
}

TEST(ReadShellOptions, SaysWhatIsOpen) {
  EXPECT_EQ(ReadOptions("--a 1\n--b 'x\n--c"), "f:2: the quote ' is not closed");
  EXPECT_EQ(ReadOptions("--a \"${X"), "f:1: the quote \" is not closed");
  EXPECT_EQ(ReadOptions("x\nA=(1\n2"), "f:2: the ( is not closed");
  EXPECT_EQ(ReadOptions("if true\nthen x"), "f:2: the script ends within a command");
  EXPECT_EQ(ReadOptions("x\ndone\n"), "f:2: 'done' is not understood here");
  EXPECT_THAT(ReadOptions("case a in b) x ;& esac"), HasSubstr("f:1: ';&' is not understood here"));
}

// Each doubles something.
TEST(ReadShellOptions, BoundsWhatAScriptMakes) {
  const auto repeated = [](absl::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) absl::StrAppend(&all, text);
    return all;
  };
  EXPECT_THAT(ReadBehind("A=xxxxxxxx\n" + repeated("A=$A$A\n", 60), "--a $A"),
              HasSubstr("is too long"));
  EXPECT_THAT(ReadBehind("A=(x x)\n" + repeated("A=(${A[@]} ${A[@]})\n", 60), "--a $A"),
              HasSubstr("does too much to be read"));
  EXPECT_THAT(ReadBehind("f() { f; f; }\nf", "--a 1"), HasSubstr("call too deeply"));
  EXPECT_THAT(ReadBehind("A='eval $A'\neval $A", "--a 1"), HasSubstr("nested too deeply"));
  EXPECT_THAT(ReadBehind(repeated("if true; then\n", 9999), ""), HasSubstr("nested too deeply"));
  EXPECT_THAT(ReadBehind("A=" + repeated("${A:-", 9999), ""), HasSubstr("is not closed"));
  EXPECT_THAT(ReadBehind(repeated("for i in {1..999}; do ", 9) + repeated("N=1;done;", 9), ""),
              HasSubstr("does too much to be read"));
  EXPECT_THAT(ReadBehind(repeated("x", 1 << 20), ""), HasSubstr("longer than 1 MiB"));
  // Each word may be a program, and asks for the options behind it.
  EXPECT_THAT(ReadOptions("python" + repeated(" a.py", 100'000) + " --a 1"),
              HasSubstr("no command launches a Python program"));
}

}  // namespace
}  // namespace pipelab
