#include "experiments/study/study_list.h"

namespace pipelab {
namespace {

constexpr StudyEntry kStudies[] = {
    {"schedule_formulas", RunScheduleFormulasStudy},
    {"amoebanet_scaling", RunAmoebanetScalingStudy},
    {"transformer_scaling", RunTransformerScalingStudy},
    {"cost_model_validation", RunCostModelValidationStudy},
    {"gpt52b_scaling", RunGpt52bScalingStudy},
    {"graphpipe_scaling", RunGraphpipeScalingStudy},
    {"bapipe_comparison", RunBapipeComparisonStudy},
    {"bidirectional_comparison", RunBidirectionalComparisonStudy},
    {"terapipe_comparison", RunTerapipeComparisonStudy},
    {"seq1f1b_comparison", RunSeq1f1bComparisonStudy},
    {"vocabulary", RunVocabularyStudy},
    {"travel", RunTravelStudy},
    {"bubble_filling", RunBubbleFillingStudy},
    {"local_learning", RunLocalLearningStudy},
    {"streams", RunStreamsStudy},
    {"planner_reference", RunPlannerReferenceStudy},
    {"modern_models", RunModernModelsStudy},
    {"int4_inference", RunInt4InferenceStudy},
    {"pipelined_decoding", RunPipelinedDecodingStudy},
    {"unreliable_peers", RunUnreliablePeersStudy},
    {"gnn_preparation", RunGnnPreparationStudy},
    {"gnn_split", RunGnnSplitStudy},
    {"synthesis", RunSynthesisStudy},
    {"corpus_mining", RunCorpusMiningStudy},
    {"candle_uno_train", RunCandleUnoTrainStudy},
    {"dlrm_train", RunDlrmTrainStudy},
    {"gpt_train", RunGptTrainStudy},
    {"translation_train", RunTranslationTrainStudy},
    {"amoebanet_train", RunAmoebanetTrainStudy},
    {"mmt_train", RunMmtTrainStudy},
    // Takes most of an hour, and all cores of this machine.
    {"swarm_survival", RunSwarmSurvivalStudy, /*in_all=*/false},
};

}  // namespace

absl::Span<const StudyEntry> StudyList() { return kStudies; }

}  // namespace pipelab
