// A flag of another study than study_flags_test.cc's, with the name of one of its flags.
#ifndef PIPELAB_EXPERIMENTS_STUDY_STUDY_FLAGS_FIXTURE_H_
#define PIPELAB_EXPERIMENTS_STUDY_STUDY_FLAGS_FIXTURE_H_

#include "experiments/study/study_flags.h"

namespace pipelab {
namespace one_study {

STUDY_FLAG(int, study_flags_test_size, 4, "of another study");

}  // namespace one_study
}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_STUDY_STUDY_FLAGS_FIXTURE_H_
