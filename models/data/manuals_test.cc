// Manuals: a made package, the pool and its files. The real ones, where they are in the cache:
//   bazel run //models/data:fetch && bazel test --test_env=PIPELAB_DATA=$HOME/.cache/pipelab/data
//   //models/data:data_test
#include "models/data/manuals.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/mining_pool.h"
#include "models/data/mo_test_writer.h"
#include "models/data/package_cache.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

std::string Page(const std::string& body) {
  return "<?xml version=\"1.0\"?>\n<page xmlns=\"http://projectmallard.org/1.0/\">" + body +
         "</page>\n";
}

void WriteManual(const std::string& root, const std::string& path, const std::string& bytes) {
  const std::string file = JoinPath(root, path);
  ASSERT_THAT(MakeDirectories(file.substr(0, file.rfind('/'))), IsOk());
  ASSERT_THAT(WriteFileAtomically(file, bytes), IsOk());
}

TEST(ParseManualPage, GivesBlocksWithoutTags) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const std::vector<TextBlock> blocks,
      ParseManualPage(
          Page("<info><desc>What it\n  does.</desc></info><title>A &amp; b</title>"
               "<steps><item><p>Press <gui>Next</gui> <em>now</em>.</p></item></steps>"),
          "a.page"));
  ASSERT_THAT(blocks, SizeIs(3));
  EXPECT_EQ(blocks[0].kind + ": " + blocks[0].text, "desc: What it does.");
  EXPECT_EQ(blocks[1].text, "A & b");
  EXPECT_EQ(blocks[2].text, "Press Next now.");
  EXPECT_THAT(ParseManualPage("<page><p>x</page>", "b.page"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("b.page: byte ")));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  for (int i = 0; i < 100000; ++i) deep += "</a>";
  EXPECT_THAT(ParseManualPage(deep, "c.page"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("c.page: tags are nested deeper")));
}

TEST(LoadManuals, AlignsPagesOfEqualFormAndKeepsTheRestApart) {
  const std::string root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "manuals-"));
  const std::string help = "usr/share/help/";
  WriteManual(root, help + "C/gnome-help/a.page", Page("<title>One</title><p>Two</p><p>Same</p>"));
  WriteManual(root, help + "de/gnome-help/a.page",
              Page("<title>Eins</title><p>Zwei</p><p>Same</p>"));
  WriteManual(root, help + "C/gnome-help/b.page", Page("<title>Three</title><p>Four</p>"));
  WriteManual(root, help + "de/gnome-help/b.page", Page("<title>Drei</title>"));
  WriteManual(root, help + "C/gnome-help/c.page", Page("<title>One</title><p>Five</p>"));
  WriteManual(root, help + "de/gnome-help/c.page", Page("<title>Einzig</title><p>Fünf</p>"));
  std::vector<std::pair<std::string, std::string>> strings = {{"Too short", "Zu kurz"}};
  for (const std::string n : {"1", "2", "3", "4", "5", "6", "7", "8"}) {
    strings.emplace_back("string " + n + " has five words", "Text " + n + " hat fünf Wörter");
  }
  WriteManual(root, "usr/share/locale/de/LC_MESSAGES/x.mo", MoFile(strings));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ParallelText text,
                               LoadManuals({root, {root}, {}}, "de", LoneText::kHalves));
  std::vector<std::string> pairs;
  for (const TextPair& p : text.pairs) pairs.push_back(p.source + "=" + p.target);
  EXPECT_THAT(pairs, ElementsAre("One=Eins", "Two=Zwei", "Five=Fünf"));
  EXPECT_EQ(text.lone_sources.size() + text.lone_targets.size(), 8u);
  std::set<std::string> numbers;
  for (const std::string& s : text.lone_sources) numbers.insert(s.substr(7, 1));
  for (const std::string& t : text.lone_targets) numbers.insert(t.substr(5, 1));
  EXPECT_THAT(numbers, SizeIs(8));  // one side of each
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ParallelText apart, LoadManuals({root, {root}, {}}, "de"));
  EXPECT_THAT(apart.lone_sources, SizeIs(0));
  EXPECT_THAT(apart.lone_targets, SizeIs(8));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ParallelText english, LoadManuals({root, {}, {root}}, "de"));
  EXPECT_THAT(english.lone_sources, SizeIs(8));
  EXPECT_THAT(LoadManuals({root, {}, {}}, "xx"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("xx")));
}

TEST(LoadCatalogues, AlignsStringsOnceWithoutMarks) {
  const std::string root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "catalogues-"));
  WriteManual(root, "usr/share/locale/de/LC_MESSAGES/x.mo",
              MoFile({{"_Open the  file", "Datei öff_nen"},
                      {"Open the file...", "Datei aufmachen"},  // the letters of the one before
                      {"Open a file", "Datei öffnen"},          // its translation
                      {"Say &lt;b&gt; to it", "Sag &lt;b&gt;"},
                      {"Two words", "Zwei Wörter"},
                      {"snake_case_name is it", "snake_case_name ist es"}}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<TextPair> pairs, LoadCatalogues({root}, "de"));
  std::vector<std::string> texts;
  for (const TextPair& p : pairs) texts.push_back(p.source + "=" + p.target);
  EXPECT_THAT(
      texts, UnorderedElementsAre("Open the file=Datei öffnen", "Say &lt;b&gt; to it=Sag &lt;b&gt;",
                                  "snake_case_name is it=snake_case_name ist es"));
  EXPECT_THAT(LoadCatalogues({root}, "xx"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no string of xx")));
}

TEST(SplitCatalogues, HoldsOutATenth) {
  std::vector<TextPair> pairs;
  for (int i = 0; i < 1000; ++i) pairs.push_back({"s" + std::to_string(i), "t"});
  const CatalogueSplit split = SplitCatalogues(pairs);
  EXPECT_EQ(split.pool.size() + split.held_out.size(), 1000u);
  EXPECT_NEAR(static_cast<double>(split.held_out.size()), 100, 30);
}

ParallelText Numbered(int pairs, int lone) {
  ParallelText text;
  for (int i = 0; i < pairs; ++i) {
    text.pairs.push_back({"s" + std::to_string(i), "t" + std::to_string(i)});
  }
  for (int i = 0; i < lone; ++i) {
    text.lone_sources.push_back("u" + std::to_string(i));
    text.lone_targets.push_back("v" + std::to_string(i));
  }
  return text;
}

TEST(MakeMiningTask, KeepsBothSidesOfAHalfAndTheTruthKnowsThem) {
  MiningTaskOptions options;
  options.wrong = 3;
  const MiningTask task = MakeMiningTask(Numbered(80, 300), options);
  EXPECT_THAT(task.truth, SizeIs(40));
  EXPECT_THAT(task.pool.source, SizeIs(160));
  EXPECT_THAT(task.pool.target, SizeIs(160));
  for (const auto& [x, y] : task.truth) {
    EXPECT_EQ(task.pool.source[x].substr(1), task.pool.target[y].substr(1));
  }
  options.wrong = 0;
  EXPECT_THAT(MakeMiningTask(Numbered(80, 300), options).pool.source, SizeIs(60));
  options.with_pairs = false;
  const MiningTask none = MakeMiningTask(Numbered(80, 300), options);
  EXPECT_THAT(none.truth, SizeIs(0));
  std::set<std::string> numbers;
  for (const std::string& s : none.pool.source) numbers.insert(s.substr(1));
  for (const std::string& t : none.pool.target) EXPECT_EQ(numbers.count(t.substr(1)), 0u);
}

TEST(MiningTask, FilesGiveItBack) {
  const std::string folder = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "pool-"));
  const MiningTask task = MakeMiningTask(Numbered(20, 0), {});
  ASSERT_THAT(WriteMiningTask(task, folder), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MiningPool pool, ReadMiningPool(folder));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MiningTruth truth, ReadMiningTruth(folder));
  EXPECT_EQ(pool.source, task.pool.source);
  EXPECT_EQ(pool.target, task.pool.target);
  EXPECT_EQ(truth, task.truth);
  for (const std::string wrong : {"3 x", "3 -1", "1 1"}) {
    ASSERT_THAT(WriteFileAtomically(JoinPath(folder, "truth.txt"), "1 2\n" + wrong), IsOk());
    EXPECT_THAT(ReadMiningTruth(folder),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("truth.txt: line 2: \"" + wrong + "\"")));
  }
}

TEST(RealManuals, AreAligned) {
  const absl::StatusOr<ManualFolders> folders = FindManuals(DefaultDataCache());
  if (!folders.ok()) GTEST_SKIP() << folders.status().message();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ParallelText text,
                               LoadManuals(*folders, "es", LoneText::kHalves));
  EXPECT_THAT(text.pairs, SizeIs(2144));
  EXPECT_THAT(text.lone_sources, SizeIs(3685));
  EXPECT_THAT(text.lone_targets, SizeIs(3541));
}

}  // namespace
}  // namespace pipelab
