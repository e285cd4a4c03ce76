#include "models/data/theorem_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kPartMark = "#*#*";

// The title of a comment that heads a part: the line between two lines of the mark. Else empty.
absl::string_view PartTitle(absl::string_view comment) {
  std::vector<absl::string_view> lines;
  for (absl::string_view line : absl::StrSplit(comment, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) lines.push_back(line);
    if (lines.size() == 3) break;
  }
  if (lines.size() < 3 || !absl::StartsWith(lines[0], kPartMark)) return "";
  return absl::StartsWith(lines[2], kPartMark) ? lines[1] : "";
}

class MetamathReader {
 public:
  MetamathReader(absl::string_view bytes, absl::string_view file)
      : bytes_(bytes), file_(file), words_(&text_.words), classes_(&text_.classes) {}

  absl::StatusOr<TextGraph> Read() && {
    text_.name = "theorems";
    absl::string_view last;
    for (absl::string_view token = Next(); !token.empty(); token = Next()) {
      if (token == "$(") {
        PIPELAB_RETURN_IF_ERROR(Comment());
      } else if (token == "$a" || token == "$p") {
        PIPELAB_RETURN_IF_ERROR(Statement(last));
      } else if (token == "$c" || token == "$v" || token == "$d" || token == "$e" ||
                 token == "$f") {
        PIPELAB_RETURN_IF_ERROR(Until("$.", nullptr));
      }
      last = token;
    }
    if (label_numbers_.empty()) return Error("no statements");
    PIPELAB_ASSIGN_OR_RETURN(
        text_.graph, CsrGraph::FromEdges(static_cast<int32_t>(text_.labels_V.size()), edges_));
    return std::move(text_);
  }

 private:
  // The next run of characters that are no blanks; empty at the end.
  absl::string_view Next() {
    while (at_ < bytes_.size() && absl::ascii_isspace(bytes_[at_])) ++at_;
    const size_t begin = at_;
    while (at_ < bytes_.size() && !absl::ascii_isspace(bytes_[at_])) ++at_;
    return bytes_.substr(begin, at_ - begin);
  }

  absl::Status Error(absl::string_view fault) const {
    return absl::DataLossError(absl::StrCat(file_, ": byte ", at_, ": ", fault));
  }

  absl::Status Comment() {
    const size_t end = bytes_.find("$)", at_);
    if (end == absl::string_view::npos) return Error("a comment has no $)");
    const absl::string_view title = PartTitle(bytes_.substr(at_, end - at_));
    if (!title.empty()) part_ = title;
    at_ = end + 2;
    return absl::OkStatus();
  }

  // Tokens up to `end`, without comments.
  absl::Status Until(absl::string_view end, std::vector<absl::string_view>* tokens) {
    for (absl::string_view token = Next(); token != end; token = Next()) {
      if (token.empty()) return Error(absl::StrCat("a statement has no ", end));
      if (token == "$(") {
        PIPELAB_RETURN_IF_ERROR(Comment());
      } else if (tokens != nullptr) {
        tokens->push_back(token);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Statement(absl::string_view label) {
    if (label.empty() || label[0] == '$') return Error("a statement without a label");
    const auto number = static_cast<int32_t>(text_.labels_V.size());
    if (!label_numbers_.insert({label, number}).second) {
      return Error(absl::StrCat("statement ", label, " comes a second time"));
    }
    std::vector<absl::string_view> tokens;
    PIPELAB_RETURN_IF_ERROR(Until("$.", &tokens));
    std::vector<int32_t> words;
    size_t i = 0;
    for (; i < tokens.size() && tokens[i] != "$="; ++i) words.push_back(words_.Of(tokens[i]));
    AddUses(number, tokens, i + 1);
    text_.words_V.push_back(std::move(words));
    text_.labels_V.push_back(classes_.Of(part_));
    return absl::OkStatus();
  }

  // A compressed proof names what it uses in parentheses; another one is such names alone. Labels
  // of hypotheses are no statements.
  void AddUses(int32_t number, const std::vector<absl::string_view>& tokens, size_t begin) {
    for (size_t i = begin; i < tokens.size(); ++i) {
      if (tokens[i] == ")") return;
      const auto it = label_numbers_.find(tokens[i]);
      if (it != label_numbers_.end()) edges_.push_back({number, it->second});
    }
  }

  const absl::string_view bytes_;
  const std::string file_;
  size_t at_ = 0;
  absl::string_view part_;
  TextGraph text_;
  NameNumbers words_, classes_;
  absl::flat_hash_map<absl::string_view, int32_t> label_numbers_;
  std::vector<std::pair<int32_t, int32_t>> edges_;
};

}  // namespace

const DebianPackage& MetamathPackage() {
  static const auto& package =
      *new DebianPackage{"metamath-databases", "0.0.0~20210101.git55fe226-2",
                         "c72523c221db6c1039fa909150f9c53fb9175809792f2e80e55e1baa965445a1"};
  return package;
}

absl::StatusOr<TextGraph> ParseMetamath(absl::string_view bytes, absl::string_view file) {
  return MetamathReader(bytes, file).Read();
}

absl::StatusOr<TextGraph> LoadTheoremGraph(absl::string_view package_dir) {
  const std::string path = JoinPath(package_dir, "usr/share/metamath/databases/set.mm");
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return ParseMetamath(bytes, path);
}

absl::StatusOr<TextGraph> FetchTheoremGraph(absl::string_view cache_dir,
                                            const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(MetamathPackage(), cache_dir, options));
  return LoadTheoremGraph(dir);
}

}  // namespace pipelab
