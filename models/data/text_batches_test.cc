// Text batches: the split, the vocabulary, samples that depend on (step, sample) alone.
#include "models/data/text_batches.h"

#include <algorithm>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TextData Data(int64_t context = 16, uint64_t seed = 1) {
  auto data = MakeTextData(SyntheticCorpus(60000, 3), context, seed);
  EXPECT_THAT(data, IsOk());
  return std::move(*data);
}

TEST(SyntheticCorpus, IsSteadyAndLooksLikeText) {
  const TextCorpus a = SyntheticCorpus(60000, 3), b = SyntheticCorpus(60000, 3);
  EXPECT_EQ(a.name, "synthetic");
  EXPECT_EQ(a.documents, b.documents);
  EXPECT_NE(a.documents, SyntheticCorpus(60000, 4).documents);
  EXPECT_NEAR(static_cast<double>(a.bytes()), 60000, 600);
  ASSERT_EQ(a.documents.size(), 6u);
  // The same on every machine.
  EXPECT_EQ(a.documents[0].substr(0, 40), "Wiweda nepogico sapa vele gitode dirowa ");
  for (const std::string& text : a.documents) {
    EXPECT_EQ(text.back(), '\n');
    size_t line = 0, longest = 0;
    for (const char c : text) {
      line = c == '\n' ? 0 : line + 1;
      longest = std::max(longest, line);
    }
    EXPECT_LE(longest, 70u);
  }
  EXPECT_GT(a.lines(), 60000 / 72);
}

TEST(ByteVocabulary, SortedDistinctBytes) {
  TextCorpus corpus;
  corpus.documents = {"cab\n", "\xC3\xA9"};
  const ByteVocabulary v(corpus);
  EXPECT_EQ(v.size(), 6);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto tokens, v.Encode("\nabc\xA9\xC3"));
  EXPECT_THAT(tokens, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(v.Decode({3, 1, 2, 99, -1}), "cab??");
  EXPECT_THAT(v.Encode("ax"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0x78 at 1")));
}

TEST(MakeTextData, HoldsOutTheLastTenthOfEachDocument) {
  TextCorpus corpus;
  corpus.name = "t";
  corpus.documents = {"aaaaaaaaaaaaaaaaaabb", "cccccccccd"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextData data, MakeTextData(corpus, 2, 1));
  EXPECT_THAT(data.held_out->tokens(), ElementsAre(1, 1, 3));
  EXPECT_EQ(data.train->tokens().size(), 27u);
  EXPECT_EQ(data.train->tokens()[17], 0);
  EXPECT_EQ(data.train->tokens()[18], 2);
  EXPECT_EQ(data.name, "t");
  EXPECT_EQ(data.train->vocabulary(), 4);
  for (const int64_t context : {0, 3}) {
    EXPECT_THAT(MakeTextData(corpus, context, 1),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be from 1 to 2")));
  }
  EXPECT_FALSE(MakeTextData(TextCorpus(), 1, 1).ok());
}

TEST(WithoutHeldOut, IsWhatIsForTraining) {
  const TextCorpus corpus = SyntheticCorpus(60000, 3);
  const TextCorpus part = WithoutHeldOut(corpus);
  EXPECT_EQ(part.name, corpus.name);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextData data, MakeTextData(corpus, 16, 1));
  std::string joined;
  for (const std::string& text : part.documents) joined += text;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto tokens, data.vocabulary.Encode(joined));
  EXPECT_EQ(tokens, data.train->tokens());
}

TEST(TextBatchSource, TargetsFollowTokens) {
  const TextData data = Data();
  std::vector<int32_t> tokens(32 * 16), targets(32 * 16);
  data.train->FillIds(0, 5, 0, absl::MakeSpan(tokens));
  data.train->FillIds(1, 5, 0, absl::MakeSpan(targets));
  const std::vector<uint8_t>& all = data.train->tokens();
  std::set<std::vector<int32_t>> different;
  for (size_t s = 0; s < 32; ++s) {
    const std::vector<int32_t> sample(tokens.begin() + s * 16, tokens.begin() + s * 16 + 16);
    different.insert(sample);
    EXPECT_NE(std::search(all.begin(), all.end(), sample.begin(), sample.end()), all.end());
    for (size_t i = 0; i + 1 < 16; ++i) EXPECT_EQ(targets[s * 16 + i], tokens[s * 16 + i + 1]);
  }
  EXPECT_GT(different.size(), 30u);
}

TEST(TextBatchSource, AnyPartitionSeesTheSameSamples) {
  const TextData data = Data();
  std::vector<int32_t> tokens(24 * 16), targets(24 * 16);
  data.train->FillIds(0, 7, 100, absl::MakeSpan(tokens));
  data.train->FillIds(1, 7, 100, absl::MakeSpan(targets));
  for (const size_t n : {1, 2, 3, 8}) {
    for (size_t first = 0; first < 24; first += n) {
      std::vector<int32_t> a(n * 16), b(n * 16);
      data.train->FillIds(0, 7, 100 + first, absl::MakeSpan(a));
      data.train->FillIds(1, 7, 100 + first, absl::MakeSpan(b));
      EXPECT_TRUE(std::equal(a.begin(), a.end(), tokens.begin() + first * 16));
      EXPECT_TRUE(std::equal(b.begin(), b.end(), targets.begin() + first * 16));
    }
  }
}

TEST(TextBatchSource, StepSeedAndPartChangeTheSamples) {
  const TextData data = Data(), other = Data(16, 2);
  const auto fill = [](const TextBatchSource& source, int64_t step) {
    std::vector<int32_t> tokens(8 * 16);
    source.FillIds(0, step, 0, absl::MakeSpan(tokens));
    return tokens;
  };
  EXPECT_EQ(fill(*data.train, 1), fill(*Data().train, 1));
  EXPECT_NE(fill(*data.train, 1), fill(*data.train, 2));
  EXPECT_NE(fill(*data.train, 1), fill(*other.train, 1));
  EXPECT_NE(fill(*data.train, 1), fill(*data.held_out, 1));
}

// The first and the last place are drawn, and none beyond: the last target is the last token.
TEST(TextBatchSource, AllPlacesAreDrawn) {
  TextCorpus corpus;
  corpus.documents = {"abcdefghijklmnopqrstABCDEFGHIJ"};  // 27 and 3
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextData data, MakeTextData(corpus, 2, 1));
  std::vector<int32_t> tokens(2000), targets(2000);
  data.train->FillIds(0, 0, 0, absl::MakeSpan(tokens));
  data.train->FillIds(1, 0, 0, absl::MakeSpan(targets));
  std::set<int32_t> firsts;
  for (size_t i = 0; i < 2000; i += 2) firsts.insert(tokens[i]);
  EXPECT_EQ(firsts.size(), 25u);  // 27 tokens, less 2 of context
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto last, data.vocabulary.Encode("G"));
  EXPECT_GT(std::count(targets.begin(), targets.end(), last[0]), 0);
}

}  // namespace
}  // namespace pipelab
