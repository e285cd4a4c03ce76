// What a study claims: a published figure or an expectation of our own, beside what came out here.
// Reports, RESULTS.md and //experiments:compare all read the same record.
//
//   Claim c = PaperClaim("graphpipe.gain", "throughput over the better of PipeDream and Piper",
//                        "GraphPipe (arXiv 2406.17145), section 7", "read");
//   c.unit = "x";
//   Published(&c, 1.6);                               // or a range: Published(&c, 1.05, 1.28)
//   Found(&c, Origin::kSimulated, 1.43);
//   MetWithin(&c, 1.4, 1.8, "why it is missed");      // the reason is kept only where it is
//   report.AddClaim(c);
//
// A whole table is one claim: Cells of it, published and ours, become their median and largest
// error and how many pairs of cells have the published order.
//
//   MetWithinErrors(&c, ErrorsOf(cells), /*limit=*/0.25, "why");
//
// Nothing here decides what is right: the study says what counts as met, in words and in one place.
#ifndef PIPELAB_EXPERIMENTS_REPORT_CLAIM_H_
#define PIPELAB_EXPERIMENTS_REPORT_CLAIM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "experiments/report/table.h"

namespace pipelab {

// In the order in which they are listed. kDependsOn: it holds in a part of the plausible range of
// what the paper does not give.
enum class ClaimState { kMissed, kDependsOn, kNotMade, kMet };
absl::string_view ClaimStateName(ClaimState state);  // "missed", "depends on", "not made", "met"

// A cell of a published table. `name` tells it in messages: "K=8 M=4".
struct ComparedCell {
  std::string name;
  double published = 0, ours = 0;

  double error() const { return ours / published - 1; }
};

// The errors of the cells of a published table, as shares of the published values.
struct CellErrors {
  int cells = 0;
  double median = 0, largest = 0;  // absolute
  std::string worst;               // name of the cell with the largest
  int pairs = 0, alike = 0;        // pairs that the paper orders, and those ordered alike here
};
CellErrors ErrorsOf(const std::vector<ComparedCell>& cells);  // zeros where there are none

struct Claim {
  std::string id;         // PAPER.WHAT, unique over all studies: lower case, digits, _ and .
  std::string text;       // what is claimed, without a figure of ours
  std::string source;     // paper, section or table; empty: an expectation of this project
  std::string tag;        // of the published figure: "read", "read-2nd", "derived", "recalled"
  std::string published;  // as a reader sees it: "1.6x", "9 cells"
  absl::optional<double> low, high;  // of what is published, in `unit`; equal for one figure
  std::string accepted;              // what counts as met: "1.4 to 1.8 x"
  std::string ours;                  // as a reader sees it
  absl::optional<double> value;      // of ours, in `unit`
  std::string unit;
  Origin origin = Origin::kComputed;  // of ours
  absl::optional<CellErrors> cells;
  ClaimState state = ClaimState::kNotMade;
  // Why a miss is one, why a claim is not made, or "NAME: holds for ..., turns at ..." of what it
  // depends on.
  std::string reason;

  bool from_paper() const { return !source.empty(); }
  // Ours over what is published - 1, 0 within a range; of a table the largest. None where either
  // figure is missing.
  absl::optional<double> Error() const;
  // "+12.0 %", "median 5.8 %, largest 33.9 % (K=4 M=4), 71 of 78 orders alike"; "-" where it is
  // not made.
  std::string ErrorText() const;
};

Claim PaperClaim(std::string id, std::string text, std::string source, std::string tag);
Claim OwnClaim(std::string id, std::string text);

// What is published; `low` and `high` in the claim's unit, which is set before.
void Published(Claim* claim, double value);
void Published(Claim* claim, double low, double high);
// What came out. `text` replaces the number with its unit where it says more.
void Found(Claim* claim, Origin origin, double value, std::string text = "");

// Decide. `reason` is kept where the claim is missed; it must not be empty then.
void MetIf(Claim* claim, bool met, std::string accepted, std::string reason);
void MetWithin(Claim* claim, double low, double high, std::string reason);
// Decides on a table: no cell is further off than `limit`, a share.
void MetWithinErrors(Claim* claim, CellErrors errors, double limit, std::string reason);
// Decides on cells that are differences from what is published, in the claim's unit: how many are
// within `limit`, and the worst. Met where all are, not made where there are none.
struct CellOff {
  std::string name;
  double off = 0;
};
void MetWithinPoints(Claim* claim, Origin origin, const std::vector<CellOff>& cells, double limit,
                     std::string reason, absl::string_view noun = "cell");
// Decides on things counted in the claim's unit: how many of all are as published, and whether all
// are.
void FoundAlike(Claim* claim, Origin origin, int alike, int all, std::string reason);
void NotMade(Claim* claim, std::string why);

// Over the range of `name`, which the paper does not give: met where every value meets the claim,
// missed where none does, else it depends on `name`, with the values for which it holds and those
// at which it turns. `reason` is kept unless it is met. Missed where `values` is empty.
//
//   MetOverRange(&c, "samples per device", {{"2", true}, {"4", true}, {"16", false}}, "1.4x", why);
//   // depends on samples per device: holds for 2, 4; turns at 16; WHY
struct RangeValue {
  std::string value;  // with its unit where `name` has none
  bool met = false;
};
void MetOverRange(Claim* claim, const std::string& name, const std::vector<RangeValue>& values,
                  std::string accepted, std::string reason);

// "missed: REASON", "depends on NAME: holds for ..., turns at ...", "met".
std::string Verdict(const Claim& claim);

// "3 of 5 claims are met: 1 missed, 1 not made."; empty where there are none.
std::string ClaimsSummary(const std::vector<Claim>& claims);

// InvalidArgument: no id, no text, a miss without a reason, a paper's figure without a tag, one
// that is only recalled as a target, ...
absl::Status CheckClaim(const Claim& claim);

// Missed first. For people; machines read claims.json.
Table ClaimsTable(const std::vector<Claim>& claims);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_CLAIM_H_
