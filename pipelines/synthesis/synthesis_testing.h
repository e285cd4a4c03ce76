// Problems by chance, and their shortest order by trying all. For tests.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIS_TESTING_H_
#define PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIS_TESTING_H_

#include <cstdint>
#include <vector>

#include "pipelines/synthesis/problem.h"

namespace pipelab {

// Unequal times, messages, room for a few micro-batches; some are recomputed, some whole.
SynthesisProblem RandomProblem(uint64_t seed, int devices, int micro_batches,
                               std::vector<int> device_of_stage);

// ns, over all words of all devices; kNoMakespan: none fits.
int64_t ShortestOfAll(const SynthesisProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_SYNTHESIS_TESTING_H_
