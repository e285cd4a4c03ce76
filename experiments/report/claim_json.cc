#include "experiments/report/claim_json.h"

#include <utility>

#include "nlohmann/json.hpp"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostCells = 1 << 20;

// The texts of a claim by field.
struct TextField {
  const char* name;
  std::string Claim::*text;
};
constexpr TextField kTexts[] = {
    {"id", &Claim::id},     {"text", &Claim::text},           {"source", &Claim::source},
    {"tag", &Claim::tag},   {"published", &Claim::published}, {"accepted", &Claim::accepted},
    {"ours", &Claim::ours}, {"unit", &Claim::unit},           {"reason", &Claim::reason},
};

struct NumberField {
  const char* name;
  absl::optional<double> Claim::*number;
};
constexpr NumberField kNumbers[] = {
    {"published_low", &Claim::low}, {"published_high", &Claim::high}, {"value", &Claim::value}};

json ClaimToJson(const Claim& c) {
  json object = json::object();
  for (const TextField& f : kTexts) {
    if (!(c.*f.text).empty()) object[f.name] = c.*f.text;
  }
  for (const NumberField& f : kNumbers) {
    if ((c.*f.number).has_value()) object[f.name] = *(c.*f.number);
  }
  object["origin"] = std::string(OriginName(c.origin));
  object["state"] = std::string(ClaimStateName(c.state));
  if (c.Error().has_value()) object["error"] = *c.Error();  // for readers; not read back
  if (!c.cells.has_value()) return object;
  const CellErrors& e = *c.cells;
  object["cells"] = {{"cells", e.cells},
                     {"median_error", e.median},
                     {"largest_error", e.largest},
                     {"pairs", e.pairs},
                     {"alike", e.alike}};
  if (!e.worst.empty()) object["cells"]["worst"] = e.worst;
  return object;
}

absl::StatusOr<CellErrors> ReadCells(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"cells", "median_error", "largest_error", "worst", "pairs", "alike"}));
  CellErrors e;
  for (const auto& [name, field] :
       {std::make_pair("cells", &e.cells), std::make_pair("pairs", &e.pairs),
        std::make_pair("alike", &e.alike)}) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t n, object.Integer(name, 0, kMostCells));
    *field = static_cast<int>(n);
  }
  PIPELAB_ASSIGN_OR_RETURN(e.median, object.Number("median_error"));
  PIPELAB_ASSIGN_OR_RETURN(e.largest, object.Number("largest_error"));
  if (object.Has("worst")) {
    PIPELAB_ASSIGN_OR_RETURN(e.worst, object.String("worst"));
  }
  return e;
}

absl::StatusOr<Claim> ReadClaim(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys(
      {"id", "text", "source", "tag", "published", "accepted", "ours", "unit", "reason",
       "published_low", "published_high", "value", "origin", "state", "error", "cells"}));
  Claim c;
  for (const TextField& f : kTexts) {
    if (!object.Has(f.name)) continue;
    PIPELAB_ASSIGN_OR_RETURN(c.*f.text, object.String(f.name));
  }
  for (const NumberField& f : kNumbers) {
    if (!object.Has(f.name)) continue;
    PIPELAB_ASSIGN_OR_RETURN(c.*f.number, object.Number(f.name));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string origin, object.String("origin"));
  const absl::optional<Origin> found = FindOrigin(origin);
  if (!found.has_value()) return object.Error("origin", "\"", origin, "\": no such origin");
  c.origin = *found;
  PIPELAB_ASSIGN_OR_RETURN(const std::string state, object.String("state"));
  bool known = false;
  for (const ClaimState s :
       {ClaimState::kMissed, ClaimState::kDependsOn, ClaimState::kNotMade, ClaimState::kMet}) {
    if (state != ClaimStateName(s)) continue;
    c.state = s;
    known = true;
  }
  if (!known) {
    return object.Error("state", "\"", state, "\": must be met, missed, depends on or not made");
  }
  if (object.Has("cells")) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject cells, object.Object("cells"));
    PIPELAB_ASSIGN_OR_RETURN(c.cells, ReadCells(cells));
  }
  const absl::Status right = CheckClaim(c);
  return right.ok() ? absl::StatusOr<Claim>(std::move(c)) : object.Error("id", right.message());
}

}  // namespace

std::string ClaimsJson(absl::string_view experiment, const std::vector<Claim>& claims) {
  json list = json::array();
  for (const Claim& c : claims) list.push_back(ClaimToJson(c));
  return DumpJson({{"experiment", std::string(experiment)}, {"claims", list}});
}

absl::StatusOr<std::vector<Claim>> ParseClaims(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"experiment", "claims"}));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> objects, file.Objects("claims"));
  std::vector<Claim> claims;
  for (const JsonObject& object : objects) {
    PIPELAB_ASSIGN_OR_RETURN(Claim c, ReadClaim(object));
    claims.push_back(std::move(c));
  }
  return claims;
}

}  // namespace pipelab
