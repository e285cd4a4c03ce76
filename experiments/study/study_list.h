// Every study of the program pipelab_study (study_program.cc), and the function that runs it.
//
// A study's function has the arguments of a main of its own, and its exit code (study_main.h).
#ifndef PIPELAB_EXPERIMENTS_STUDY_STUDY_LIST_H_
#define PIPELAB_EXPERIMENTS_STUDY_STUDY_LIST_H_

#include "absl/types/span.h"

namespace pipelab {

int RunScheduleFormulasStudy(int argc, char** argv);
int RunAmoebanetScalingStudy(int argc, char** argv);
int RunTransformerScalingStudy(int argc, char** argv);
int RunCostModelValidationStudy(int argc, char** argv);
int RunGpt52bScalingStudy(int argc, char** argv);
int RunGraphpipeScalingStudy(int argc, char** argv);
int RunBapipeComparisonStudy(int argc, char** argv);
int RunBidirectionalComparisonStudy(int argc, char** argv);
int RunTerapipeComparisonStudy(int argc, char** argv);
int RunSeq1f1bComparisonStudy(int argc, char** argv);
int RunVocabularyStudy(int argc, char** argv);
int RunTravelStudy(int argc, char** argv);
int RunBubbleFillingStudy(int argc, char** argv);
int RunLocalLearningStudy(int argc, char** argv);
int RunStreamsStudy(int argc, char** argv);
int RunPlannerReferenceStudy(int argc, char** argv);
int RunModernModelsStudy(int argc, char** argv);
int RunInt4InferenceStudy(int argc, char** argv);
int RunPipelinedDecodingStudy(int argc, char** argv);
int RunUnreliablePeersStudy(int argc, char** argv);
int RunGnnPreparationStudy(int argc, char** argv);
int RunGnnSplitStudy(int argc, char** argv);
int RunSynthesisStudy(int argc, char** argv);
int RunCorpusMiningStudy(int argc, char** argv);
int RunCandleUnoTrainStudy(int argc, char** argv);
int RunDlrmTrainStudy(int argc, char** argv);
int RunGptTrainStudy(int argc, char** argv);
int RunTranslationTrainStudy(int argc, char** argv);
int RunAmoebanetTrainStudy(int argc, char** argv);
int RunMmtTrainStudy(int argc, char** argv);
int RunSwarmSurvivalStudy(int argc, char** argv);

struct StudyEntry {
  const char* name;
  int (*run)(int argc, char** argv);
  bool in_all = true;  // whether //experiments:all runs it
};

// Those that //experiments:all runs are in its order.
absl::Span<const StudyEntry> StudyList();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_STUDY_STUDY_LIST_H_
