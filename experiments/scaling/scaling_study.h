// The GPipe study of one family of models, from specification files to a report: what
// //experiments:amoebanet_scaling and //experiments:transformer_scaling run.
//
//   ScalingStudy study;
//   study.family = "amoebanet";
//   study.name = "amoebanet_scaling";
//   return RunScalingStudy(argc, argv, study);
#ifndef PIPELAB_EXPERIMENTS_SCALING_SCALING_STUDY_H_
#define PIPELAB_EXPERIMENTS_SCALING_SCALING_STUDY_H_

#include <cstdint>
#include <string>

namespace pipelab {

struct ScalingStudy {
  std::string name;     // of the target
  std::string family;   // gpipe_family.h
  std::string title;    // of the report
  std::string summary;  // for --help and the report
  // What is cut on up to 128 devices.
  int64_t speed_up_layers = 0, speed_up_width = 0;
};

int RunScalingStudy(int argc, char** argv, const ScalingStudy& study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_SCALING_STUDY_H_
