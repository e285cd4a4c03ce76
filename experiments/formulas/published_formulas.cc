#include "experiments/formulas/published_formulas.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

constexpr double kTiny = 1e-12;

std::string NameOf(const FormulaCell& cell) { return absl::StrCat(cell.scheme, " ", cell.sizes); }

}  // namespace

double FormulaCell::error(bool difference) const {
  const double nearest = ours < low ? low : ours > high ? high : ours;
  if (difference) return ours - nearest;
  if (std::abs(ours - nearest) <= kTiny) return 0;
  return nearest == 0 ? 1 : ours / nearest - 1;  // nothing is published: all of ours is too much
}

Claim ClaimOf(const FormulaGroup& group) {
  Claim c = PaperClaim(group.id, group.text, group.source, group.tag);
  c.origin = Origin::kSimulated;
  CellErrors errors;
  std::vector<ComparedCell> cells;
  // As shares, so that what is published as 0 counts, too.
  for (const FormulaCell& cell : group.cells) {
    cells.push_back({NameOf(cell), 1, 1 + cell.error(group.differences)});
  }
  errors = ErrorsOf(cells);
  if (errors.largest == 0) errors.worst.clear();
  MetWithinErrors(&c, std::move(errors), group.limit, group.reason);
  if (group.limit < 1e-6) c.accepted = "each cell exactly";
  if (group.differences) c.accepted = absl::StrCat("each cell within ", group.limit);
  return c;
}

Table FormulaTable(const std::vector<FormulaGroup>& groups) {
  Table t("formulas", "Published formulas beside simulated schedules and model graphs");
  t.AddKey("formula");
  t.AddKey("of", "of");
  t.AddKey("sizes");
  t.AddColumn({"published", "published", "", "", Origin::kPublished, 4});
  t.AddColumn({"ours", "ours", "", "", Origin::kSimulated, 4});
  t.AddColumn({"error", "error", "", "%", Origin::kComputed, 2});
  for (const FormulaGroup& group : groups) {
    int n = 0;
    for (const FormulaCell& cell : group.cells) {
      t.AddRow({Label(absl::StrCat(group.id.substr(group.id.find('.') + 1), " ", ++n)),
                Label(cell.scheme), Label(cell.sizes), Published(cell.low, group.tag),
                Simulated(cell.ours), Computed(ToPercent(cell.error(group.differences)))});
    }
  }
  return t;
}

}  // namespace pipelab
