#include "models/graph/tensor_parallel.h"

namespace pipelab {

void AddSum(TensorParallel split, Bytes bytes, std::vector<TensorCollective>* collectives) {
  if (split.degree == 1) return;
  collectives->push_back(
      {split.sequence ? Collective::kReduceScatter : Collective::kAllReduce, bytes});
}

void AddGather(TensorParallel split, Bytes bytes, std::vector<TensorCollective>* collectives) {
  if (split.scatters_rows()) collectives->push_back({Collective::kAllGather, bytes});
}

TensorCollectives BranchCollectives(TensorParallel split, Bytes bytes) {
  TensorCollectives collectives;
  AddGather(split, bytes, &collectives.forward);
  AddSum(split, bytes, &collectives.forward);
  AddGather(split, bytes, &collectives.backward_input);
  AddSum(split, bytes, &collectives.backward_input);
  AddGather(split, bytes, &collectives.backward_weight);
  return collectives;
}

}  // namespace pipelab
