#include "experiments/all/claim_records.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"

namespace pipelab {

std::vector<ClaimRecord> RecordsOf(absl::string_view study, const std::vector<Claim>& claims) {
  std::vector<ClaimRecord> records;
  for (const Claim& c : claims) {
    const bool paper = c.from_paper();
    records.push_back({std::string(study), c.id, paper ? c.source : "", paper ? c.tag : ""});
  }
  std::sort(records.begin(), records.end(),
            [](const ClaimRecord& a, const ClaimRecord& b) { return a.claim < b.claim; });
  return records;
}

absl::StatusOr<std::vector<ClaimRecord>> ParseClaimRecords(absl::string_view text,
                                                           absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable t,
                           CsvTable::Parse(text, what, {"study", "claim", "source", "tag"}));
  std::vector<ClaimRecord> records;
  for (const std::vector<std::string>& row : t.rows()) {
    records.push_back({row[t.Column("study")], row[t.Column("claim")], row[t.Column("source")],
                       row[t.Column("tag")]});
  }
  return records;
}

std::string ClaimRecordsCsv(const std::vector<ClaimRecord>& records) {
  std::string csv = "study,claim,source,tag\n";
  for (const ClaimRecord& r : records) {
    absl::StrAppend(&csv, CsvField(r.study), ",", CsvField(r.claim), ",", CsvField(r.source), ",",
                    CsvField(r.tag), "\n");
  }
  return csv;
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
