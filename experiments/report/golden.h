// Texts of a test against committed files, byte by byte.
//
//   TEST(Golden, Table) { ExpectGolden("experiments/report/testdata/table.md", text); }
//   int main(int argc, char** argv) { return pipelab::GoldenMain(argc, argv); }
//
//   bazel run //FOLDER:FOLDER_test -- --update        # writes them
#ifndef PIPELAB_EXPERIMENTS_REPORT_GOLDEN_H_
#define PIPELAB_EXPERIMENTS_REPORT_GOLDEN_H_

#include <string>

#include "absl/strings/string_view.h"

namespace pipelab {

// `path` begins at the root of the checkout, and is in the test's data.
void ExpectGolden(absl::string_view path, const std::string& text);

// Runs all tests; its only option is --update.
int GoldenMain(int argc, char** argv);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_GOLDEN_H_
