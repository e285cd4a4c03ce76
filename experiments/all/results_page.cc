#include "experiments/all/results_page.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "experiments/report/markup.h"

namespace pipelab {
namespace {

// A cell of a Markdown table.
std::string CellText(absl::string_view text) {
  if (text.empty()) return "-";
  return absl::StrReplaceAll(MarkdownEscape(text), {{"|", "\\|"}, {"\n", " "}});
}

std::string Row(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

std::string Head(const std::vector<std::string>& titles) {
  return Row(titles) + Row(std::vector<std::string>(titles.size(), "---"));
}

std::string PublishedText(const Claim& c) {
  if (!c.from_paper()) return "our own";
  return absl::StrCat(c.published.empty() ? "in words" : c.published, " (", c.tag, ")");
}

std::string ClaimRow(const Claim& c) {
  std::string what = c.text;
  if (c.from_paper()) absl::StrAppend(&what, " [", c.source, "]");
  std::string state(ClaimStateName(c.state));
  if (c.state == ClaimState::kDependsOn) absl::StrAppend(&state, " (see below)");
  if (c.state == ClaimState::kMissed) state = absl::StrCat("**", state, "**");
  return Row({absl::StrCat("`", c.id, "`"), CellText(what), CellText(PublishedText(c)),
              CellText(c.ours), CellText(c.ErrorText()), std::string(OriginName(c.origin)),
              CellText(c.accepted), state});
}

std::string StudySection(const StudyOutcome& o) {
  std::string text = absl::StrCat("### ", o.name, "\n\n");
  if (!o.failure.empty()) absl::StrAppend(&text, "**", MarkdownEscape(o.failure), "**\n\n");
  if (!o.result.has_value()) return text;
  absl::StrAppend(&text, "    ", o.result->command, "\n\n[report](", o.name, "/report.html)");
  if (!o.reference.empty()) absl::StrAppend(&text, "; deterministic columns: ", o.reference);
  if (!o.not_compared.empty()) {
    absl::StrAppend(&text,
                    "; deterministic columns: not compared: ", MarkdownEscape(o.not_compared));
  }
  absl::StrAppend(&text, "\n\n");
  std::vector<Claim> claims = o.result->claims;
  if (claims.empty()) return text + "It claims nothing.\n\n";
  std::stable_sort(claims.begin(), claims.end(),
                   [](const Claim& a, const Claim& b) { return a.state < b.state; });
  absl::StrAppend(&text, Head({"claim", "what", "published", "ours", "error", "origin",
                               "counts as met", "state"}));
  for (const Claim& c : claims) absl::StrAppend(&text, ClaimRow(c));
  absl::StrAppend(&text, "\n");
  for (const Claim& c : claims) {
    if (c.reason.empty()) continue;
    absl::StrAppend(&text, "* `", c.id, c.state == ClaimState::kDependsOn ? "` " : "` is ",
                    absl::StrReplaceAll(MarkdownEscape(Verdict(c)), {{"\n", " "}}), "\n");
  }
  return text + "\n";
}

// One list over all studies: what a reader must know first.
std::string WhatDoesNotHold(const std::vector<StudyOutcome>& outcomes,
                            const std::vector<ClaimRecord>& committed) {
  std::set<std::string> ran, made;  // studies; claims
  std::string rows;
  const auto add = [&](const ClaimRecord& r, const std::string& what, const std::string& value,
                       absl::string_view origin) {
    absl::StrAppend(&rows,
                    Row({absl::StrCat("`", r.claim, "`"), r.study, CellText(what),
                         r.source.empty() ? "our own" : CellText(r.published), CellText(value),
                         std::string(origin), CellText(r.accepted), r.state, CellText(r.reason)}));
  };
  for (const StudyOutcome& o : outcomes) {
    if (!o.result.has_value()) continue;
    ran.insert(o.name);
    for (const Claim& c : o.result->claims) {
      const ClaimRecord r = RecordsOf(o.name, {c})[0];
      if (c.state != ClaimState::kNotMade) made.insert(r.claim);
      if (!DoesNotHold(r.state)) continue;
      const std::string error = c.ErrorText();
      add(r, c.text, error == "-" ? c.ours : absl::StrCat(c.ours, "; ", error),
          OriginName(c.origin));
    }
  }
  for (const ClaimRecord& r : committed) {
    const bool of_full_run = !r.run.empty() && made.count(r.claim) == 0;
    if ((ran.count(r.study) > 0 && !of_full_run) || !DoesNotHold(r.state)) continue;
    add(r, r.source, r.value.empty() ? "" : absl::StrCat(r.value, " ", r.unit), "committed");
  }
  const std::string head = "## What does not hold\n\n";
  if (rows.empty()) return absl::StrCat(head, "Nothing of what was claimed here.\n\n");
  return absl::StrCat(head,
                      "Every claim that is missed, or depends on what is unknown; of studies that "
                      "did not run here, or not in full, as committed.\n\n",
                      Head({"claim", "study", "what", "published", "ours", "origin",
                            "counts as met", "state", "reason"}),
                      rows, "\n");
}

std::map<std::string, const Claim*> ClaimsById(const std::vector<StudyOutcome>& outcomes) {
  std::map<std::string, const Claim*> claims;
  for (const StudyOutcome& o : outcomes) {
    if (!o.result.has_value()) continue;
    for (const Claim& c : o.result->claims) claims[c.id] = &c;
  }
  return claims;
}

std::string PublishedTable(const std::vector<StudyOutcome>& outcomes,
                           const std::vector<PublishedItem>& items) {
  const std::map<std::string, const Claim*> claims = ClaimsById(outcomes);
  std::string text = Head({"paper", "table or figure", "tag", "claim", "error", "state"});
  for (const PublishedItem& item : items) {
    if (item.claims.empty()) {
      absl::StrAppend(
          &text, Row({CellText(item.paper), CellText(item.what), item.tag, "-",
                      CellText(absl::StrCat("not covered: ", item.not_covered)), "not covered"}));
    }
    for (const std::string& id : item.claims) {
      const auto found = claims.find(id);
      const bool there = found != claims.end();
      absl::StrAppend(
          &text,
          Row({CellText(item.paper), CellText(item.what), item.tag, "`" + id + "`",
               there ? CellText(found->second->ErrorText()) : "no study that ran has recorded it",
               there ? std::string(ClaimStateName(found->second->state)) : "not run"}));
    }
  }
  return text + "\n";
}

std::string Summary(const std::vector<StudyOutcome>& outcomes) {
  std::map<ClaimState, int> count;
  int failed = 0, references = 0, equal = 0;
  std::vector<std::string> not_compared;
  for (const StudyOutcome& o : outcomes) {
    if (!o.not_compared.empty()) not_compared.push_back(o.name);
    failed += o.failure.empty() ? 0 : 1;
    references += o.reference.empty() ? 0 : 1;
    equal += o.reference == "equal" ? 1 : 0;
    if (!o.result.has_value()) continue;
    for (const Claim& c : o.result->claims) ++count[c.state];
  }
  std::string text = absl::StrCat(
      outcomes.size(), " studies, ", failed, " of them failed; ", count[ClaimState::kMet],
      " claims met, ", count[ClaimState::kMissed], " missed, ", count[ClaimState::kDependsOn],
      " depend on what a paper does not give, ", count[ClaimState::kNotMade], " not made.");
  if (references > 0) {
    absl::StrAppend(&text, " Deterministic columns equal the committed ones in ", equal, " of ",
                    references, " studies.");
  }
  if (!not_compared.empty()) {
    absl::StrAppend(&text, " Not compared: ", absl::StrJoin(not_compared, ", "), ".");
  }
  return text + "\n\n";
}

// No claim is missed, or depends on what a paper does not give.
bool HoldsThroughout(const StudyOutcome& outcome) {
  if (!outcome.result.has_value()) return true;
  const std::vector<Claim>& claims = outcome.result->claims;
  return std::none_of(claims.begin(), claims.end(), [](const Claim& c) {
    return c.state == ClaimState::kMissed || c.state == ClaimState::kDependsOn;
  });
}

}  // namespace

int StudyOutcome::missed() const {
  if (!result.has_value()) return 0;
  return static_cast<int>(
      std::count_if(result->claims.begin(), result->claims.end(),
                    [](const Claim& c) { return c.state == ClaimState::kMissed; }));
}

std::string ResultsPage(const std::vector<StudyOutcome>& outcomes,
                        const std::vector<PublishedItem>& items,
                        const ResultsPageOptions& options) {
  std::string text = absl::StrCat(
      "# Results\n\nMade by `tools/bazel run //experiments:all", options.quick ? " -- --quick" : "",
      "`; docs/results.md says what every column and file is. ", Summary(outcomes));
  if (options.quick) {
    absl::StrAppend(&text,
                    "`--quick` runs smaller studies; each report says what its own leaves "
                    "out.\n\n");
  }
  absl::StrAppend(&text, WhatDoesNotHold(outcomes, options.committed),
                  "## Studies that fail, or have a claim that does not hold throughout\n\n");
  const auto good = [](const StudyOutcome& o) { return o.failure.empty() && HoldsThroughout(o); };
  std::string failing, missing;
  for (const StudyOutcome& o : outcomes) {
    if (!good(o)) absl::StrAppend(o.failure.empty() ? &missing : &failing, StudySection(o));
  }
  absl::StrAppend(&text, failing, missing, failing.empty() && missing.empty() ? "None.\n\n" : "");
  absl::StrAppend(&text, "## Other studies\n\n");
  for (const StudyOutcome& o : outcomes) {
    if (good(o)) absl::StrAppend(&text, StudySection(o));
  }
  absl::StrAppend(&text, "## Published tables and figures\n\n", PublishedTable(outcomes, items),
                  "## Environment\n\n", Head({"what", "value"}));
  for (const auto& [name, value] : options.environment) {
    absl::StrAppend(&text, Row({CellText(name), CellText(value)}));
  }
  return text;
}

}  // namespace pipelab
