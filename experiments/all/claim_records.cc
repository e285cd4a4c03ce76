#include "experiments/all/claim_records.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "experiments/report/markup.h"
#include "experiments/report/table.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"

namespace pipelab {

namespace {

constexpr char kTurn[] = "turn ";
constexpr char kFull[] = "full";

// The columns of the file, in order.
struct RecordField {
  const char* name;
  std::string ClaimRecord::*text;
};
constexpr RecordField kFields[] = {
    {"study", &ClaimRecord::study},       {"claim", &ClaimRecord::claim},
    {"source", &ClaimRecord::source},     {"tag", &ClaimRecord::tag},
    {"state", &ClaimRecord::state},       {"value", &ClaimRecord::value},
    {"unit", &ClaimRecord::unit},         {"published", &ClaimRecord::published},
    {"accepted", &ClaimRecord::accepted}, {"reason", &ClaimRecord::reason},
    {"run", &ClaimRecord::run},           {"changed", &ClaimRecord::changed},
};

std::string ValueOf(const Claim& c) {
  const bool varies = c.origin == Origin::kMeasured || c.origin == Origin::kReplayed;
  if (varies || c.state == ClaimState::kNotMade) return "";
  if (c.cells.has_value()) return c.ErrorText();
  return c.value.has_value() ? absl::StrFormat("%.6g", *c.value) : c.ours;
}

const ClaimRecord* FindClaim(const std::vector<ClaimRecord>& records, const std::string& claim) {
  const auto found = std::find_if(records.begin(), records.end(),
                                  [&](const ClaimRecord& r) { return r.claim == claim; });
  return found == records.end() ? nullptr : &*found;
}

bool IsMade(absl::string_view state) { return state != ClaimStateName(ClaimState::kNotMade); }

void SortByClaim(std::vector<ClaimRecord>* records) {
  std::sort(records->begin(), records->end(),
            [](const ClaimRecord& a, const ClaimRecord& b) { return a.claim < b.claim; });
}

std::string OrNone(const std::string& text) { return text.empty() ? "none" : text; }

// Words with one space between them, since CHANGELOG.md breaks lines.
std::string OneLine(absl::string_view text) {
  return absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
}

// "turn 3: met -> missed" after one that was the second.
std::string NextTurn(const ClaimRecord& committed, absl::string_view turn) {
  absl::string_view number = committed.changed;
  int turns = 0;
  if (absl::ConsumePrefix(&number, kTurn) &&
      !absl::SimpleAtoi(number.substr(0, number.find(':')), &turns)) {
    turns = 0;
  }
  return absl::StrCat(kTurn, turns + 1, ": ", turn);
}

}  // namespace

bool DoesNotHold(absl::string_view state) {
  return !state.empty() && state != ClaimStateName(ClaimState::kMet) && IsMade(state);
}

std::vector<ClaimRecord> RecordsOf(absl::string_view study, const std::vector<Claim>& claims,
                                   bool full) {
  std::vector<ClaimRecord> records;
  for (const Claim& c : claims) {
    ClaimRecord r;
    r.study = std::string(study);
    r.claim = c.id;
    if (c.from_paper()) {
      r.source = c.source;
      r.tag = c.tag;
    }
    r.state = std::string(ClaimStateName(c.state));
    r.value = ValueOf(c);
    r.unit = c.unit;
    r.published = c.published;
    r.accepted = c.accepted;
    if (DoesNotHold(r.state)) r.reason = OneLine(c.reason);
    if (full && c.state != ClaimState::kNotMade) r.run = kFull;
    records.push_back(std::move(r));
  }
  SortByClaim(&records);
  return records;
}

std::vector<ClaimRecord> ToCommit(const std::vector<ClaimRecord>& committed,
                                  std::vector<ClaimRecord> now, bool full) {
  for (ClaimRecord& r : now) {
    const ClaimRecord* before = FindClaim(committed, r.claim);
    if (before == nullptr || !IsMade(before->state)) continue;
    if (before->run == kFull ? !IsMade(r.state) : full) r = *before;
  }
  for (const ClaimRecord& before : committed) {
    const bool other = full ? before.run.empty() : before.run == kFull;
    if (other && FindClaim(now, before.claim) == nullptr) now.push_back(before);
  }
  SortByClaim(&now);
  return now;
}

absl::StatusOr<std::vector<ClaimRecord>> ParseClaimRecords(absl::string_view text,
                                                           absl::string_view what) {
  std::vector<std::string> names;
  for (const RecordField& f : kFields) names.push_back(f.name);
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable t, CsvTable::Parse(text, what, names));
  std::vector<ClaimRecord> records;
  for (const std::vector<std::string>& row : t.rows()) {
    records.emplace_back();
    for (const RecordField& f : kFields) records.back().*f.text = row[t.Column(f.name)];
  }
  return records;
}

std::string ClaimRecordsCsv(const std::vector<ClaimRecord>& records) {
  std::string csv = absl::StrCat(
      absl::StrJoin(kFields, ",",
                    [](std::string* out, const RecordField& f) { absl::StrAppend(out, f.name); }),
      "\n");
  for (const ClaimRecord& r : records) {
    absl::StrAppend(&csv,
                    absl::StrJoin(kFields, ",",
                                  [&](std::string* out, const RecordField& f) {
                                    absl::StrAppend(out, CsvField(r.*f.text));
                                  }),
                    "\n");
  }
  return csv;
}

std::string TurnOf(const ClaimRecord& committed, const ClaimRecord& now) {
  if (committed.state.empty()) return "";
  std::vector<std::string> turns;
  if (committed.state != now.state) {
    turns.push_back(absl::StrCat(committed.state, " -> ", now.state));
  }
  for (const auto& [name, text] : {std::make_pair("published", &ClaimRecord::published),
                                   std::make_pair("accepted", &ClaimRecord::accepted)}) {
    if (committed.*text == now.*text) continue;
    turns.push_back(absl::StrCat(name, " ", OrNone(committed.*text), " -> ", OrNone(now.*text)));
  }
  return absl::StrJoin(turns, "; ");
}

void NoteTurns(const std::vector<ClaimRecord>& committed, std::vector<ClaimRecord>* now) {
  for (ClaimRecord& r : *now) {
    const ClaimRecord* before = FindClaim(committed, r.claim);
    if (before == nullptr) continue;
    const std::string turn = TurnOf(*before, r);
    r.changed = turn.empty() ? before->changed : NextTurn(*before, turn);
  }
}

std::vector<std::string> ClaimDifferences(const std::vector<ClaimRecord>& committed,
                                          const std::vector<ClaimRecord>& now) {
  std::vector<std::string> lines;
  const auto add = [&](const ClaimRecord& r, absl::string_view what, absl::string_view todo) {
    lines.push_back(absl::StrCat("study ", r.study, ", claim ", r.claim, ": ", what,
                                 ": commit claims.csv as `tools/bazel run //experiments:all -- ",
                                 r.run.empty() ? "--quick " : "", "--only=", r.study,
                                 " --update` writes it", todo));
  };
  for (const ClaimRecord& r : now) {
    const ClaimRecord* before = FindClaim(committed, r.claim);
    if (before == nullptr) {
      add(r, "is not committed", "");
      continue;
    }
    const std::string turn = TurnOf(*before, r);
    if (!turn.empty()) {
      add(r, turn,
          absl::StrCat(", with \"`", r.claim, "` ", NextTurn(*before, turn),
                       ": WHY\" in CHANGELOG.md"));
    } else if (before->value != r.value || before->unit != r.unit) {
      add(r, absl::StrCat("value ", before->value, " ", before->unit, " -> ", r.value, " ", r.unit),
          "");
    } else if (before->source != r.source || before->tag != r.tag || before->state != r.state) {
      add(r, "source, tag or state is another", "");
    }
  }
  for (const ClaimRecord& r : committed) {
    if (FindClaim(now, r.claim) == nullptr) add(r, "is no longer recorded", "");
  }
  return lines;
}

std::vector<std::string> Unexplained(const std::vector<ClaimRecord>& committed,
                                     absl::string_view changelog) {
  const std::string text = OneLine(changelog);
  std::vector<std::string> lines;
  for (const ClaimRecord& r : committed) {
    if (r.changed.empty()) continue;
    const std::string line = absl::StrCat("`", r.claim, "` ", OneLine(r.changed), ": ");
    const size_t at = text.find(line);
    if (at != std::string::npos && at + line.size() < text.size()) continue;
    lines.push_back(absl::StrCat("study ", r.study, ", claim ", r.claim,
                                 ": CHANGELOG.md must say \"", line, "WHY\""));
  }
  return lines;
}

std::vector<ClaimRecord> Select(const std::vector<ClaimRecord>& records, absl::string_view study) {
  std::vector<ClaimRecord> selected;
  std::copy_if(records.begin(), records.end(), std::back_inserter(selected),
               [&](const ClaimRecord& r) { return r.study == study; });
  return selected;
}

void Replace(absl::string_view study, std::vector<ClaimRecord> of_study,
             std::vector<ClaimRecord>* records) {
  const auto of_it = [&](const ClaimRecord& r) { return r.study == study; };
  const auto first = std::find_if(records->begin(), records->end(), of_it);
  const auto place = first - records->begin();
  records->erase(std::remove_if(first, records->end(), of_it), records->end());
  records->insert(records->begin() + place, std::make_move_iterator(of_study.begin()),
                  std::make_move_iterator(of_study.end()));
}

std::vector<std::string> Unanswered(const std::vector<PublishedItem>& items,
                                    const std::vector<ClaimRecord>& records) {
  std::set<std::string> recorded;
  for (const ClaimRecord& r : records) recorded.insert(r.claim);
  std::vector<std::string> unanswered;
  for (const PublishedItem& item : items) {
    for (const std::string& id : item.claims) {
      if (recorded.count(id) > 0) continue;
      unanswered.push_back(absl::StrCat(item.paper, ", ", item.what, ": ", id));
    }
  }
  return unanswered;
}

}  // namespace pipelab
