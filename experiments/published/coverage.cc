#include "experiments/published/coverage.h"

#include "experiments/published/coverage_file.h"
#include "experiments/published/read_all.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

absl::StatusOr<PublishedItem> ReadItem(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"paper", "what", "tag", "claims", "not_covered"}));
  PublishedItem item;
  PIPELAB_ASSIGN_OR_RETURN(item.paper, object.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(item.what, object.String("what"));
  PIPELAB_ASSIGN_OR_RETURN(item.tag, object.String("tag"));
  if (object.Has("not_covered")) {
    PIPELAB_ASSIGN_OR_RETURN(item.not_covered, object.String("not_covered"));
  }
  if (object.Has("claims") != item.not_covered.empty()) {
    return object.Error("claims", "an item has claims, or says in not_covered why it has none");
  }
  if (!item.not_covered.empty()) return item;
  PIPELAB_ASSIGN_OR_RETURN(const json* claims, object.List("claims"));
  for (const json& id : *claims) {
    if (!id.is_string()) return object.Error("claims", "must be names of claims");
    item.claims.push_back(id.get<std::string>());
  }
  if (item.claims.empty()) return object.Error("claims", "must not be empty");
  return item;
}

}  // namespace

absl::StatusOr<std::vector<PublishedItem>> ParsePublishedItems(absl::string_view text,
                                                               absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"items"}));
  return ReadAll(file, "items", ReadItem);
}

absl::StatusOr<std::vector<PublishedItem>> PublishedItems() {
  return ParsePublishedItems(CoverageFile()[0].text, "experiments/published/coverage.json");
}

}  // namespace pipelab
