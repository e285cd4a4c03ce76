#include "kernels/cuda/speed_main.h"

#include <fstream>
#include <iostream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"

ABSL_FLAG(std::string, json, "", "write the results here too");

namespace pipelab {
namespace gpu {

int SpeedMain(int argc, char** argv, absl::Status (*measure)(std::string* json)) {
  absl::ParseCommandLine(argc, argv);
  std::cout << std::unitbuf;  // a line at a time, whoever stops it
  std::string json;
  const absl::Status status = measure(&json);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return absl::IsNotFound(status) ? 3 : 1;
  }
  if (!absl::GetFlag(FLAGS_json).empty()) std::ofstream(absl::GetFlag(FLAGS_json)) << json;
  return 0;
}

}  // namespace gpu
}  // namespace pipelab
