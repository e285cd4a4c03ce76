#include "models/data/mining_pool.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/data/example_order.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::vector<int32_t> Shuffled(size_t count, uint64_t seed, absl::string_view what) {
  std::vector<int32_t> order;
  if (count == 0) return order;
  const Shuffle shuffle(count, seed, absl::StrCat("data/mining/", what));
  for (size_t i = 0; i < count; ++i) order.push_back(static_cast<int32_t>(shuffle.At(i)));
  return order;
}

// Text, and the pair that it belongs to; -1 for none.
struct Line {
  std::string text;
  int32_t pair;
};

void AddLone(const std::vector<std::string>& texts, double most, uint64_t seed,
             absl::string_view what, std::vector<Line>* lines) {
  for (const int32_t place : Shuffled(texts.size(), seed, what)) {
    if (static_cast<double>(lines->size()) >= most) return;
    lines->push_back({texts[place], -1});
  }
}

// Shuffles the lines into a list; gives the place of each pair's.
std::vector<std::string> Mix(const std::vector<Line>& lines, uint64_t seed, absl::string_view what,
                             std::vector<int32_t>* place_of_pair) {
  std::vector<std::string> list;
  for (const int32_t line : Shuffled(lines.size(), seed, what)) {
    if (lines[line].pair >= 0) {
      (*place_of_pair)[lines[line].pair] = static_cast<int32_t>(list.size());
    }
    list.push_back(lines[line].text);
  }
  return list;
}

std::vector<absl::string_view> Lines(absl::string_view text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& file) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
  const std::vector<absl::string_view> lines = Lines(text);
  return std::vector<std::string>(lines.begin(), lines.end());
}

}  // namespace

MiningTask MakeMiningTask(const ParallelText& text, const MiningTaskOptions& options) {
  const std::vector<int32_t> order = Shuffled(text.pairs.size(), options.seed, "pairs");
  const size_t both = options.with_pairs ? order.size() / 2 : 0;
  const size_t sources = both + (order.size() - both) / 2;
  std::vector<Line> source, target;
  for (size_t i = 0; i < order.size(); ++i) {
    const TextPair& pair = text.pairs[order[i]];
    const int32_t number = i < both ? order[i] : -1;
    if (i < sources) source.push_back({pair.source, number});
    if (i < both || i >= sources) target.push_back({pair.target, number});
  }
  const double most = (1 + options.wrong) * static_cast<double>(both);
  AddLone(text.lone_sources, most, options.seed, "lone sources", &source);
  AddLone(text.lone_targets, most, options.seed, "lone targets", &target);
  MiningTask task;
  std::vector<int32_t> source_place(text.pairs.size(), -1), target_place = source_place;
  task.pool.source = Mix(source, options.seed, "sources", &source_place);
  task.pool.target = Mix(target, options.seed, "targets", &target_place);
  for (size_t p = 0; p < source_place.size(); ++p) {
    if (source_place[p] >= 0) task.truth.emplace_back(source_place[p], target_place[p]);
  }
  std::sort(task.truth.begin(), task.truth.end());
  return task;
}

absl::Status WriteMiningTask(const MiningTask& task, const std::string& folder) {
  const auto lines = [](const auto& list) { return absl::StrCat(absl::StrJoin(list, "\n"), "\n"); };
  std::vector<std::string> truth;
  for (const auto& [x, y] : task.truth) truth.push_back(absl::StrCat(x, " ", y));
  PIPELAB_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(folder, "source.txt"), lines(task.pool.source)));
  PIPELAB_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(folder, "target.txt"), lines(task.pool.target)));
  return WriteFileAtomically(JoinPath(folder, "truth.txt"), lines(truth));
}

absl::StatusOr<MiningPool> ReadMiningPool(const std::string& folder) {
  MiningPool pool;
  PIPELAB_ASSIGN_OR_RETURN(pool.source, ReadLines(JoinPath(folder, "source.txt")));
  PIPELAB_ASSIGN_OR_RETURN(pool.target, ReadLines(JoinPath(folder, "target.txt")));
  return pool;
}

absl::StatusOr<MiningTruth> ParseMiningTruth(absl::string_view contents, absl::string_view file) {
  MiningTruth truth;
  for (const absl::string_view line : Lines(contents)) {
    const std::pair<absl::string_view, absl::string_view> places =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    std::pair<int32_t, int32_t> pair;
    const bool numbers = absl::SimpleAtoi(places.first, &pair.first) &&
                         absl::SimpleAtoi(places.second, &pair.second) && pair.first >= 0 &&
                         pair.second >= 0;
    if (!numbers || (!truth.empty() && pair <= truth.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": line ", truth.size() + 1, ": \"", absl::CHexEscape(line),
                       "\": must be two places from 0, above those of the line before"));
    }
    truth.push_back(pair);
  }
  return truth;
}

absl::StatusOr<MiningTruth> ReadMiningTruth(const std::string& folder) {
  const std::string file = JoinPath(folder, "truth.txt");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
  return FaultOfFile(ParseMiningTruth(text, file));
}

}  // namespace pipelab
