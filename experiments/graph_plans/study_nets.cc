#include "experiments/graph_plans/study_nets.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/zoo/candle_uno.h"
#include "models/zoo/case_study.h"
#include "models/zoo/dlrm.h"
#include "models/zoo/mmt.h"

namespace pipelab {
namespace {

StudyNet Net(std::string name, absl::StatusOr<ModelGraph> graph, int64_t samples_per_device) {
  CHECK(graph.ok()) << graph.status();
  StudyNet net;
  net.name = std::move(name);
  net.model = GroupForPlanning(*std::move(graph));
  net.samples_per_device = samples_per_device;
  return net;
}

// One micro-batch of the authors' size a device: 2 in the paper's case study; 128 and 64 in the
// plans that they published of DLRM and CANDLE-Uno (flexflow-train, pull request 308). How many of
// them their steps had is not known.
constexpr int64_t kTransformerSamples = 2, kDlrmSamples = 128, kCandleSamples = 64;
// The case study's net is said to have branches and a join: its head should hardly count.
constexpr int64_t kFewWords = 1000;

}  // namespace

std::vector<StudyNet> StudyNets() {
  return {Net("MMT", BuildMmt(PublishedMmt()), kTransformerSamples),
          Net("DLRM", BuildDlrm(PublishedDlrm()), kDlrmSamples),
          Net("CANDLE-Uno", BuildCandleUno(PublishedCandleUno()), kCandleSamples)};
}

StudyNet CandleUnoOf(int branches) {
  return Net(absl::StrCat("CANDLE-Uno, ", branches, " branches"),
             BuildCandleUno(PublishedCandleUno(branches)), kCandleSamples);
}

StudyNet CaseStudyNet() {
  CaseStudyConfig config;
  config.vocabulary = kFewWords;
  return Net("case study", BuildCaseStudy(config), kTransformerSamples);
}

StudyNet SequentialNet() {
  MmtConfig config = PublishedMmt();
  config.layers *= config.branches;
  config.branches = 1;
  return Net("Transformer", BuildMmt(config), kTransformerSamples);
}

}  // namespace pipelab
