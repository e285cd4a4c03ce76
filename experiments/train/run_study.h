// The frame of a training study (study.h): what its function of study_list.h calls.
//
//   int RunDlrmTrainStudy(int argc, char** argv) { ... return RunStudy(argc, argv, study); }
//
// It has the flags (train_flags.h), and refuses options that do not fit before anything is fetched;
// trains each part through PipelineTraining, with a progress line, held-out losses, checkpoints and
// a stop at Ctrl-C that can be gone on from; has the parts judged; trains a few steps under several
// schemes and compares them with serial training; writes the report.
//
// Claims are checked where the run is the whole study: real data, no fewer steps than the default,
// and what is held out is not --validation's.
//
// Exit codes (flags.h): 1 also for a claim that is missed, for losses that differ from serial
// training, and after Ctrl-C.
#ifndef PIPELAB_EXPERIMENTS_TRAIN_RUN_STUDY_H_
#define PIPELAB_EXPERIMENTS_TRAIN_RUN_STUDY_H_

#include "experiments/train/study.h"

namespace pipelab {

int RunStudy(int argc, char** argv, const Study& study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_RUN_STUDY_H_
