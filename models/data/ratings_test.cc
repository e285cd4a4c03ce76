// Ratings: split, bias model, features without leaks, batches; the MovieLens table, made and real.
// The real one, where it is in the cache:
//   bazel run //models/data:fetch && bazel test --test_env=PIPELAB_DATA=$HOME/.cache/pipelab/data
//   //models/data:data_test
#include "models/data/ratings.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/metrics.h"
#include "models/data/movielens.h"
#include "models/data/r_serialization.h"
#include "models/data/r_test_writer.h"
#include "models/data/rating_batches.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Features = RatingFeatures;

TEST(SplitRatings, ATenthBySeedAndPlace) {
  const RatingTable table = SyntheticRatings(50, 80, 20000, 1);
  const RatingSplit a = SplitRatings(table, 1), b = SplitRatings(table, 1);
  EXPECT_EQ(a.train, b.train);
  EXPECT_EQ(a.train.size() + a.held_out.size(), 20000u);
  EXPECT_NEAR(static_cast<double>(a.held_out.size()), 2000, 5 * std::sqrt(1800));
  EXPECT_NE(a.held_out, SplitRatings(table, 2).held_out);
}

RatingTable SmallTable() {
  RatingTable table;
  table.users = 2;
  table.films = {{"A", 1950, {0}}, {"B", 0, {0, 1}}, {"C", 1960, {1}}};
  table.genres = {"x", "y"};
  //                user film stars time
  table.ratings = {{0, 0, 5, 10}, {0, 1, 1, 20}, {0, 2, 4, 30}, {1, 0, 3, 5},
                   {1, 2, 5, 40}, {0, 0, 4, 50}, {1, 1, 4, 20}};
  return table;
}

TEST(BiasModel, ByHand) {
  // Training: user 0 likes A, not B; user 1 likes C. Mean 2/3.
  const BiasModel model(SmallTable(), {0, 1, 4}, 1);
  const double mean = 2.0 / 3, a = (1 - mean) / 2, b = (0 - mean) / 2, c = (1 - mean) / 2;
  const double user0 = ((1 - mean - a) + (0 - mean - b)) / 3, user1 = (1 - mean - c) / 2;
  EXPECT_NEAR(model.Score(0, 0), mean + a + user0, 1e-12);
  EXPECT_NEAR(model.Score(0, 2), mean + c + user0, 1e-12);
  EXPECT_NEAR(model.Score(1, 1), mean + b + user1, 1e-12);
}

TEST(BiasModel, BeatsChanceOnSyntheticRatings) {
  const RatingTable table = SyntheticRatings(100, 200, 20000, 1);
  const RatingSplit split = SplitRatings(table, 1);
  const double auc = AreaUnderRoc(BiasModel(table, split.train), table, split.held_out);
  EXPECT_GT(auc, 0.6);
  EXPECT_LT(auc, 0.85);  // tastes are left for a better model
}

TEST(RatingFeatures, BagsKnowOnlyTheTrainingPast) {
  const Features features(SmallTable(), {0, 1, 2, 3, 4, 6}, RatingOptions());
  EXPECT_THAT(features.IdsOf(Features::kUser, 5), ElementsAre(0));
  EXPECT_THAT(features.IdsOf(Features::kFilm, 4), ElementsAre(2));
  EXPECT_THAT(features.IdsOf(Features::kYear, 1), ElementsAre(0));  // not known
  EXPECT_THAT(features.IdsOf(Features::kYear, 4), ElementsAre(11));
  EXPECT_THAT(features.IdsOf(Features::kGenres, 1), ElementsAre(0, 1));
  // User 0 at time 50: liked C (30) and A (10), not B (20). The latest first.
  EXPECT_THAT(features.IdsOf(Features::kLikedFilms, 5), ElementsAre(2, 0));
  EXPECT_THAT(features.IdsOf(Features::kDislikedFilms, 5), ElementsAre(1));
  EXPECT_THAT(features.IdsOf(Features::kFans, 5), ElementsAre(0));
  EXPECT_THAT(features.IdsOf(Features::kFans, 4), ElementsAre(0));
  // At time 20 not what happens at 20 or later, nor the rating itself.
  EXPECT_THAT(features.IdsOf(Features::kLikedFilms, 1), ElementsAre(0));
  EXPECT_THAT(features.IdsOf(Features::kFans, 6), IsEmpty());
  EXPECT_THAT(features.IdsOf(Features::kLikedFilms, 0), IsEmpty());
  // Rating 5 is held out: nothing sees it.
  const Features none(SmallTable(), {3}, RatingOptions());
  EXPECT_THAT(none.IdsOf(Features::kLikedFilms, 5), IsEmpty());
}

TEST(RatingFeatures, HistoryIsBounded) {
  RatingOptions options;
  options.history = 1;
  const Features features(SmallTable(), {0, 1, 2, 3, 4, 6}, options);
  EXPECT_THAT(features.IdsOf(Features::kLikedFilms, 5), ElementsAre(2));
}

TEST(RatingFeatures, HeldOutStarsAreSeenNowhere) {
  const RatingTable table = SyntheticRatings(20, 30, 400, 1);
  const RatingSplit split = SplitRatings(table, 1);
  RatingTable other = table;
  for (const int64_t i : split.held_out) other.ratings[i].stars = 5.5f - other.ratings[i].stars;
  const Features a(table, split.train, RatingOptions()), b(other, split.train, RatingOptions());
  std::vector<float> x(Features::kNumDense), y(Features::kNumDense);
  for (int64_t i = 0; i < 400; ++i) {
    a.Dense(i, absl::MakeSpan(x));
    b.Dense(i, absl::MakeSpan(y));
    EXPECT_EQ(x, y);
    for (int bag = 0; bag < Features::kNumBags; ++bag) {
      EXPECT_EQ(a.IdsOf(static_cast<Features::Bag>(bag), i),
                b.IdsOf(static_cast<Features::Bag>(bag), i));
    }
  }
}

TEST(RatingFeatures, ATrainingRatingDoesNotTellItsOwnStars) {
  const RatingTable table = SyntheticRatings(20, 30, 400, 1);
  const RatingSplit split = SplitRatings(table, 1);
  for (const int64_t own : split.train) {
    RatingTable other = table;
    other.ratings[own].stars = table.ratings[own].liked() ? 1 : 5;
    const Features a(table, split.train, RatingOptions()), b(other, split.train, RatingOptions());
    std::vector<float> x(Features::kNumDense), y(Features::kNumDense);
    a.Dense(own, absl::MakeSpan(x));
    b.Dense(own, absl::MakeSpan(y));
    for (int64_t k = 0; k < Features::kNumDense; ++k) {
      // Shares are drawn to the mean of all, which moves by 1 / 360.
      EXPECT_NEAR(x[k], y[k], k == 3 || k == 5 ? 4.0 / 300 : 0) << k;
    }
    for (int bag = 0; bag < Features::kNumBags; ++bag) {
      EXPECT_EQ(a.IdsOf(static_cast<Features::Bag>(bag), own),
                b.IdsOf(static_cast<Features::Bag>(bag), own));
    }
  }
}

TEST(RatingBatchSource, FieldsOfASample) {
  const RatingTable table = SmallTable();
  RatingOptions options;
  options.history = 3;
  const auto features =
      std::make_shared<const Features>(table, std::vector<int64_t>{0, 1, 2, 3, 4, 6}, options);
  const RatingBatchSource source(features, {5, 3}, ExampleOrder(2));
  ASSERT_EQ(source.fields().size(), 9u);
  EXPECT_EQ(source.Field("film"), (DataField{"film", FieldType::kId, {1}, 3}));
  EXPECT_EQ(source.Field("year"), (DataField{"year", FieldType::kId, {1}, 12}));
  EXPECT_EQ(source.Field("genres"), (DataField{"genres", FieldType::kId, {10}, 2, true}));
  EXPECT_EQ(source.Field("fans"), (DataField{"fans", FieldType::kId, {3}, 2, true}));
  std::vector<int32_t> ids(6);
  std::vector<float> targets(2), dense(16);
  source.FillIds(source.FindField("liked"), 0, 0, absl::MakeSpan(ids));
  EXPECT_THAT(ids, ElementsAre(2, 0, kNoData, kNoData, kNoData, kNoData));
  source.FillFloats(source.FindField(kTargets), 0, 0, absl::MakeSpan(targets));
  EXPECT_THAT(targets, ElementsAre(1, 0));
  source.FillFloats(0, 0, 0, absl::MakeSpan(dense));
  std::vector<float> want(8);
  features->Dense(5, absl::MakeSpan(want));
  EXPECT_TRUE(std::equal(want.begin(), want.end(), dense.begin()));
}

// Every id of every field is below its limit, those that are missing are the last of their bag, and
// dense numbers are of unit size.
void ExpectInBounds(const RatingTable& table) {
  const RatingSplit split = SplitRatings(table, 1);
  const auto features = std::make_shared<const Features>(table, split.train, RatingOptions());
  const int64_t n = static_cast<int64_t>(split.held_out.size());
  const RatingBatchSource source(features, split.held_out, ExampleOrder(n));
  for (size_t f = 0; f < source.fields().size(); ++f) {
    const DataField& field = source.fields()[f];
    if (field.type == FieldType::kId) {
      std::vector<int32_t> ids(n * field.size());
      source.FillIds(static_cast<int>(f), 0, 0, absl::MakeSpan(ids));
      for (int64_t i = 0; i < n * field.size(); ++i) {
        ASSERT_TRUE(ids[i] >= (field.padded ? kNoData : 0) && ids[i] < field.limit) << field.name;
        const bool behind = i % field.size() > 0 && ids[i - 1] == kNoData;
        ASSERT_TRUE(!behind || ids[i] == kNoData) << field.name;
      }
    } else {
      std::vector<float> numbers(n * field.size());
      source.FillFloats(static_cast<int>(f), 0, 0, absl::MakeSpan(numbers));
      for (const float v : numbers) EXPECT_LT(std::abs(v), 8) << field.name;
    }
  }
}

TEST(RatingBatchSource, AllInBounds) { ExpectInBounds(SyntheticRatings(30, 40, 2000, 1)); }

// The data frame of MovieLens with two ratings.
RValue Frame(double second_rating, const std::string& second_genres,
             const char* last = "timestamp") {
  RWriter w;
  w.Begin(3).List(7, RWriter::kHasAttributes);
  w.Integers({31, 7}).Strings({"Dangerous Minds", "Sabrina"}).Integers({1995, kRMissingInteger});
  w.Integers({2, 1}, RWriter::kHasAttributes);
  w.Cell("levels").Strings({second_genres, "Drama"}).Cell("class").Strings({"factor"}).Null();
  w.Integers({9, 4}).Doubles({2.5, second_rating}).Integers({1260759144, 1260759179});
  w.Cell("names").Strings({"movieId", "title", "year", "genres", "userId", "rating", last}).Null();
  auto value = ReadRSerialized(w.bytes(), "frame");
  EXPECT_THAT(value, IsOk());
  return *std::move(value);
}

TEST(MovieLens, ReadsTheFrame) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RatingTable table,
                               MovieLensFromFrame(Frame(4, "Comedy|Drama"), "f"));
  EXPECT_EQ(table.name, "movielens");
  EXPECT_EQ(table.users, 2);
  EXPECT_THAT(table.genres, ElementsAre("Comedy", "Drama"));
  EXPECT_EQ(table.films[0].title, "Sabrina");
  EXPECT_EQ(table.films[0].year, 0);
  EXPECT_THAT(table.films[0].genres, ElementsAre(0, 1));
  EXPECT_EQ(table.films[1].year, 1995);
  EXPECT_THAT(table.films[1].genres, ElementsAre(1));
  EXPECT_EQ(table.ratings[0].user, 1);
  EXPECT_EQ(table.ratings[0].film, 1);
  EXPECT_FALSE(table.ratings[0].liked());
  EXPECT_TRUE(table.ratings[1].liked());
  EXPECT_EQ(table.ratings[1].time, 1260759179);
}

TEST(MovieLens, DamageIsNamed) {
  const auto expect = [](const RValue& frame, const char* words) {
    EXPECT_THAT(MovieLensFromFrame(frame, "f"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(words)));
  };
  expect(Frame(6, "Drama|War"), "f: row 2: film 7, user 4, time 1260759179, 6 stars");
  expect(Frame(std::nan(""), "War"), "row 2");
  expect(Frame(4, "War", "when"), "column 'timestamp' is not there");
  RValue frame = Frame(4, "War");
  frame.elements[5].doubles.pop_back();
  expect(frame, "columns of 2 and of 1 rows");
  frame = Frame(4, "War");
  frame.elements[0] = frame.elements[3];
  expect(frame, "column 'movieId' is integer, not numbers");
  EXPECT_FALSE(LoadMovieLens("/no/such").ok());
}

TEST(MovieLens, RealTable) {
  const auto dir = FindDebianPackage(DslabsPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) {
    GTEST_SKIP() << dir.status().message() << "; see the top of this file";
  }
  ASSERT_THAT(dir, IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RatingTable table, LoadMovieLens(*dir));
  EXPECT_EQ(table.ratings.size(), 100004u);
  EXPECT_EQ(table.users, 671);
  EXPECT_EQ(table.films.size(), 9066u);
  EXPECT_EQ(table.genres.size(), 20u);
  const RatingSplit split = SplitRatings(table, 1);
  EXPECT_NEAR(AreaUnderRoc(BiasModel(table, split.train), table, split.held_out), 0.772, 0.02);
  ExpectInBounds(table);
}

}  // namespace
}  // namespace pipelab
