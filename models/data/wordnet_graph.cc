#include "models/data/wordnet_graph.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kFileNames[] = {"data.noun", "data.verb", "data.adj", "data.adv"};

// The file of a part of speech; -1: there is none.
int FileOf(absl::string_view part_of_speech) {
  if (part_of_speech == "n") return 0;
  if (part_of_speech == "v") return 1;
  if (part_of_speech == "a" || part_of_speech == "s") return 2;
  return part_of_speech == "r" ? 3 : -1;
}

using SynsetKey = std::pair<int, uint32_t>;  // file, offset in it

class WordNetReader {
 public:
  WordNetReader() : words_(&text_.words), classes_(&text_.classes) { text_.name = "wordnet"; }

  absl::Status ReadFileLines(int file, absl::string_view bytes) {
    int64_t line_number = 0;
    for (absl::string_view line : absl::StrSplit(bytes, '\n')) {
      ++line_number;
      if (line.empty() || line[0] == ' ') continue;  // the licence
      const absl::Status status = ReadSynset(file, line);
      if (!status.ok()) {
        return absl::DataLossError(
            absl::StrCat(kFileNames[file], ": line ", line_number, ": ", status.message()));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TextGraph> Finish() && {
    if (numbers_.empty()) return absl::DataLossError("data.noun: no synsets");
    std::vector<std::pair<int32_t, int32_t>> edges;
    for (const auto& [from, to] : pointers_) {
      const auto it = numbers_.find(to);
      if (it == numbers_.end()) {
        return absl::DataLossError(absl::StrCat(kFileNames[to.first], ": no synset at ", to.second,
                                                ", where one points to"));
      }
      edges.push_back({from, it->second});
    }
    PIPELAB_ASSIGN_OR_RETURN(
        text_.graph, CsrGraph::FromEdges(static_cast<int32_t>(text_.labels_V.size()), edges));
    return std::move(text_);
  }

 private:
  // offset file_number type word_count (word id)* pointer_count (symbol offset pos source/target)*
  // [frames] | gloss
  absl::Status ReadSynset(int file, absl::string_view line) {
    const size_t bar = line.find('|');
    if (bar == absl::string_view::npos) return absl::DataLossError("no gloss behind |");
    const std::vector<absl::string_view> f =
        absl::StrSplit(line.substr(0, bar), ' ', absl::SkipEmpty());
    uint32_t offset = 0, words = 0, pointers = 0;
    if (f.size() < 4 || !absl::SimpleAtoi(f[0], &offset) || !absl::SimpleHexAtoi(f[3], &words)) {
      return absl::DataLossError("must begin with offset, file, type and number of words");
    }
    const size_t at = 4 + size_t{2} * words;
    if (words > 255 || f.size() <= at || !absl::SimpleAtoi(f[at], &pointers) ||
        (f.size() - at - 1) / 4 < pointers) {
      return absl::DataLossError(
          absl::StrCat(f.size(), " fields are too few for ", words, " words and their pointers"));
    }
    const auto number = static_cast<int32_t>(text_.labels_V.size());
    if (!numbers_.insert({{file, offset}, number}).second) {
      return absl::DataLossError(absl::StrCat("synset ", offset, " comes a second time"));
    }
    for (size_t p = 0; p < pointers; ++p) {
      const absl::string_view* pointer = &f[at + 1 + 4 * p];
      uint32_t to = 0;
      const int to_file = FileOf(pointer[2]);
      if (to_file < 0 || !absl::SimpleAtoi(pointer[1], &to)) {
        return absl::DataLossError(
            absl::StrCat("pointer to ", pointer[1], " ", pointer[2], ": no synset"));
      }
      pointers_.push_back({number, {to_file, to}});
    }
    text_.labels_V.push_back(classes_.Of(f[1]));
    text_.words_V.push_back(WordsOf(line.substr(bar + 1)));
    return absl::OkStatus();
  }

  // Runs of letters, in small ones.
  std::vector<int32_t> WordsOf(absl::string_view gloss) {
    std::vector<int32_t> words;
    std::string word;
    for (size_t i = 0; i <= gloss.size(); ++i) {
      if (i < gloss.size() && absl::ascii_isalpha(gloss[i])) {
        word.push_back(absl::ascii_tolower(gloss[i]));
      } else if (!word.empty()) {
        words.push_back(words_.Of(word));
        word.clear();
      }
    }
    return words;
  }

  TextGraph text_;
  NameNumbers words_, classes_;
  absl::flat_hash_map<SynsetKey, int32_t> numbers_;
  std::vector<std::pair<int32_t, SynsetKey>> pointers_;
};

}  // namespace

const DebianPackage& WordNetPackage() {
  static const auto& package =
      *new DebianPackage{"wordnet-base", "1:3.0-37",
                         "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752"};
  return package;
}

absl::StatusOr<TextGraph> ParseWordNet(const WordNetFiles& files) {
  WordNetReader reader;
  for (int file = 0; file < 4; ++file) {
    PIPELAB_RETURN_IF_ERROR(reader.ReadFileLines(file, files[file]));
  }
  return std::move(reader).Finish();
}

absl::StatusOr<TextGraph> LoadWordNetGraph(absl::string_view package_dir) {
  WordNetFiles files;
  for (int file = 0; file < 4; ++file) {
    const std::string path = JoinPath(JoinPath(package_dir, "usr/share/wordnet"), kFileNames[file]);
    PIPELAB_ASSIGN_OR_RETURN(files[file], ReadFile(path));
  }
  return ParseWordNet(files);
}

absl::StatusOr<TextGraph> FetchWordNetGraph(absl::string_view cache_dir,
                                            const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(WordNetPackage(), cache_dir, options));
  return LoadWordNetGraph(dir);
}

}  // namespace pipelab
