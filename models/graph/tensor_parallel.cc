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

void AddBranchCollectives(TensorParallel split, Bytes bytes, TensorShare* share) {
  AddGather(split, bytes, &share->forward);
  AddSum(split, bytes, &share->forward);
  AddGather(split, bytes, &share->backward_input);
  AddSum(split, bytes, &share->backward_input);
  AddGather(split, bytes, &share->backward_weight);
}

}  // namespace pipelab
