// The real novels, where they are in the cache:
//   bazel run //models/data:fetch && bazel test --test_env=PIPELAB_DATA=$HOME/.cache/pipelab/data
//   //models/data:data_test
#include "models/data/austen.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/package_cache.h"
#include "models/data/r_test_writer.h"
#include "models/data/text_batches.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A package's folder with a store of the novels, each of three lines; `damage` takes the place of
// "emma".
std::string FakeAustenPackage(const std::string& damage = "") {
  const std::string root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "austen-"));
  const std::string base = JoinPath(root, "usr/lib/R/site-library/janeaustenr/data");
  const std::vector<std::string> names = {"emma",       "mansfieldpark",  "northangerabbey",
                                          "persuasion", "prideprejudice", "sensesensibility"};
  std::string rdb;
  RWriter index;
  index.Begin(3).List(1, RWriter::kHasAttributes).List(6, RWriter::kHasAttributes);
  for (const std::string& name : names) {
    const std::string value = name == "emma" && !damage.empty()
                                  ? damage
                                  : RWriter().Begin(3).Strings({name, "", "The End"}).bytes();
    const std::string chunk = RWriter().Word(value.size()).Bytes(ZlibOf(value)).bytes();
    index.Integers({static_cast<int32_t>(rdb.size()), static_cast<int32_t>(chunk.size())});
    rdb += chunk;
  }
  index.Cell("names").Strings(names).Null();
  index.Item(kPairListCode, RWriter::kHasTag).Reference(1).Strings({"variables"}).Null();
  EXPECT_THAT(MakeDirectories(base), IsOk());
  EXPECT_THAT(WriteFileAtomically(base + "/Rdata.rdx", ZlibOf(index.bytes())), IsOk());
  EXPECT_THAT(WriteFileAtomically(base + "/Rdata.rdb", rdb), IsOk());
  return root;
}

TEST(Austen, NovelsComeInTheOrderOfPublication) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextCorpus corpus, LoadAusten(FakeAustenPackage()));
  EXPECT_EQ(corpus.name, "austen");
  ASSERT_EQ(corpus.documents.size(), 6u);
  EXPECT_EQ(corpus.documents[0], "sensesensibility\n\nThe End\n");
  EXPECT_EQ(corpus.titles[3], "Emma");
  EXPECT_EQ(corpus.documents[5], "persuasion\n\nThe End\n");
  EXPECT_EQ(corpus.lines(), 18);
}

TEST(Austen, DamageIsNamed) {
  EXPECT_THAT(LoadAusten(FakeAustenPackage(RWriter().Begin(3).Integers({1}).bytes())),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'emma' is integer")));
  EXPECT_THAT(LoadAusten(FakeAustenPackage("X\n")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("Rdata.rdb: 'emma'")));
  EXPECT_THAT(LoadAusten("/no/such"),
              StatusIs(absl::StatusCode::kNotFound, StartsWith("/no/such")));
}

TEST(Austen, RealNovels) {
  const auto dir = FindDebianPackage(AustenPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) {
    GTEST_SKIP() << dir.status().message() << "; see the top of this file";
  }
  ASSERT_THAT(dir, IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextCorpus corpus, LoadAusten(*dir));
  EXPECT_EQ(corpus.lines(), 73422);
  EXPECT_NEAR(static_cast<double>(corpus.bytes()), 4.03e6, 5e3);
  EXPECT_THAT(corpus.documents[0], StartsWith("SENSE AND SENSIBILITY\n\nby Jane Austen\n"));
  EXPECT_THAT(corpus.documents[1], HasSubstr("It is a truth universally acknowledged"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextData data, MakeTextData(corpus, 128, 1));
  EXPECT_LT(data.vocabulary.size(), 128);
}

}  // namespace
}  // namespace pipelab
