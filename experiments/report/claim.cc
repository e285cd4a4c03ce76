#include "experiments/report/claim.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/report/median.h"

namespace pipelab {
namespace {

// Four digits say enough in a sentence: "1.43x", "65.6 %".
std::string WithUnit(double value, const std::string& unit) {
  const std::string number = absl::StrFormat("%.4g", value);
  if (unit.empty()) return number;
  return absl::StrCat(number, unit == "x" ? "" : " ", unit);
}

std::string Range(double low, double high, const std::string& unit) {
  if (low == high) return WithUnit(low, unit);
  return absl::StrCat(WithUnit(low, unit), " to ", WithUnit(high, unit));
}

bool IsClaimId(absl::string_view id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '.';
  });
}

Cell TextOrMissing(const std::string& text, const std::string& why) {
  return text.empty() ? Missing(why) : Computed(text);
}

}  // namespace

absl::string_view ClaimStateName(ClaimState state) {
  switch (state) {
    case ClaimState::kMissed:
      return "missed";
    case ClaimState::kDependsOn:
      return "depends on";
    case ClaimState::kNotMade:
      return "not made";
    case ClaimState::kMet:
      break;
  }
  return "met";
}

CellErrors ErrorsOf(const std::vector<ComparedCell>& cells) {
  CellErrors e;
  e.cells = static_cast<int>(cells.size());
  if (cells.empty()) return e;
  std::vector<double> errors;
  for (const ComparedCell& cell : cells) {
    const double error = std::abs(cell.error());
    if (errors.empty() || error > e.largest) {
      e.largest = error;
      e.worst = cell.name;
    }
    errors.push_back(error);
    for (const ComparedCell& other : cells) {
      if (!(cell.published < other.published)) continue;
      ++e.pairs;
      if (cell.ours < other.ours) ++e.alike;
    }
  }
  e.median = MedianOf(std::move(errors));
  return e;
}

absl::optional<double> Claim::Error() const {
  if (cells.has_value()) return cells->largest;
  if (!value.has_value() || !low.has_value() || !high.has_value()) return absl::nullopt;
  if (*value < *low) return *low == 0 ? absl::optional<double>() : *value / *low - 1;
  if (*value > *high) return *high == 0 ? absl::optional<double>() : *value / *high - 1;
  return 0;
}

std::string Claim::ErrorText() const {
  if (state == ClaimState::kNotMade) return "-";
  if (cells.has_value()) {
    std::string text = absl::StrFormat("median %.1f %%, largest %.1f %%", ToPercent(cells->median),
                                       ToPercent(cells->largest));
    if (!cells->worst.empty()) absl::StrAppend(&text, " (", cells->worst, ")");
    if (cells->pairs > 0) {
      absl::StrAppend(&text, "; ", cells->alike, " of ", cells->pairs, " orders alike");
    }
    return text;
  }
  const absl::optional<double> error = Error();
  if (!error.has_value()) return "-";
  if (*error == 0) return low == high ? "0 %" : "in range";
  return absl::StrFormat("%+.1f %%", ToPercent(*error));
}

Claim PaperClaim(std::string id, std::string text, std::string source, std::string tag) {
  Claim c = OwnClaim(std::move(id), std::move(text));
  c.source = std::move(source);
  c.tag = std::move(tag);
  return c;
}

Claim OwnClaim(std::string id, std::string text) {
  Claim c;
  c.id = std::move(id);
  c.text = std::move(text);
  return c;
}

void Published(Claim* claim, double value) { Published(claim, value, value); }

void Published(Claim* claim, double low, double high) {
  claim->low = low;
  claim->high = high;
  if (claim->published.empty()) claim->published = Range(low, high, claim->unit);
}

void Found(Claim* claim, Origin origin, double value, std::string text) {
  claim->origin = origin;
  claim->value = value;
  claim->ours = text.empty() ? WithUnit(value, claim->unit) : std::move(text);
}

void MetIf(Claim* claim, bool met, std::string accepted, std::string reason) {
  claim->state = met ? ClaimState::kMet : ClaimState::kMissed;
  claim->accepted = std::move(accepted);
  claim->reason = met ? "" : std::move(reason);
}

void MetWithin(Claim* claim, double low, double high, std::string reason) {
  const bool met = claim->value.has_value() && *claim->value >= low && *claim->value <= high;
  MetIf(claim, met, Range(low, high, claim->unit), std::move(reason));
}

void FoundAlike(Claim* claim, Origin origin, int alike, int all, std::string reason) {
  Found(claim, origin, alike, absl::StrCat(alike, " of ", all, " ", claim->unit, " alike"));
  MetIf(claim, all > 0 && alike == all, absl::StrCat("all ", claim->unit), std::move(reason));
}

void MetWithinErrors(Claim* claim, CellErrors errors, double limit, std::string reason) {
  const bool met = errors.cells > 0 && errors.largest <= limit;
  if (claim->published.empty()) claim->published = absl::StrCat(errors.cells, " cells");
  if (claim->ours.empty()) claim->ours = absl::StrCat(errors.cells, " cells");
  claim->cells = std::move(errors);
  MetIf(claim, met, absl::StrFormat("each cell within %g %%", ToPercent(limit)), std::move(reason));
}

void MetWithinPoints(Claim* claim, Origin origin, const std::vector<CellOff>& cells, double limit,
                     std::string reason, absl::string_view noun) {
  claim->published = absl::StrCat(cells.size(), " ", noun, "s");
  if (cells.empty()) {
    NotMade(claim, absl::StrCat("no ", noun, " of this kind"));
    return;
  }
  const CellOff* worst = &cells[0];
  int within = 0;
  for (const CellOff& cell : cells) {
    within += std::abs(cell.off) <= limit ? 1 : 0;
    if (std::abs(cell.off) > std::abs(worst->off)) worst = &cell;
  }
  Found(claim, origin, worst->off,
        absl::StrFormat("%d of %d within %g; off by %+.1f at most%s", within,
                        static_cast<int>(cells.size()), limit, worst->off,
                        worst->name.empty() ? "" : ": " + worst->name));
  MetIf(claim, std::abs(worst->off) <= limit,
        absl::StrFormat("each %s within %g %s", noun, limit, claim->unit), std::move(reason));
}

void NotMade(Claim* claim, std::string why) {
  claim->state = ClaimState::kNotMade;
  claim->reason = std::move(why);
}

void MetOverRange(Claim* claim, const std::string& name, const std::vector<RangeValue>& values,
                  std::string accepted, std::string reason) {
  std::vector<std::string> holds, turns;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].met) holds.push_back(values[i].value);
    if (i > 0 && values[i].met != values[i - 1].met) turns.push_back(values[i].value);
  }
  MetIf(claim, !values.empty() && holds.size() == values.size(), std::move(accepted),
        std::move(reason));
  if (turns.empty()) return;
  claim->state = ClaimState::kDependsOn;
  const std::string why = std::move(claim->reason);
  claim->reason = absl::StrCat(name, ": holds for ", absl::StrJoin(holds, ", "), "; turns at ",
                               absl::StrJoin(turns, ", "), why.empty() ? "" : "; ", why);
}

std::string Verdict(const Claim& claim) {
  const absl::string_view state = ClaimStateName(claim.state);
  if (claim.reason.empty()) return std::string(state);
  return absl::StrCat(state, claim.state == ClaimState::kDependsOn ? " " : ": ", claim.reason);
}

absl::Status CheckClaim(const Claim& claim) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("claim '", claim.id, "': ", what));
  };
  if (!IsClaimId(claim.id)) return error("the id is not lower case, digits, '_' and '.'");
  if (claim.text.empty()) return error("does not say what is claimed");
  if (claim.from_paper() && claim.tag.empty()) return error("a paper's figure needs a tag");
  if (claim.tag == "recalled" && claim.state != ClaimState::kNotMade) {
    return error("what is only recalled is no target");
  }
  if (claim.state != ClaimState::kMet && claim.reason.empty()) return error("needs a reason");
  if (claim.state != ClaimState::kNotMade && claim.ours.empty()) return error("has no result");
  if (claim.state != ClaimState::kNotMade && claim.accepted.empty()) {
    return error("does not say what counts as met");
  }
  return absl::OkStatus();
}

std::string ClaimsSummary(const std::vector<Claim>& claims) {
  if (claims.empty()) return "";
  std::map<ClaimState, int> counts;
  for (const Claim& c : claims) ++counts[c.state];
  std::vector<std::string> others;
  for (const auto& [state, count] : counts) {
    if (state != ClaimState::kMet)
      others.push_back(absl::StrCat(count, " ", ClaimStateName(state)));
  }
  return absl::StrCat(counts[ClaimState::kMet], " of ", claims.size(),
                      claims.size() == 1 ? " claim is met" : " claims are met",
                      others.empty() ? "" : ": ", absl::StrJoin(others, ", "), ".");
}

Table ClaimsTable(const std::vector<Claim>& claims) {
  Table t("claims", "Claims: what was published or expected, and what came out");
  t.AddKey("claim", "claim");
  const Origin computed = Origin::kComputed;
  t.AddColumn({"text", "what is claimed", "", "", computed, 0});
  t.AddColumn({"source", "by", "", "", computed, 0});
  t.AddColumn({"published", "published", "", "", Origin::kPublished, 0});
  t.AddColumn({"ours", "ours (origin)", "ours", "", computed, 0});
  t.AddColumn({"error", "error", "", "", computed, 0});
  t.AddColumn({"accepted", "counts as met", "", "", computed, 0});
  t.AddColumn({"state", "state", "", "", computed, 0});
  std::vector<Claim> sorted = claims;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Claim& a, const Claim& b) { return a.state < b.state; });
  for (const Claim& c : sorted) {
    Cell published = Missing("an expectation of this project, not a published figure");
    if (c.from_paper()) {
      published = Value(Origin::kPublished, c.published.empty() ? "in words" : c.published);
      published.tag = c.tag;
    }
    Cell state = Computed(std::string(ClaimStateName(c.state)));
    if (!c.reason.empty()) state = std::move(state).WithNote(c.reason);
    t.AddRow({Label(c.id), Computed(c.text), Computed(c.from_paper() ? c.source : "pipelab"),
              std::move(published),
              c.ours.empty() ? Missing(c.reason)
                             : Computed(absl::StrCat(c.ours, " (", OriginName(c.origin), ")")),
              Computed(c.ErrorText()), TextOrMissing(c.accepted, c.reason), std::move(state)});
  }
  return t;
}

}  // namespace pipelab
