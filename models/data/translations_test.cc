// Translations: catalogues of a made package and the real one, the split, batches, baselines.
// The real ones, where they are in the cache:
//   bazel run //models/data:fetch && bazel test --test_env=PIPELAB_DATA=$HOME/.cache/pipelab/data
//   //models/data:data_test
#include "models/data/translations.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/mo_test_writer.h"
#include "models/data/translation_baselines.h"
#include "models/data/translation_batches.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using V = TranslationVocabulary;

void WriteCatalogue(const std::string& root, const std::string& locale, const std::string& file,
                    const std::string& bytes) {
  const std::string dir = JoinPath(root, "usr/share/locale/" + locale + "/LC_MESSAGES");
  ASSERT_THAT(MakeDirectories(dir), IsOk());
  ASSERT_THAT(WriteFileAtomically(JoinPath(dir, file), bytes), IsOk());
}

std::string FakeCatalogues() {
  const std::string root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "iso-"));
  WriteCatalogue(root, "fr", "iso_3166-1.mo", MoFile({{"Germany", "Allemagne"}}));
  WriteCatalogue(
      root, "de", "iso_3166-1.mo",
      MoFile({{"", "header"}, {"Germany", "Deutschland"}, {"Iran", "Iran"}, {"Mali", ""}}));
  WriteCatalogue(root, "de", "iso_3166-2.mo",
                 MoFile({{"region\4Germany", "Deutschland"}, {"Bavaria", "Bayern"}}));
  WriteCatalogue(root, "de", "other.mo", "not read");
  WriteCatalogue(root, "xx", "iso_3166-1.mo", MoFile({{"Iran", "Iran"}}));
  const std::string link = JoinPath(root, "usr/share/locale/de/LC_MESSAGES/iso_3166.mo");
  EXPECT_EQ(symlink("iso_3166-2.mo", link.c_str()), 0);
  return root;
}

TEST(IsoCodes, LoadsWhatIsTranslatedOnce) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TranslationCorpus corpus, LoadIsoCodes(FakeCatalogues()));
  EXPECT_EQ(corpus.name, "iso-codes");
  EXPECT_THAT(corpus.locales, ElementsAre("de", "fr"));
  std::vector<std::string> all;
  for (const Translation& t : corpus.translations) {
    all.push_back(corpus.locales[t.locale] + " " + t.source + " " + t.target);
  }
  EXPECT_THAT(all,
              ElementsAre("de Bavaria Bayern", "de Germany Deutschland", "fr Germany Allemagne"));
}

TEST(IsoCodes, DamageIsNamed) {
  std::string root = FakeCatalogues();
  WriteCatalogue(root, "fr", "iso_639-3.mo", "rubbish");
  EXPECT_THAT(LoadIsoCodes(root),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("fr/LC_MESSAGES/iso_639-3.mo: byte 0: magic")));
  WriteCatalogue(root, "fr", "iso_639-3.mo", MoFile({{"Thai", "\xFF"}}));
  EXPECT_THAT(LoadIsoCodes(root),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"Thai\": the text is not UTF-8")));
  EXPECT_THAT(LoadIsoCodes("/no/such"),
              StatusIs(absl::StatusCode::kNotFound, StartsWith("/no/such")));
  root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "iso-"));
  WriteCatalogue(root, "xx", "iso_3166-1.mo", MoFile({{"Iran", "Iran"}}));
  EXPECT_THAT(LoadIsoCodes(root), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no catalogue")));
}

TEST(Split, DependsOnTheEnglishStringAlone) {
  const TranslationCorpus corpus = SyntheticTranslations(2000, 1);
  const TranslationSplit split = SplitTranslations(corpus);
  EXPECT_EQ(split.train.translations.size() + split.held_out.translations.size(),
            corpus.translations.size());
  const double share = static_cast<double>(split.held_out.translations.size()) /
                       static_cast<double>(corpus.translations.size());
  EXPECT_NEAR(share, 0.05, 0.02);
  std::set<std::string> trained;
  for (const Translation& t : split.train.translations) trained.insert(t.source);
  for (const Translation& t : split.held_out.translations) {
    EXPECT_EQ(trained.count(t.source), 0u);
    EXPECT_TRUE(IsHeldOut(t.source));
  }
}

TEST(Split, ForValidationLeavesTheHeldOutAlone) {
  const TranslationCorpus corpus = SyntheticTranslations(2000, 1);
  const TranslationSplit split = SplitTranslations(corpus), chosen = SplitForValidation(corpus);
  std::set<std::string> trained;
  for (const Translation& t : chosen.train.translations) trained.insert(t.source);
  for (const Translation& t : chosen.held_out.translations) EXPECT_EQ(trained.count(t.source), 0u);
  for (const TranslationCorpus* part : {&chosen.train, &chosen.held_out}) {
    for (const Translation& t : part->translations) EXPECT_FALSE(IsHeldOut(t.source));
  }
  EXPECT_EQ(chosen.train.translations.size() + chosen.held_out.translations.size(),
            split.train.translations.size());
  EXPECT_NEAR(static_cast<double>(chosen.held_out.translations.size()),
              0.05 * static_cast<double>(corpus.translations.size()),
              0.02 * static_cast<double>(corpus.translations.size()));
}

TEST(KeepLocales, RenumbersThem) {
  const TranslationCorpus corpus = SyntheticTranslations(100, 1);
  const TranslationCorpus kept = KeepLocales(corpus, {"xc", "none", "xa"});
  EXPECT_THAT(kept.locales, ElementsAre("xa", "xc"));
  EXPECT_EQ(kept.translations[0].source, corpus.translations[0].source);
  EXPECT_EQ(kept.translations.back().locale, 1);
  EXPECT_EQ(kept.translations.back().target, corpus.translations.back().target);
}

TEST(SyntheticTranslations, IsSteady) {
  const TranslationCorpus a = SyntheticTranslations(50, 1), b = SyntheticTranslations(50, 1);
  EXPECT_EQ(a.name, "synthetic");
  EXPECT_EQ(a.translations.size(), b.translations.size());
  EXPECT_TRUE(std::equal(a.translations.begin(), a.translations.end(), b.translations.begin(),
                         [](const Translation& x, const Translation& y) {
                           return x.source == y.source && x.target == y.target;
                         }));
}

TranslationCorpus SmallCorpus() {
  TranslationCorpus corpus;
  corpus.name = "small";
  corpus.locales = {"de", "fr"};
  corpus.translations = {{0, "red", "rot"}, {0, "red car", "rot Auto"}, {1, "red", "rouge"}};
  return corpus;
}

TEST(TranslationVocabulary, SpecialLocalesCharacters) {
  const V v(SmallCorpus(), 2);
  // At least twice: space, d, e, o, r, t, u and no A, a, c, g.
  EXPECT_EQ(v.size(), 4 + 2 + 7);
  EXPECT_EQ(v.LocaleToken(1), 5);
  EXPECT_THAT(v.Encode("A rd"), ElementsAre(V::kUnknown, 6, 10, 7));
  EXPECT_EQ(v.Decode({V::kStart, 10, 7, V::kUnknown, V::kPadding, 8, 5, 99, -1, V::kEnd, 8}),
            "rd\xEF\xBF\xBD"
            "e");
  EXPECT_THAT(v.Encode("a\xFF"), ElementsAre(V::kUnknown, V::kUnknown));
}

TEST(TranslationBatchSource, FieldsOfASample) {
  const auto corpus = std::make_shared<const TranslationCorpus>(SmallCorpus());
  const auto v = std::make_shared<const V>(*corpus, 1);
  TranslationOptions options;
  options.source_length = 9;
  options.target_length = 9;
  const TranslationBatchSource source(corpus, v, options, ExampleOrder(3));
  EXPECT_EQ(source.targets_per_sample(), 9);
  std::vector<int32_t> ids(9);
  const auto read = [&](absl::string_view field) {
    source.FillIds(source.FindField(field), 0, 2, absl::MakeSpan(ids));
    return ids;
  };
  std::vector<int32_t> want = v->Encode("red");
  want.insert(want.begin(), v->LocaleToken(1));
  want.push_back(V::kEnd);
  want.resize(9);
  EXPECT_EQ(read(kSource), want);
  want = v->Encode("rouge");
  want.push_back(V::kEnd);
  want.resize(9, kNoData);
  EXPECT_EQ(read(kTargets), want);
  EXPECT_EQ(v->Decode(ids), "rouge");
  want = v->Encode("rouge");
  want.insert(want.begin(), V::kStart);
  want.resize(9);
  EXPECT_EQ(read(kTokens), want);
  EXPECT_TRUE(source.Field(kTargets).padded);
  EXPECT_EQ(source.Field(kSourceLength), (DataField{kSourceLength, FieldType::kId, {1}, 10}));
  std::vector<int32_t> lengths(3);
  source.FillIds(source.FindField(kSourceLength), 0, 0, absl::MakeSpan(lengths));
  EXPECT_THAT(lengths, ElementsAre(5, 9, 5));
  source.FillIds(source.FindField(kTargets), 0, 1, absl::MakeSpan(ids));
  EXPECT_EQ(ids[8], V::kEnd);  // "rot Auto" and kEnd: just fits
  options.target_length = 8;
  EXPECT_DEATH(TranslationBatchSource(corpus, v, options, ExampleOrder(3)), "too long: red car");
}

TEST(MakeTranslationData, LeavesOutWhatIsTooLong) {
  TranslationCorpus corpus = SyntheticTranslations(500, 1);
  TranslationOptions options;
  options.source_length = 9;
  const TranslationData data = MakeTranslationData(corpus, options);
  EXPECT_GT(data.too_long, 0);
  EXPECT_EQ(data.train->translations.size() + data.held_out->translations.size() + data.too_long,
            corpus.translations.size());
  for (const Translation& t : data.train->translations) EXPECT_LE(t.source.size(), 7u);
  const TranslationBatchSource source(data.held_out, data.vocabulary, options,
                                      ExampleOrder(data.held_out->translations.size()));
  EXPECT_EQ(source.fields()[0].limit, data.vocabulary->size());
}

TEST(DictionaryTranslator, NamesThenWordsThenCopies) {
  TranslationCorpus corpus = SmallCorpus();
  corpus.translations.push_back({0, "blue car", "blaues Auto"});
  corpus.translations.push_back({0, "blue sky", "blaues Licht"});
  const DictionaryTranslator dictionary(corpus);
  EXPECT_EQ(dictionary.Translate(0, "red car"), "rot Auto");
  EXPECT_EQ(dictionary.Translate(0, "red sky"), "rot Licht");
  EXPECT_EQ(dictionary.Translate(0, "blue moon"), "blaues moon");
  EXPECT_EQ(dictionary.Translate(0, "car"), "Auto");
  EXPECT_EQ(dictionary.Translate(1, "car"), "car");
}

TEST(Evaluate, ExactAndChrf) {
  const TranslationQuality same =
      Evaluate(SmallCorpus(), [](const Translation& t) { return t.target; });
  EXPECT_EQ(same.pairs, 3);
  EXPECT_EQ(same.exact, 1);
  EXPECT_EQ(same.chrf, 1);
  const TranslationQuality copy =
      Evaluate(SmallCorpus(), [](const Translation& t) { return t.source; });
  EXPECT_EQ(copy.exact, 0);
  EXPECT_GT(copy.chrf, 0);
  EXPECT_LT(copy.chrf, 0.5);
  EXPECT_EQ(Evaluate(TranslationCorpus(), [](const Translation&) { return ""; }).pairs, 0);
}

TEST(IsoCodes, RealCatalogues) {
  const auto dir = FindDebianPackage(IsoCodesPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) {
    GTEST_SKIP() << dir.status().message() << "; see the top of this file";
  }
  ASSERT_THAT(dir, IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TranslationCorpus corpus, LoadIsoCodes(*dir));
  EXPECT_EQ(corpus.translations.size(), 190025u);
  EXPECT_EQ(corpus.locales.size(), 157u);
  const TranslationSplit split = SplitTranslations(corpus);
  const double share = static_cast<double>(split.held_out.translations.size()) / 190025;
  EXPECT_NEAR(share, 0.05, 0.01);
  const TranslationData data = MakeTranslationData(corpus, TranslationOptions());
  EXPECT_LT(data.too_long, 190025 / 15);
  EXPECT_LT(data.vocabulary->size(), 4000);
  const TranslationQuality copy =
      Evaluate(split.held_out, [](const Translation& t) { return t.source; });
  const DictionaryTranslator dictionary(split.train);
  const TranslationQuality looked_up = Evaluate(split.held_out, [&](const Translation& t) {
    return dictionary.Translate(t.locale, t.source);
  });
  EXPECT_EQ(copy.exact, 0);  // those alike were left out
  EXPECT_GT(looked_up.exact, copy.exact);
  EXPECT_GT(looked_up.chrf, 0.1);
}

}  // namespace
}  // namespace pipelab
