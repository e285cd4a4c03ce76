// Digests of what programs are and do (program_digests.h): all lines, as the golden file has them;
// the cases of a line; or the text of a case, so that two builds can be compared by diff.
//
//   bazel run //tests:program_digests -- --dump="1f1b/plain/P=2,M=4"
//
// Exit status: 0; 1 where no line or case has the name.
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "tests/program_digests.h"

ABSL_FLAG(std::string, cases, "", "a line's name: a digest of each of its cases");
ABSL_FLAG(std::string, dump, "", "a case's name: lists, spans, memory and traffic as text");

namespace pipelab {
namespace {

int Main(const std::string& cases, const std::string& dump) {
  for (const DigestLine& line : AllDigestLines()) {
    if (cases.empty() && dump.empty()) std::cout << LineText(line);
    if (!cases.empty() && line.name == cases) {
      std::cout << CasesText(line);
      return 0;
    }
    for (const DigestCase& one : line.cases) {
      if (dump.empty() || one.name != dump) continue;
      std::cout << DumpText(one);
      return 0;
    }
  }
  if (cases.empty() && dump.empty()) return 0;
  std::cerr << (dump.empty() ? "--cases=" + cases : "--dump=" + dump) << ": there is no such "
            << (dump.empty() ? "line" : "case; --cases=LINE lists them") << "\n";
  return 1;
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return pipelab::Main(absl::GetFlag(FLAGS_cases), absl::GetFlag(FLAGS_dump));
}
