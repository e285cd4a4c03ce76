// Files: bounded reads, atomic writes, output folders.
#include "tools/base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string NewDir() {
  auto dir = MakeTemporaryDirectory(JoinPath(testing::TempDir(), "file_test-"));
  EXPECT_THAT(dir, IsOk());
  return *dir;
}

std::set<std::string> Names(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(dir)) names.insert(e.path().filename());
  return names;
}

TEST(Path, Joins) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
}

TEST(Path, ResolvesOutputUnderBazelRun) {
  setenv("BUILD_WORKSPACE_DIRECTORY", "/checkout", 1);
  setenv("BUILD_WORKING_DIRECTORY", "/checkout/docs", 1);
  EXPECT_EQ(ResolveOutputPath("", "quickstart"), "/checkout/results/quickstart");
  EXPECT_EQ(ResolveOutputPath("x/", "quickstart"), "/checkout/docs/x");
  EXPECT_EQ(ResolveOutputPath("/y", "quickstart"), "/y");
  unsetenv("BUILD_WORKSPACE_DIRECTORY");
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(ResolveOutputPath("", "quickstart"), "results/quickstart");
  EXPECT_EQ(ResolveOutputPath("x", "quickstart"), "x");
}

TEST(File, RoundTripAndReplace) {
  const std::string dir = NewDir(), path = JoinPath(dir, "a");
  const std::string big(3 << 20, 'x');  // several pieces
  for (const std::string& text : {std::string(), std::string("one\0two", 7), big}) {
    ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string read, ReadFile(path));
    EXPECT_EQ(read, text);
  }
  EXPECT_EQ(Names(dir), std::set<std::string>{"a"});
}

TEST(File, TextHasNoByteOrderMark) {
  const std::string path = JoinPath(NewDir(), "a");
  ASSERT_THAT(WriteFileAtomically(path, "\xEF\xBB\xBF\xEF\xBB\xBFtext"), IsOk());
  EXPECT_EQ(*ReadTextFile(path), "\xEF\xBB\xBFtext");
  EXPECT_EQ(ReadFile(path)->size(), 10u);
}

TEST(File, ReadErrorsNameThePath) {
  const std::string dir = NewDir(), path = JoinPath(dir, "a");
  EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kNotFound, StartsWith(path)));
  EXPECT_THAT(ReadFile(dir), StatusIs(absl::StatusCode::kUnknown, StartsWith(dir)));
  ASSERT_THAT(WriteFileAtomically(path, "12345"), IsOk());
  EXPECT_THAT(ReadFile(path, 5), IsOk());
  EXPECT_THAT(ReadFile(path, 4), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("4 bytes")));
}

// A file-size limit stands in for a full disk: the write fails half-way.
TEST(File, FailedWriteKeepsTheOldFileAndNoTemp) {
  const std::string dir = NewDir(), path = JoinPath(dir, "a");
  ASSERT_THAT(WriteFileAtomically(path, "old"), IsOk());
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = WriteFileAtomically(path, std::string(5000, 'n'));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_EQ(Names(dir), std::set<std::string>{"a"});
}

// The same limit kills a writer that does not ignore its signal.
TEST(File, KilledWriterLeavesNothing) {
  const std::string dir = NewDir(), path = JoinPath(dir, "a");
  const int fd = open(dir.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0) GTEST_SKIP() << "this file system has no files without a name";
  close(fd);
  ASSERT_THAT(WriteFileAtomically(path, "old"), IsOk());
  const auto write_and_die = [&] {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit none{0, 0}, small{1000, 1000};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &small);
    (void)WriteFileAtomically(path, std::string(5000, 'n'));
  };
  EXPECT_EXIT(write_and_die(), testing::KilledBySignal(SIGXFSZ), "");
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_EQ(Names(dir), std::set<std::string>{"a"});
}

TEST(File, LinksAndPermissionsStay) {
  const std::string dir = NewDir(), path = JoinPath(dir, "a"), link = JoinPath(dir, "link");
  ASSERT_THAT(MakeDirectories(JoinPath(dir, "below")), IsOk());
  std::filesystem::create_symlink("below/target", link);
  ASSERT_THAT(WriteFileAtomically(link, "first"), IsOk());  // there is no target yet
  ASSERT_THAT(WriteFileAtomically(link, "second"), IsOk());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(*ReadFile(JoinPath(dir, "below/target")), "second");
  std::filesystem::create_symlink("ring", JoinPath(dir, "ring"));
  EXPECT_THAT(WriteFileAtomically(JoinPath(dir, "ring"), ""),
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("symbolic links")));
  ASSERT_THAT(WriteFileAtomically(path, "mine"), IsOk());
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_THAT(WriteFileAtomically(path, "again"), IsOk());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_THAT(WriteFileAtomically(JoinPath(dir, "below"), ""),
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("Is a directory")));
}

// A rename would put a file in the place of the pipe, and as root in that of /dev/null.
TEST(File, PipesAreWrittenTo) {
  const std::string dir = NewDir(), path = JoinPath(dir, "pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_THAT(WriteFileAtomically(path, "text"), IsOk());
  char text[5] = {};
  EXPECT_EQ(read(reader, text, 4), 4);
  EXPECT_STREQ(text, "text");
  // What a process has open, as /dev/stdout leads to, is written to as well.
  const std::string mine = JoinPath(dir, "mine");
  const int fd = open(mine.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  std::filesystem::create_symlink(absl::StrCat("/proc/self/fd/", fd), JoinPath(dir, "stdout"));
  ASSERT_THAT(WriteFileAtomically(JoinPath(dir, "stdout"), "one"), IsOk());
  struct stat before, after;
  ASSERT_EQ(fstat(fd, &before), 0);
  ASSERT_EQ(stat(mine.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(*ReadFile(mine), "one");
  close(fd);
  close(reader);
}

TEST(CheckWritableFile, ProvesItOrNamesTheOption) {
  const std::string dir = NewDir(), file = JoinPath(dir, "a");
  EXPECT_THAT(CheckWritableFile("--log", file), IsOk());
  EXPECT_THAT(CheckWritableFile("--log", JoinPath(dir, "x/y/a")), IsOk());
  EXPECT_EQ(Names(dir), std::set<std::string>());
  ASSERT_THAT(WriteFileAtomically(file, "old"), IsOk());
  EXPECT_THAT(CheckWritableFile("--log", file), IsOk());
  EXPECT_EQ(*ReadFile(file), "old");
  EXPECT_THAT(CheckWritableFile("--log", "/dev/stdout"), IsOk());
  EXPECT_THAT(CheckWritableFile("--log", dir),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       absl::StrCat("--log=", dir, ": is a folder; give a file")));
  for (const std::string& none : {JoinPath(file, "b"), std::string("/proc/x/b")}) {
    EXPECT_THAT(CheckWritableFile("--log", none),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("--log=")))
        << none;
  }
}

TEST(CheckWritableDirectory, CreatesOrNamesTheOption) {
  const std::string dir = NewDir();
  EXPECT_THAT(CheckWritableDirectory("--out", JoinPath(dir, "x/y/")), IsOk());
  EXPECT_EQ(Names(JoinPath(dir, "x/y")), std::set<std::string>{});
  EXPECT_THAT(CheckWritableDirectory("--out", "/proc/x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("--out=/proc/x: cannot be created: "), HasSubstr("give"))));
  const std::string file = JoinPath(dir, "file");
  ASSERT_THAT(WriteFileAtomically(file, ""), IsOk());
  EXPECT_THAT(CheckWritableDirectory("--out", file),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("--out=" + file)));
  EXPECT_THAT(CheckWritableDirectory("--out", "/proc/self"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot be written to")));
  EXPECT_THAT(CheckWritableDirectory("--out", ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--out")));
}

TEST(OutputDirectory, AppearsWholeOrNotAtAll) {
  const std::string dir = NewDir(), path = JoinPath(dir, "run");
  {
    PIPELAB_ASSERT_OK_AND_ASSIGN(OutputDirectory out, OutputDirectory::Create("--out", path));
    EXPECT_EQ(Names(dir), std::set<std::string>{}) << "a killed run would leave this";
    ASSERT_THAT(out.Write("run.json", "1"), IsOk());
    EXPECT_FALSE(PathExists(path));
  }  // never published
  EXPECT_EQ(Names(dir), std::set<std::string>{});

  PIPELAB_ASSERT_OK_AND_ASSIGN(OutputDirectory out, OutputDirectory::Create("--out", path + "/"));
  ASSERT_THAT(out.Write("run.json", "1"), IsOk());
  ASSERT_THAT(out.Write("charts/loss.svg", "2"), IsOk());
  ASSERT_THAT(out.Publish(), IsOk());
  EXPECT_EQ(*ReadFile(path + "/charts/loss.svg"), "2");
  EXPECT_EQ(Names(dir), std::set<std::string>{"run"});
  EXPECT_FALSE(out.Publish().ok());
  EXPECT_FALSE(out.Write("late", "").ok());
}

TEST(OutputDirectory, KeepsFilesThatAreNotItsOwn) {
  const std::string dir = NewDir(), path = JoinPath(dir, "run");
  ASSERT_THAT(MakeDirectories(path), IsOk());
  ASSERT_THAT(WriteFileAtomically(path + "/mine.txt", "mine"), IsOk());
  ASSERT_THAT(WriteFileAtomically(path + "/run.json", "old"), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(OutputDirectory out, OutputDirectory::Create("--out", path));
  ASSERT_THAT(out.Write("run.json", "new"), IsOk());
  ASSERT_THAT(out.Write("charts/loss.svg", "2"), IsOk());
  EXPECT_EQ(*ReadFile(path + "/run.json"), "old");
  ASSERT_THAT(out.Publish(), IsOk());
  EXPECT_EQ(*ReadFile(path + "/run.json"), "new");
  EXPECT_EQ(*ReadFile(path + "/mine.txt"), "mine");
  EXPECT_EQ(Names(path), (std::set<std::string>{"charts", "mine.txt", "run.json"}));
  EXPECT_EQ(Names(dir), std::set<std::string>{"run"});
}

TEST(OutputDirectory, MakesFoldersAboveItOnlyWhenThereIsSomethingToWrite) {
  const std::string dir = NewDir(), path = JoinPath(dir, "a/b/run");
  PIPELAB_ASSERT_OK_AND_ASSIGN(OutputDirectory out, OutputDirectory::Create("--out", path));
  EXPECT_EQ(Names(dir), std::set<std::string>{});
  ASSERT_THAT(out.Write("run.json", "1"), IsOk());
  ASSERT_THAT(out.Publish(), IsOk());
  EXPECT_EQ(*ReadFile(path + "/run.json"), "1");
}

TEST(OutputDirectory, KeepsTheEmptyFolderInWhichAShellMayStand) {
  const std::string dir = NewDir(), path = JoinPath(dir, "run");
  ASSERT_THAT(MakeDirectories(path), IsOk());
  struct stat before, after;
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  PIPELAB_ASSERT_OK_AND_ASSIGN(OutputDirectory out, OutputDirectory::Create("--out", path));
  ASSERT_THAT(out.Write("run.json", "1"), IsOk());
  ASSERT_THAT(out.Publish(), IsOk());
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(Names(path), std::set<std::string>{"run.json"});
}

TEST(OutputDirectory, RemovesWhatAnInterruptedRunLeft) {
  const std::string dir = NewDir();
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  // No process has a number this high (the kernel's limit is 2^22).
  const std::string dead = absl::StrCat(dir, "/.run.incomplete-", host, "-99999999-abcdef");
  const std::string alive = absl::StrCat(dir, "/.run.incomplete-", host, "-", getpid(), "-abcdef");
  ASSERT_THAT(MakeDirectories(dead), IsOk());
  ASSERT_THAT(MakeDirectories(alive), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(OutputDirectory out,
                               OutputDirectory::Create("--out", JoinPath(dir, "run")));
  EXPECT_FALSE(PathExists(dead));
  EXPECT_TRUE(PathExists(alive));
}

TEST(OutputDirectory, RefusesBadPlaces) {
  const std::string dir = NewDir(), file = JoinPath(dir, "file");
  ASSERT_THAT(WriteFileAtomically(file, ""), IsOk());
  EXPECT_THAT(OutputDirectory::Create("--out", file),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a file")));
  EXPECT_THAT(OutputDirectory::Create("--out", "/proc/x"),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("--out=/proc/x: ")));
  PIPELAB_ASSERT_OK_AND_ASSIGN(OutputDirectory out,
                               OutputDirectory::Create("--out", JoinPath(dir, "run")));
  EXPECT_FALSE(out.Write("../escape", "").ok());
  EXPECT_FALSE(out.Write("/escape", "").ok());
}

}  // namespace
}  // namespace pipelab
