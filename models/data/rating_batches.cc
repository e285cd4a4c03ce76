#include "models/data/rating_batches.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "glog/logging.h"

namespace pipelab {
namespace {

constexpr const char* kBagNames[RatingFeatures::kNumBags] = {"user",  "film",     "year", "genres",
                                                             "liked", "disliked", "fans"};
constexpr double kSecondsPerYear = 365.25 * 24 * 3600;

double YearOf(int64_t time) { return 1970 + static_cast<double>(time) / kSecondsPerYear; }

}  // namespace

RatingFeatures::RatingFeatures(const RatingTable& table, const std::vector<int64_t>& train,
                               const RatingOptions& options)
    : ratings_(table.ratings),
      films_(table.films),
      options_(options),
      num_genres_(static_cast<int32_t>(table.genres.size())),
      in_train_(table.ratings.size()),
      users_seen_(table.users),
      films_seen_(table.films.size()) {
  CHECK(!train.empty());
  for (const Film& film : films_) {
    if (film.year == 0) continue;
    first_year_ = first_year_ == 0 ? film.year : std::min(first_year_, film.year);
    last_year_ = std::max(last_year_, film.year);
  }
  double squares = 0;
  for (const int64_t i : train) {
    const Rating& r = ratings_[i];
    in_train_[i] = true;
    for (Seen* seen : {&users_seen_[r.user], &films_seen_[r.film]}) {
      seen->ratings.push_back(i);
      seen->liked += r.liked();
    }
    mean_liked_ += r.liked();
    mean_time_ += static_cast<double>(r.time);
  }
  const double n = static_cast<double>(train.size());
  mean_liked_ /= n;
  mean_time_ /= n;
  for (const int64_t i : train) squares += std::pow(ratings_[i].time - mean_time_, 2);
  time_deviation_ = std::max(std::sqrt(squares / n), 1.0);
  for (std::vector<Seen>* all : {&users_seen_, &films_seen_}) {
    for (Seen& seen : *all) {
      std::stable_sort(seen.ratings.begin(), seen.ratings.end(),
                       [&](int64_t a, int64_t b) { return ratings_[a].time < ratings_[b].time; });
    }
  }
}

std::vector<DataField> RatingFeatures::Fields() const {
  const int64_t users = static_cast<int64_t>(users_seen_.size());
  const int64_t films = static_cast<int64_t>(films_.size());
  const int64_t years = last_year_ - first_year_ + 2;  // and one for those not known
  const int64_t limits[kNumBags] = {users, films, years, num_genres_, films, films, users};
  std::vector<DataField> fields = {{kDenseFeatures, FieldType::kFloat, {kNumDense}}};
  for (int bag = 0; bag < kNumBags; ++bag) {
    const int64_t size = bag < kGenres ? 1 : bag == kGenres ? kMostGenres : options_.history;
    fields.push_back({kBagNames[bag], FieldType::kId, {size}, limits[bag], bag >= kGenres});
  }
  fields.push_back({kTargets, FieldType::kFloat, {1}});
  return fields;
}

int64_t RatingFeatures::Count(const Seen& seen, int64_t rating) const {
  return static_cast<int64_t>(seen.ratings.size()) - (in_train_[rating] ? 1 : 0);
}

// Drawn to the mean of all where there are few, as in BiasModel.
double RatingFeatures::LikedShare(const Seen& seen, int64_t rating) const {
  const double liked =
      static_cast<double>(seen.liked - (in_train_[rating] && ratings_[rating].liked() ? 1 : 0));
  const double count = static_cast<double>(Count(seen, rating)) + BiasModel::kShrink;
  return (liked + BiasModel::kShrink * mean_liked_) / count;
}

void RatingFeatures::Dense(int64_t rating, absl::Span<float> out) const {
  const Rating& r = ratings_[rating];
  const Film& film = films_[r.film];
  const Seen& user_seen = users_seen_[r.user];
  const Seen& film_seen = films_seen_[r.film];
  const bool known = film.year != 0;
  const double values[kNumDense] = {
      known ? (film.year - 1990) / 20.0 : 0,
      known ? (YearOf(r.time) - film.year) / 20.0 : 0,
      std::log1p(static_cast<double>(Count(film_seen, rating))) / 3 - 1,
      4 * (LikedShare(film_seen, rating) - mean_liked_),
      std::log1p(static_cast<double>(Count(user_seen, rating))) / 3 - 1,
      4 * (LikedShare(user_seen, rating) - mean_liked_),
      (static_cast<double>(r.time) - mean_time_) / time_deviation_,
      static_cast<double>(film.genres.size()) / 2 - 1,
  };
  std::copy(values, values + kNumDense, out.begin());
}

// The latest training ratings made before this one, of the wanted kind: their films or their users.
std::vector<int32_t> RatingFeatures::Before(const Seen& seen, int64_t rating, bool liked,
                                            bool films) const {
  const auto end =
      std::lower_bound(seen.ratings.begin(), seen.ratings.end(), ratings_[rating].time,
                       [&](int64_t i, int64_t time) { return ratings_[i].time < time; });
  std::vector<int32_t> ids;
  for (auto it = end; it != seen.ratings.begin();) {
    const Rating& r = ratings_[*--it];
    if (static_cast<int64_t>(ids.size()) == options_.history) break;
    if (r.liked() == liked) ids.push_back(films ? r.film : r.user);
  }
  return ids;
}

std::vector<int32_t> RatingFeatures::IdsOf(Bag bag, int64_t rating) const {
  const Rating& r = ratings_[rating];
  const Film& film = films_[r.film];
  switch (bag) {
    case kUser:
      return {r.user};
    case kFilm:
      return {r.film};
    case kYear:
      return {film.year == 0 ? 0 : film.year - first_year_ + 1};
    case kGenres: {
      const size_t n = std::min<size_t>(film.genres.size(), kMostGenres);
      return {film.genres.begin(), film.genres.begin() + static_cast<std::ptrdiff_t>(n)};
    }
    case kLikedFilms:
      return Before(users_seen_[r.user], rating, true, true);
    case kDislikedFilms:
      return Before(users_seen_[r.user], rating, false, true);
    case kFans:
      return Before(films_seen_[r.film], rating, true, false);
    case kNumBags:
      break;
  }
  LOG(FATAL) << "bag " << bag;
}

RatingBatchSource::RatingBatchSource(std::shared_ptr<const RatingFeatures> features,
                                     std::vector<int64_t> ratings, ExampleOrder order)
    : ExampleSource(features->Fields(), std::move(order)),
      features_(std::move(features)),
      ratings_(std::move(ratings)) {
  CHECK_EQ(examples(), static_cast<int64_t>(ratings_.size()));
  for (const int64_t i : ratings_) CHECK(i >= 0 && i < features_->ratings());
}

void RatingBatchSource::WriteFloats(int field, const Draw& draw, absl::Span<float> out) const {
  const int64_t rating = ratings_[draw.example];
  if (field == 0) {
    features_->Dense(rating, out);
  } else {
    out[0] = features_->rating(rating).liked() ? 1.0f : 0.0f;
  }
}

void RatingBatchSource::WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const {
  const auto bag = static_cast<RatingFeatures::Bag>(field - 1);
  const std::vector<int32_t> ids = features_->IdsOf(bag, ratings_[draw.example]);
  std::fill(std::copy(ids.begin(), ids.end(), out.begin()), out.end(), kNoData);
}

}  // namespace pipelab
