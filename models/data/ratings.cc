#include "models/data/ratings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/data/metrics.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int kTastes = 4;
constexpr uint64_t kHeldOutRatingOneIn = 10;

}  // namespace

RatingTable SyntheticRatings(int32_t users, int32_t films, int64_t ratings, uint64_t seed) {
  RatingTable table;
  table.name = "synthetic";
  table.users = users;
  table.genres = {"g0", "g1", "g2", "g3"};
  const CounterRng user_taste(seed, "data/synthetic/users"),
      film_taste(seed, "data/synthetic/films");
  for (int32_t f = 0; f < films; ++f) {
    Film film;
    film.title = absl::StrCat("film ", f);
    film.year = 1950 + static_cast<int32_t>(film_taste.Below(8 * f + 6, 60));
    for (int32_t g = 0; g < kTastes; ++g) {
      if (film_taste.Normal(8 * f + g) > 0.5f) film.genres.push_back(g);
    }
    table.films.push_back(std::move(film));
  }
  const CounterRng rng(seed, "data/synthetic/ratings");
  for (int64_t i = 0; i < ratings; ++i) {
    Rating r;
    r.user = static_cast<int32_t>(rng.Below(4 * i, users));
    r.film = static_cast<int32_t>(rng.Below(4 * i + 1, films));
    double liking = 0.7 * (user_taste.Normal(8 * r.user + 5) + film_taste.Normal(8 * r.film + 5)) +
                    0.5 * rng.Normal(4 * i + 2);
    for (int k = 0; k < kTastes; ++k) {
      liking += 0.7 * user_taste.Normal(8 * r.user + k) * film_taste.Normal(8 * r.film + k);
    }
    r.stars = static_cast<float>(std::clamp(3.75 + liking, 0.5, 5.0));
    r.time = 1000000000 + 1000 * i;
    table.ratings.push_back(r);
  }
  return table;
}

RatingSplit SplitRatings(const RatingTable& table, uint64_t seed) {
  const CounterRng rng(seed, "data/ratings/split");
  RatingSplit split;
  for (size_t i = 0; i < table.ratings.size(); ++i) {
    const bool held_out = rng.Below(i, kHeldOutRatingOneIn) == 0;
    (held_out ? split.held_out : split.train).push_back(static_cast<int64_t>(i));
  }
  return split;
}

BiasModel::BiasModel(const RatingTable& table, const std::vector<int64_t>& train, double shrink)
    : user_(table.users), film_(table.films.size()) {
  for (const int64_t i : train) mean_ += table.ratings[i].liked();
  mean_ /= static_cast<double>(std::max<size_t>(train.size(), 1));
  std::vector<double> users(table.users, shrink), films(table.films.size(), shrink);  // counts
  for (const int64_t i : train) {
    const Rating& r = table.ratings[i];
    film_[r.film] += r.liked() - mean_;
    ++films[r.film];
    ++users[r.user];
  }
  for (size_t f = 0; f < film_.size(); ++f) film_[f] /= std::max(films[f], 1.0);
  for (const int64_t i : train) {
    const Rating& r = table.ratings[i];
    user_[r.user] += r.liked() - mean_ - film_[r.film];
  }
  for (size_t u = 0; u < user_.size(); ++u) user_[u] /= std::max(users[u], 1.0);
}

double AreaUnderRoc(const BiasModel& model, const RatingTable& table,
                    const std::vector<int64_t>& ratings) {
  std::vector<float> scores;
  std::vector<uint8_t> labels;
  for (const int64_t i : ratings) {
    const Rating& r = table.ratings[i];
    scores.push_back(static_cast<float>(model.Score(r.user, r.film)));
    labels.push_back(r.liked());
  }
  return AreaUnderRoc(scores, labels);
}

}  // namespace pipelab
