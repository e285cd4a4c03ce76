// The package cache against a stand-in for apt-get: what goes right, and each way it goes wrong.
#include "models/data/package_cache.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/checksums.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PackageCache : public testing::Test {
 protected:
  // Builds a real package of one file, and an apt-get that hands it out and counts its calls.
  void SetUp() override {
    dir_ = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "cache_test-"));
    cache_ = JoinPath(dir_, "cache");
    deb_ = Build("1.0-1");
    package_ = {"novels", "1.0-1", *Sha256OfFile(deb_)};
    SetApt(absl::StrCat("cp '", deb_, "' novels_1.0-1_all.deb"));
    options_.update_lists = false;
  }

  std::string Build(const std::string& version) {
    const std::string tree = JoinPath(dir_, "tree-" + version);
    EXPECT_THAT(MakeDirectories(tree + "/DEBIAN"), IsOk());
    EXPECT_THAT(MakeDirectories(tree + "/usr/share/novels"), IsOk());
    EXPECT_THAT(WriteFileAtomically(tree + "/DEBIAN/control",
                                    absl::StrCat("Package: novels\nVersion: ", version,
                                                 "\nArchitecture: all\nMaintainer: a <a@b.c>\n"
                                                 "Description: text\n")),
                IsOk());
    EXPECT_THAT(WriteFileAtomically(tree + "/usr/share/novels/emma.txt", "Emma Woodhouse\n"),
                IsOk());
    const std::string deb = JoinPath(dir_, version + ".deb");
    const auto r = RunProcess({"dpkg-deb", "--root-owner-group", "-b", tree, deb});
    EXPECT_TRUE(r.ok() && r->exit_code == 0) << r.status() << (r.ok() ? r->error : "");
    return deb;
  }

  std::string Script(const std::string& name, const std::string& body) {
    const std::string path = JoinPath(dir_, name);
    EXPECT_THAT(WriteFileAtomically(path, absl::StrCat("#!/bin/sh\n", body, "\n")), IsOk());
    chmod(path.c_str(), 0755);
    return path;
  }

  void SetApt(const std::string& body) {
    options_.apt_get = Script("apt-get", absl::StrCat("echo \"$*\" >> '", dir_, "/calls'\n", body));
  }

  std::string Calls() const { return ReadFile(JoinPath(dir_, "calls")).value_or(""); }
  absl::StatusOr<std::string> Fetch() { return FetchDebianPackage(package_, cache_, options_); }

  // What the cache holds, hidden folders too.
  std::set<std::string> Entries() const {
    std::set<std::string> names;
    if (!PathExists(cache_)) return names;
    for (const auto& e : std::filesystem::directory_iterator(cache_)) {
      names.insert(e.path().filename());
    }
    return names;
  }
  std::string Entry() const { return "novels_1.0-1_" + package_.sha256.substr(0, 12); }

  std::string dir_, cache_, deb_;
  DebianPackage package_;
  FetchOptions options_;
};

TEST_F(PackageCache, FetchesOnceThenUsesTheCache) {
  EXPECT_THAT(FindDebianPackage(package_, cache_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("novels")));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string files, Fetch());
  EXPECT_EQ(*ReadFile(files + "/usr/share/novels/emma.txt"), "Emma Woodhouse\n");
  EXPECT_THAT(Calls(), HasSubstr("download novels=1.0-1\n"));
  EXPECT_EQ(Entries(), std::set<std::string>{Entry()});
  const std::string calls = Calls();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string again, Fetch());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string found, FindDebianPackage(package_, cache_));
  EXPECT_EQ(again, files);
  EXPECT_EQ(found, files);
  EXPECT_EQ(Calls(), calls);  // apt was not asked again
}

TEST_F(PackageCache, WrongSumIsNamedAndRemoved) {
  const std::string real = package_.sha256;
  package_.sha256 = std::string(64, '0');
  EXPECT_THAT(Fetch(), StatusIs(absl::StatusCode::kDataLoss,
                                AllOf(HasSubstr("novels_1.0-1_all.deb: sha256 is " + real),
                                      HasSubstr("must be 0000"))));
  EXPECT_EQ(Entries(), std::set<std::string>{});
}

TEST_F(PackageCache, TruncatedDownloadIsNamedAndRemoved) {
  SetApt(absl::StrCat("head -c 300 '", deb_, "' > novels_1.0-1_all.deb"));
  EXPECT_THAT(Fetch(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(package_.sha256)));
  EXPECT_EQ(Entries(), std::set<std::string>{});
}

TEST_F(PackageCache, AnotherVersionIsRefusedByName) {
  const std::string other = Build("2.0-1");
  SetApt(absl::StrCat(
      "case \"$*\" in *novels=*) echo \"E: Version '1.0-1' for 'novels' was not found\" >&2; "
      "exit 100;; esac; cp '",
      other, "' novels_2.0-1_all.deb"));
  EXPECT_THAT(Fetch(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("apt offers version 2.0-1"),
                                      HasSubstr("version 1.0-1 with"))));
  EXPECT_EQ(Entries(), std::set<std::string>{});
}

TEST_F(PackageCache, BareNameServesWhenTheSumFits) {
  SetApt(absl::StrCat(
      "case \"$*\" in *novels=*) echo \"E: Version '1.0-1' for 'novels' was not found\" >&2; "
      "exit 100;; esac; cp '",
      deb_, "' novels_1.0-1_all.deb"));
  EXPECT_THAT(Fetch(), IsOk());
}

TEST_F(PackageCache, AptFailuresAreUnavailableInOneLine) {
  const auto expect = [&](const std::string& apt, const std::string& message) {
    SetApt(apt);
    const absl::Status status = Fetch().status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr(message)));
    EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos);
    EXPECT_EQ(Entries(), std::set<std::string>{});
  };
  expect(
      "printf 'Err:1\\nW: old\\nE: Failed to fetch http://x  Could not resolve\\nE: Unable\\n' "
      ">&2; exit 100",
      "apt-get download failed: Failed to fetch http://x");
  expect("echo 'E: Unable to locate package novels' >&2; exit 100", "run 'apt-get update' as root");
  expect("exit 0", "apt-get download failed");  // nothing was downloaded
  options_.timeout = absl::Milliseconds(200);
  expect("sleep 60", "was stopped after 200ms");
  options_.apt_get = "no-such-apt-get";
  EXPECT_THAT(Fetch(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no-such-apt-get")));
}

TEST_F(PackageCache, RootUpdatesListsThatAreMissing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root (in a sandbox: a user mapped to root)";
  options_.update_lists = true;
  SetApt(absl::StrCat(
      "case \"$*\" in *update) touch '", dir_, "/lists'; exit 0;; esac\n[ -e '", dir_,
      "/lists' ] || { echo 'E: Unable to locate package novels' >&2; exit 100; }\ncp '", deb_,
      "' novels_1.0-1_all.deb"));
  EXPECT_THAT(Fetch(), IsOk());
}

TEST_F(PackageCache, DamagedPackageThatFitsItsSum) {
  const std::string junk = Script("junk.deb", "no package");
  package_.sha256 = *Sha256OfFile(junk);
  SetApt(absl::StrCat("cp '", junk, "' novels_1.0-1_all.deb"));
  EXPECT_THAT(Fetch(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("dpkg-deb cannot unpack it")));
  EXPECT_EQ(Entries(), std::set<std::string>{});
}

TEST_F(PackageCache, UnwritableCacheNamesTheVariable) {
  for (const std::string& cache : {std::string("/proc/x"), deb_, std::string()}) {
    EXPECT_THAT(FetchDebianPackage(package_, cache, options_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("PIPELAB_DATA=" + cache)));
  }
}

TEST_F(PackageCache, DamagedEntryIsFoundAndFetchedAgain) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string files, Fetch());
  const std::string entry = JoinPath(cache_, Entry()), emma = files + "/usr/share/novels/emma.txt";
  const auto damages = std::vector<std::function<void()>>{
      [&] { std::ofstream(emma) << "Emma Woodhousf\n"; },  // the same size
      [&] { std::filesystem::remove(emma); },
      [&] { std::ofstream(entry + "/files.sha256") << ""; },
      [&] { std::filesystem::remove(entry + "/package.sha256"); },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    damages[i]();
    EXPECT_THAT(FindDebianPackage(package_, cache_),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(entry)))
        << i;
    EXPECT_THAT(Fetch(), IsOk()) << i;
    EXPECT_EQ(*ReadFile(emma), "Emma Woodhouse\n") << i;
    EXPECT_EQ(Entries(), std::set<std::string>{Entry()}) << i;
  }
  EXPECT_THAT(FindDebianPackage(package_, cache_), IsOk());
}

TEST_F(PackageCache, CallersAtTheSameTime) {
  SetApt(absl::StrCat("sleep 0.2; cp '", deb_, "' novels_1.0-1_all.deb"));
  std::vector<absl::StatusOr<std::string>> results(4, absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&, r = &result] { *r = Fetch(); });
  for (std::thread& t : threads) t.join();
  for (const auto& result : results) {
    EXPECT_THAT(result, IsOk());
    EXPECT_THAT(ReadFile(result.value_or("") + "/usr/share/novels/emma.txt"), IsOk());
  }
  EXPECT_EQ(Entries(), std::set<std::string>{Entry()});
}

TEST_F(PackageCache, InterruptedRunLeavesNoEntryAndIsCleanedUp) {
  SetApt(absl::StrCat("cp '", deb_, "' novels_1.0-1_all.deb; touch '", dir_, "/started'; sleep 5"));
  const pid_t child = fork();
  if (child == 0) {
    (void)Fetch();
    _exit(0);
  }
  for (int i = 0; i < 1000 && !PathExists(dir_ + "/started"); ++i)
    absl::SleepFor(absl::Milliseconds(10));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(Entries().count(Entry()), 0u);
  EXPECT_EQ(Entries().size(), 1u);  // its hidden folder
  SetApt(absl::StrCat("cp '", deb_, "' novels_1.0-1_all.deb"));
  EXPECT_THAT(Fetch(), IsOk());
  EXPECT_EQ(Entries(), std::set<std::string>{Entry()});
}

TEST(DefaultDataCache, FollowsTheEnvironment) {
  setenv("HOME", "/home/jane", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("PIPELAB_DATA");
  EXPECT_EQ(DefaultDataCache(), "/home/jane/.cache/pipelab/data");
  setenv("XDG_CACHE_HOME", "/c", 1);
  EXPECT_EQ(DefaultDataCache(), "/c/pipelab/data");
  setenv("PIPELAB_DATA", "/d", 1);
  EXPECT_EQ(DefaultDataCache(), "/d");
  unsetenv("PIPELAB_DATA");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(DefaultDataCache(), "");
}

}  // namespace
}  // namespace pipelab
