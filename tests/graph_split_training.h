// Split training of a graph network on the devices of a transport, compared with one device's.
#ifndef PIPELAB_TESTS_GRAPH_SPLIT_TRAINING_H_
#define PIPELAB_TESTS_GRAPH_SPLIT_TRAINING_H_

#include "kernels/comm/transport.h"
#include "models/specs/graph_conv_spec.h"

namespace pipelab {

struct SplitTrainingCase {
  GraphConvKind kind = GraphConvKind::kSage;
  int members = 2, steps = 5;
  int batch = 48;    // of fewer targets than members some have none
  int workers = 0;   // of a member, in front of its trainer
  bool cpu = false;  // its backend; else the reference
};

// Trains this process's members. Expects the logits of the first step's targets to the bit (of the
// CPU's backend to rounding: a product's row hangs on the number of rows by a last digit), losses
// within the derived tolerance, bytes of samples and rows as predicted.
void ExpectSplitAsOneDevice(Transport* transport, const SplitTrainingCase& c);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_GRAPH_SPLIT_TRAINING_H_
