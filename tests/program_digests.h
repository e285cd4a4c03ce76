// What programs are and do, as digests: a line for each scheme and option, which a change of the
// core (schedules, lowering, costs, simulation, runtime) must leave as it is, or change on purpose.
//
//   for (const DigestLine& line : AllDigestLines()) text += LineText(line);
//   // 1f1b/fully: 24 cases, 2 refused, lists 6c62272e07bb0142 spans ... memory ... traffic ...
//
//   bazel run //tests:program_digests -- --cases=1f1b/fully     a digest of each case of a line
//   bazel run //tests:program_digests -- --dump=CASE            the texts, to compare by diff
//
// Digests are 64-bit FNV-1a of plain lines (program_text.h). Cases that are refused, with
// InvalidArgument, are counted, and so are those whose program blocks when it is simulated; of
// messages nothing is told.
#ifndef PIPELAB_TESTS_PROGRAM_DIGESTS_H_
#define PIPELAB_TESTS_PROGRAM_DIGESTS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pipelab {

// What each column of a line digests. Empty: no such column.
struct CaseTexts {
  std::string lists;    // device lists
  std::string spans;    // begins and ends, makespan
  std::string memory;   // peaks and levels
  std::string traffic;  // messages, collectives, copies
  std::string losses;
};

struct DigestCase {
  std::string name;
  std::function<absl::StatusOr<CaseTexts>()> texts;
};

struct DigestLine {
  std::string name;
  std::vector<DigestCase> cases;
};

// Every scheme of the catalogue, in all its ways, with each option of Lower, priced by PrimeCosts;
// and schedules that no scheme has.
std::vector<DigestLine> LoweredLines();
// Steps of models on machines: a line for each place and scheme (priced_configs.h).
std::vector<DigestLine> PricedLines();
// Steps that are trained, with what was measured in them (trained_jobs.h).
std::vector<DigestLine> TrainedLines();

std::vector<DigestLine> AllDigestLines();

// Runs the line's cases. With an end of line.
std::string LineText(const DigestLine& line);
// A line for each case of it.
std::string CasesText(const DigestLine& line);
// All that is digested of a case, or why it is refused.
std::string DumpText(const DigestCase& one);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PROGRAM_DIGESTS_H_
