#include "models/data/movielens.h"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "models/data/r_columns.h"
#include "models/data/r_serialization.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct Columns {
  std::vector<double> film, year, user, stars, time;
  std::vector<std::string> title, genres;
};

absl::StatusOr<Columns> ReadColumns(const RValue& frame, absl::string_view what) {
  Columns c;
  PIPELAB_ASSIGN_OR_RETURN(c.film, NumberColumn(frame, "movieId", what));
  PIPELAB_ASSIGN_OR_RETURN(c.title, StringColumn(frame, "title", what));
  PIPELAB_ASSIGN_OR_RETURN(c.year, NumberColumn(frame, "year", what));
  PIPELAB_ASSIGN_OR_RETURN(c.genres, StringColumn(frame, "genres", what));
  PIPELAB_ASSIGN_OR_RETURN(c.user, NumberColumn(frame, "userId", what));
  PIPELAB_ASSIGN_OR_RETURN(c.stars, NumberColumn(frame, "rating", what));
  PIPELAB_ASSIGN_OR_RETURN(c.time, NumberColumn(frame, "timestamp", what));
  for (const size_t n : {c.title.size(), c.year.size(), c.genres.size(), c.user.size(),
                         c.stars.size(), c.time.size()}) {
    if (n == c.film.size()) continue;
    return absl::DataLossError(
        absl::StrCat(what, ": columns of ", c.film.size(), " and of ", n, " rows"));
  }
  if (c.film.empty()) return absl::DataLossError(absl::StrCat(what, ": no rows"));
  return c;
}

absl::Status CheckRow(const Columns& c, size_t i, absl::string_view what) {
  const auto whole = [](double v) { return v >= 0 && v < 4e9 && v == std::floor(v); };
  const bool stars = c.stars[i] >= 0.5 && c.stars[i] <= 5;
  if (whole(c.film[i]) && whole(c.user[i]) && whole(c.time[i]) && stars) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s: row %d: film %.15g, user %.15g, time %.15g, %g stars: ids and times are whole, "
      "stars from 0.5 to 5",
      what, i + 1, c.film[i], c.user[i], c.time[i], c.stars[i]));
}

// Distinct values -> their numbers, ascending.
template <typename T>
std::map<T, int32_t> Numbering(const std::vector<T>& values) {
  std::map<T, int32_t> number;
  for (const T& v : values) number[v] = 0;
  int32_t next = 0;
  for (auto& entry : number) entry.second = next++;
  return number;
}

}  // namespace

const DebianPackage& DslabsPackage() {
  static const auto& package =
      *new DebianPackage{"r-cran-dslabs", "0.7.4-1",
                         "c3f93382c44d4581de9561792a87b110cb239c70771cac5ad63fa0a259e71ef3"};
  return package;
}

absl::StatusOr<RatingTable> MovieLensFromFrame(const RValue& frame, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const Columns c, ReadColumns(frame, what));
  for (size_t i = 0; i < c.film.size(); ++i) PIPELAB_RETURN_IF_ERROR(CheckRow(c, i, what));
  std::vector<std::string> all_genres;
  for (const std::string& genres : std::set<std::string>(c.genres.begin(), c.genres.end())) {
    for (const absl::string_view g : absl::StrSplit(genres, '|')) all_genres.emplace_back(g);
  }
  const auto genre_number = Numbering(all_genres);
  const auto films = Numbering(c.film), users = Numbering(c.user);
  RatingTable table;
  table.name = "movielens";
  table.users = static_cast<int32_t>(users.size());
  table.films.resize(films.size());
  for (const auto& entry : genre_number) table.genres.push_back(entry.first);
  for (size_t i = 0; i < c.film.size(); ++i) {
    const Rating rating = {users.at(c.user[i]), films.at(c.film[i]), static_cast<float>(c.stars[i]),
                           static_cast<int64_t>(c.time[i])};
    Film& film = table.films[rating.film];
    if (film.genres.empty()) {  // its first row
      film.title = c.title[i];
      film.year = c.year[i] > 0 && c.year[i] < 10000 ? static_cast<int32_t>(c.year[i]) : 0;
      std::set<int32_t> genres;
      for (const absl::string_view g : absl::StrSplit(c.genres[i], '|')) {
        genres.insert(genre_number.at(std::string(g)));
      }
      film.genres.assign(genres.begin(), genres.end());
    }
    table.ratings.push_back(rating);
  }
  return table;
}

absl::StatusOr<RatingTable> LoadMovieLens(absl::string_view package_dir) {
  const std::string base = JoinPath(package_dir, "usr/lib/R/site-library/dslabs/data/Rdata");
  PIPELAB_ASSIGN_OR_RETURN(const RLazyLoad store, RLazyLoad::Open(base));
  PIPELAB_ASSIGN_OR_RETURN(const RValue frame, store.Read("movielens"));
  return MovieLensFromFrame(frame, absl::StrCat(base, ".rdb: 'movielens'"));
}

absl::StatusOr<RatingTable> FetchMovieLens(absl::string_view cache_dir,
                                           const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(DslabsPackage(), cache_dir, options));
  return LoadMovieLens(dir);
}

}  // namespace pipelab
