#include "models/layers/test_nets.h"

#include "glog/logging.h"
#include "models/zoo/bert.h"
#include "models/zoo/candle_uno.h"
#include "models/zoo/case_study.h"
#include "models/zoo/dlrm.h"
#include "models/zoo/gpt.h"
#include "models/zoo/mmt.h"
#include "models/zoo/transformer.h"

namespace pipelab {
namespace {

BertConfig SmallBert(double dropout) {
  BertConfig c;
  c.layers = 2;
  c.hidden = 12;
  c.heads = 2;
  c.tokens = 7;
  c.vocabulary = 13;
  c.dropout = dropout;
  c.padded = true;
  return c;
}

TransformerConfig SmallTransformer(double dropout) {
  TransformerConfig c;
  c.layers = 3;  // the encoder's norm has three readers
  c.hidden = 12;
  c.heads = 2;
  c.head_size = 5;
  c.feed_forward = 20;
  c.source_tokens = 7;
  c.target_tokens = 5;
  c.vocabulary = 13;
  c.dropout = dropout;
  c.shared_embedding = true;
  c.positions = Positions::kSinusoidal;
  return c;
}

DlrmConfig SmallDlrm(Activation activation) {
  DlrmConfig c;
  c.dense = {{"dense", 6}, {"more", 3}};
  c.bags = {{"genres", 4, 9}, {"fans", 7, 15}};
  c.dense_layers = 2;
  c.hidden = 10;
  c.embedding = 3;
  c.join_layers = 2;
  c.activation = activation;
  return c;
}

CandleUnoConfig SmallCandleUno(Activation activation) {
  CandleUnoConfig c;
  c.branches = {{"cell", 9}, {"drug", 5}, {"dose", 1}};
  c.layers = 2;
  c.hidden = 10;
  c.join_layers = 2;
  c.activation = activation;
  return c;
}

CaseStudyConfig SmallCaseStudy() {
  CaseStudyConfig c;
  c.repeats = 2;
  c.hidden = 12;
  c.heads = 2;
  c.tokens = 5;
  c.feed_forward = 20;
  c.vocabulary = 13;
  return c;
}

MmtConfig SmallMmt(double dropout) {
  MmtModality text, picture;
  text.field = "name";
  text.length_field = "name_length";
  text.tokens = 5;
  text.vocabulary = 13;
  picture.kind = MmtModality::kPicture;
  picture.field = "picture";
  picture.height = 6;
  picture.width = 4;
  picture.channels = 3;
  picture.patch = 2;
  MmtConfig c;
  c.layers = 1;
  c.hidden = 12;
  c.heads = 2;
  c.feed_forward = 20;
  c.dropout = dropout;
  c.modalities = {text, picture};
  c.classes = 5;
  return c;
}

absl::StatusOr<ModelGraph> SmallLlama(double dropout) {
  GptConfig c = LlamaConfig(/*layers=*/3, /*hidden=*/12, /*heads=*/2, /*feed_forward=*/20,
                            /*tokens=*/7, /*vocabulary=*/13);
  c.kv_heads = 1;
  c.dropout = dropout;
  absl::StatusOr<ModelGraph> graph = BuildGpt(c);
  if (graph.ok()) graph->name = "llama";
  return graph;
}

// All that experts have, behind attention with norms of q and k.
absl::StatusOr<ModelGraph> SmallMixtral(double dropout) {
  GptConfig c = LlamaConfig(/*layers=*/3, /*hidden=*/12, /*heads=*/2, /*feed_forward=*/10,
                            /*tokens=*/7, /*vocabulary=*/13);
  c.query_key_norms = true;
  c.dense_blocks = 1;
  c.experts.experts = 4;
  c.experts.chosen = 2;
  c.experts.shared = 1;
  c.experts.capacity_factor = 1.2;
  c.experts.balance = 0.1;
  c.dropout = dropout;
  absl::StatusOr<ModelGraph> graph = BuildGpt(c);
  if (graph.ok()) graph->name = "mixtral";
  return graph;
}

}  // namespace

std::vector<ModelGraph> SmallNets(double dropout, Activation activation) {
  std::vector<ModelGraph> nets;
  for (auto graph : {BuildBert(SmallBert(dropout)), BuildTransformer(SmallTransformer(dropout)),
                     BuildDlrm(SmallDlrm(activation)), BuildCandleUno(SmallCandleUno(activation)),
                     BuildCaseStudy(SmallCaseStudy()), BuildMmt(SmallMmt(dropout)),
                     SmallLlama(dropout), SmallMixtral(dropout)}) {
    CHECK(graph.ok()) << graph.status();
    nets.push_back(*std::move(graph));
  }
  return nets;
}

}  // namespace pipelab
