#include "models/data/austen.h"

#include "absl/strings/str_cat.h"
#include "models/data/r_serialization.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct Novel {
  const char* variable;
  const char* title;
};
constexpr Novel kNovels[] = {
    {"sensesensibility", "Sense and Sensibility"}, {"prideprejudice", "Pride and Prejudice"},
    {"mansfieldpark", "Mansfield Park"},           {"emma", "Emma"},
    {"northangerabbey", "Northanger Abbey"},       {"persuasion", "Persuasion"},
};

}  // namespace

const DebianPackage& AustenPackage() {
  static const auto& package =
      *new DebianPackage{"r-cran-janeaustenr", "1.0.0-1",
                         "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95"};
  return package;
}

absl::StatusOr<TextCorpus> LoadAusten(absl::string_view package_dir) {
  const std::string base = JoinPath(package_dir, "usr/lib/R/site-library/janeaustenr/data/Rdata");
  PIPELAB_ASSIGN_OR_RETURN(const RLazyLoad store, RLazyLoad::Open(base));
  TextCorpus corpus;
  corpus.name = "austen";
  for (const Novel& novel : kNovels) {
    PIPELAB_ASSIGN_OR_RETURN(const RValue value, store.Read(novel.variable));
    if (value.type != RType::kString || value.strings.empty()) {
      return absl::DataLossError(absl::StrCat(base, ".rdb: '", novel.variable, "' is ",
                                              RTypeName(value.type),
                                              "; it must be the novel's lines"));
    }
    std::string text;
    for (const std::string& line : value.strings) absl::StrAppend(&text, line, "\n");
    corpus.titles.push_back(novel.title);
    corpus.documents.push_back(std::move(text));
  }
  return corpus;
}

absl::StatusOr<TextCorpus> FetchAusten(absl::string_view cache_dir, const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(AustenPackage(), cache_dir, options));
  return LoadAusten(dir);
}

}  // namespace pipelab
